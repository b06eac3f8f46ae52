"""The result of a simulated run, and the interface of its observers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from experiments.errors import AftershockError
from testbed.core.checkpoints import Checkpoint, Line
from testbed.core.partition.counts_and_watermarks import Tally
from testbed.core.partition.partition import Partition

Row: TypeAlias = tuple[object, ...]


class Stuck(AftershockError):
    """The dataflow has not finished within the limit of steps."""


class Observer:
    """Told of what the coordinator learns and decides."""

    def known(self, checkpoint: Checkpoint) -> None:
        """A checkpoint is stored, and the coordinator has heard of it."""

    def recovering(self, epoch: int, line: Line) -> None:
        """A recovery begins that rolls back to this line."""


@dataclass
class SimulationResult:
    """What came out: of the exactly-once sinks what was published, of the plain ones what was written, row by row; of
    both what was tentative.

    recoveries   all of them; `resumed` those that did not roll back to the beginning
    fallbacks    how often a partition could not read what it was to roll back to, or what it had kept for others
    spilled      objects with output that was too much for memory; `fetched` those that were read back
    restored     how many partitions were restored after their first start, and how many copies `promoted`
    """

    published: Counter[Row] = field(default_factory=Counter)
    written: Counter[Row] = field(default_factory=Counter)
    tentative: Counter[Row] = field(default_factory=Counter)
    tally: Tally = field(default_factory=Tally)
    crashes: int = 0
    joined: int = 0
    recoveries: int = 0
    resumed: int = 0
    fallbacks: int = 0
    spilled: int = 0
    fetched: int = 0
    restored: int = 0
    promoted: int = 0
    steps: int = 0

    def count(self, partitions: Iterable[Partition]) -> None:
        """Add what these partitions have counted."""
        for partition in partitions:
            for name, value in vars(partition.tally).items():
                setattr(self.tally, name, getattr(self.tally, name) + value)


def add_rows(counter: Counter[Row], batch: pa.RecordBatch) -> None:
    """Count the rows of a batch."""
    counter.update(zip(*(column.to_pylist() for column in batch.columns), strict=True))
