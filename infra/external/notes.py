"""The note of a strike: which command acts on the host, and since when the host is struck.

It is written before anything acts on the host, and removed once the host is proved to be well. If the injector dies,
the note says what may still be in progress. Each change replaces the file as a whole. If a note cannot be written, as
on a full disk, no strike begins, but heals do.
"""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.waiting import poll_while
from infra import credentials
from infra.processes import start_of

# Of a note that cannot be read: anything may be the case.
OPEN: dict[str, Any] = {"process": None, "began_ns": 0, "since_ns": None}
NOT_STRUCK = 0
POLL_S, KILLED_LIMIT_S = 0.05, 5.0


@dataclass(frozen=True)
class Note:
    """The note of one host and one kind of fault."""

    path: Path

    @property
    def exists(self) -> bool:
        """Whether the host is struck, or may be."""
        return self.path.exists()

    @property
    def since_ns(self) -> int | None:
        """Since when the host is proved to be struck [ns]; `NOT_STRUCK` if it is not, None as long as it is open."""
        since_ns = self._read()["since_ns"] if self.exists else NOT_STRUCK
        return since_ns if isinstance(since_ns, int) else None

    @property
    def began_ns(self) -> int:
        """When the strike began [ns], if it is proved, else 0: a host that was never struck may be well since ever."""
        return self._read()["began_ns"] if self.since_ns else 0

    def announce(self) -> None:
        """A strike is to come; no command has begun."""
        self._write(OPEN | {"since_ns": NOT_STRUCK})

    def strikes(self, pid: int) -> None:
        """This process is about to strike the host: from now on its effect is open."""
        self._write({"process": [pid, start_of(pid)], "began_ns": time.time_ns(), "since_ns": None})

    def heals(self, pid: int) -> None:
        """This process is about to heal the host."""
        with suppress(OSError):
            self._write(self._read() | {"process": [pid, start_of(pid)], "since_ns": self.since_ns})

    def took_effect(self, since_ns: int) -> None:
        """The strike has been proved, or, with `NOT_STRUCK`, its proof has been awaited in vain."""
        with suppress(OSError):
            self._write(self._read() | {"since_ns": since_ns})

    def remove(self) -> None:
        """The host is well."""
        self.path.unlink(missing_ok=True)

    def end_command(self, limit_s: float) -> None:
        """Wait until the command that was noted last has ended; after `limit_s`, end it and its child processes.

        It is not killed at once, because half of a strike may be worse than the whole.
        """
        pid, start = self._read()["process"] or (0, None)
        if start is None:
            return
        if poll_while(lambda: start_of(pid) == start, interval_s=POLL_S, limit_s=limit_s):
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            poll_while(lambda: start_of(pid) == start, interval_s=POLL_S, limit_s=KILLED_LIMIT_S)

    def _read(self) -> dict[str, Any]:
        try:
            document: dict[str, Any] = OPEN | json.loads(self.path.read_text(encoding="utf-8"))
            return document
        except (OSError, ValueError, TypeError):
            return OPEN

    def _write(self, document: dict[str, Any]) -> None:
        credentials.write_private(self.path, json.dumps(document))
