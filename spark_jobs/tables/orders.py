"""Orders from the steps of a run to its batch job: a folder with a file for each stage that is ordered or done.

So the job can start before its first stage may begin, and any process can give the next order.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from experiments.waiting import poll_until

POLL_S = 0.05
ORDER, DONE = ".json", ".done"


@dataclass(frozen=True)
class Orders:
    """The orders in a folder, which only the user of the run can write."""

    folder: Path

    def give(self, stage: str, arguments: list[str]) -> None:
        """Order a stage, with its arguments; also one that was done before."""
        self.folder.mkdir(exist_ok=True)
        self._path(stage, DONE).unlink(missing_ok=True)
        scratch = self._path(stage, ".partial")
        scratch.write_text(json.dumps(arguments), encoding="utf-8")
        scratch.replace(self._path(stage, ORDER))

    def take(self, limit_s: float) -> tuple[str, list[str]]:
        """Wait for an order; returns the stage and its arguments. Raises `TimeoutError` when none came in time."""
        waiting = poll_until(lambda: sorted(self.folder.glob(f"*{ORDER}")), interval_s=POLL_S, limit_s=limit_s)
        if not waiting:
            raise TimeoutError(f"no order came in {limit_s:g} s")
        return waiting[0].stem, json.loads(waiting[0].read_text(encoding="utf-8"))

    def finish(self, stage: str) -> None:
        """Tell that an ordered stage is done."""
        self._path(stage, ORDER).replace(self._path(stage, DONE))

    def finished(self, stage: str) -> bool:
        """Whether a stage is done since it was ordered last."""
        return self._path(stage, DONE).exists()

    def _path(self, stage: str, suffix: str) -> Path:
        return self.folder / f"{stage}{suffix}"
