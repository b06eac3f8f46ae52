"""The docker driver: hosts are containers of this machine, asked over exec streams; made and ended by its daemon.

Imports the docker SDK, which the rest of `infra` does not.
"""
