"""The file in which a query's driver leaves the figures of a calibration before a saturating load."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from experiments.typed_json import TypedJson


@dataclass(frozen=True)
class Calibration(TypedJson):
    """How fast the query runs undisturbed.

    service_rate   what it processes [records/s]
    overhead_s     what one checkpoint costs [s]
    load_rate      what saturates it [records/s]
    batch_records  of the micro-batch that fills a checkpoint interval; None of an engine without micro-batches
    """

    service_rate: float
    overhead_s: float
    load_rate: float
    batch_records: int | None = None

    def leave_in(self, path: Path) -> None:
        """Write the file whole: a run reads it as soon as it is there, and a driver that dies may be writing it."""
        scratch = path.with_suffix(".partial")
        scratch.write_text(json.dumps(self.to_json()), encoding="utf-8")
        scratch.replace(path)
