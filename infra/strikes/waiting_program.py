"""A program that is started before a strike, and acts once it gets its input: a start takes tens of milliseconds."""

from __future__ import annotations

import subprocess

from infra import programs
from infra.processes import take_precedence

LIMIT_S = 5.0


class WaitingProgram:
    """It has precedence, so that it acts on time on a busy machine. The caller lets it act or closes it."""

    def __init__(self, *command: str, errors: int | None = subprocess.DEVNULL) -> None:
        """Start the program; `errors` is where its error output goes, None: where that of this process goes."""
        self._process = subprocess.Popen(
            command,
            env=programs.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            text=True,
        )
        take_precedence(self.pid)

    @property
    def pid(self) -> int:
        """The id of its process."""
        return self._process.pid

    def act(self, order: str) -> None:
        """Give the program its input, and wait for its end; what came of it is seen when the strike is proved.

        One that takes longer than `LIMIT_S` is ended: it must not act once the fault has been undone.
        """
        try:
            self._process.communicate(order, LIMIT_S)
        except subprocess.TimeoutExpired:
            self.close()

    def close(self) -> None:
        """End the program, if it has not ended by itself."""
        self._process.kill()
        self._process.communicate()
