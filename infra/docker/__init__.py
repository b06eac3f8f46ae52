"""The docker driver: hosts are containers of this machine. The driver talks to their agents over `docker exec`.

Imports the docker SDK, which the rest of `infra` does not.
"""
