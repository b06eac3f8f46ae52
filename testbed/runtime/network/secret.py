"""The secret that the members of one run share."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from pathlib import Path

from experiments.errors import EnvironmentFailure
from testbed.core.seal import KEY_BYTES

TOKEN_BYTES = 32


@dataclass(frozen=True)
class RunSecret:
    """Goes from the driver program to the slots inside the task that Spark runs, and to no log or argument.

    token      begins every connection; no two drivers of a run have the same one
    store_key  seals what the run stores; it never leaves a process by a connection of ours
    """

    token: bytes = field(repr=False)
    store_key: bytes = field(repr=False)

    @classmethod
    def draw(cls) -> RunSecret:
        """A new secret, from the system's random numbers."""
        return cls(secrets.token_bytes(TOKEN_BYTES), secrets.token_bytes(KEY_BYTES))

    @classmethod
    def with_key_in(cls, file: str | None) -> RunSecret:
        """A new token, with the store key that the file has in hexadecimal digits; without a file, a new one too.

        Raises `EnvironmentFailure` for a file that has none.
        """
        drawn = cls.draw()
        if file is None:
            return drawn
        try:
            key = bytes.fromhex(Path(file).read_text(encoding="ascii"))
        except (OSError, ValueError) as error:
            raise EnvironmentFailure(f"the key of the checkpoints can't be read: {error}", f"look at {file}") from None
        if len(key) != KEY_BYTES:
            raise EnvironmentFailure("the key of the checkpoints has another length", f"look at {file}")
        return cls(drawn.token, key)
