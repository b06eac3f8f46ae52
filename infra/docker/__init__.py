"""The docker driver: hosts are containers of this machine. The driver talks to their agents over `docker exec`.

Only this package imports the docker SDK.
"""
