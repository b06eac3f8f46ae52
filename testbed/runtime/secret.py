"""What the members of one run know and nobody else."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from testbed.core.seal import KEY_BYTES

TOKEN_BYTES = 32


@dataclass(frozen=True)
class RunSecret:
    """Goes from the driver program to the slots inside the task that Spark runs, and to no file, log or argument.

    token      begins every connection of the run
    store_key  seals what the run stores; it never leaves a process by a connection of ours
    """

    token: bytes = field(repr=False)
    store_key: bytes = field(repr=False)

    @classmethod
    def draw(cls) -> RunSecret:
        """A new secret, from the system's random numbers."""
        return cls(secrets.token_bytes(TOKEN_BYTES), secrets.token_bytes(KEY_BYTES))
