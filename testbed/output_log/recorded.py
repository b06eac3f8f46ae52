"""An operator that records its output and the events of its windows, as blocks of an output log."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from experiments.errors import AftershockError
from testbed.operators import START_OF_TIME_NS, Operator
from testbed.operators.parts import NO_ENTRIES, EntryKind, Footprints, Parted, checks_of
from testbed.output_log.blocks import Block, merged
from testbed.output_log.eventual import EventualCheckpoint
from testbed.output_log.extent import Extent
from testbed.output_log.policies import Policy

COUNTS = ("records", "open_windows", "opens", "checks", "results", "extent", "replay", "bytes")


class ReplayDiverged(AftershockError):
    """The replayed input is not what the operator read before: it opens or closes a window once more."""


class RecordedOperator(Operator):
    """Does what the operator does. After a recovery it emits nothing until it is back where its log ends.

    What it reads must come in the same order after a recovery.
    """

    def __init__(self, operator: Parted, policy: Policy) -> None:
        """`operator`: opened and empty."""
        self.operator, self.extent = operator, Extent()
        self._policy = policy
        self._watermark_ns = START_OF_TIME_NS
        self._known_until = self._restored_at = self._results = 0
        self._blocks: list[Block] = []
        self._opens = self._checks = self._bytes = 0

    def load(self, found: EventualCheckpoint) -> None:
        """Go on from here; the records after `found.replay_after` have to come next."""
        self.operator.load_all(found.windows, found.parts, [at for _, at in found.places])
        for window, at in found.closed.items():
            self.operator.ignore(window, at)
        self.operator.resume(found.replay_after)
        self._known_until = found.replay_after
        self.extent.restore(zip(found.windows, found.places, strict=True), found.entries, found.position)
        self._watermark_ns, self._restored_at = found.watermark_ns, found.position
        self._results = found.results

    def resume(self, position: int) -> None:
        """The record after this position comes next, though the windows have all records up to a later one."""
        self.operator.resume(position)

    @property
    def checks(self) -> int:
        """How many parts of open windows were saved again since the operator was made or restored."""
        return self._checks

    @property
    def replaying(self) -> bool:
        """Whether the operator has not yet read again what it had before it was restored."""
        return self.operator.position < self._restored_at

    def schema(self, *inputs: pa.Schema) -> pa.Schema:
        return self.operator.schema(*inputs)

    def process(self, port: int, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        """Take records in. Raises `ReplayDiverged` if they are replayed and other than before."""
        known = min(max(self._known_until - self.operator.position, 0), batch.num_rows)
        if known:
            self.operator.resume(self.operator.position + known)
            batch = batch.slice(known)
        again = min(max(self._restored_at - self.operator.position, 0), batch.num_rows)
        if again:
            self.operator.process(port, batch.slice(0, again))
            step = self.operator.footprints()
            if step.left or step.gone:
                raise ReplayDiverged(f"up to record {self.operator.position} other windows open or close than before")
            batch = batch.slice(again)
        if not batch.num_rows:
            return None
        return self._add(self.operator.process(port, batch), self.operator.footprints())

    def advance(self, watermark_ns: int) -> pa.RecordBatch | None:
        if watermark_ns <= self._watermark_ns:
            return None
        self._watermark_ns = watermark_ns
        return self._add(self.operator.advance(watermark_ns), self.operator.footprints())

    def check(self, more: Callable[[], int]) -> int:
        """Save parts, that of the oldest window first, while the policy wants it; returns how many.

        Each window's part once at most, and none once a recovery would read and replay no less for it.

        Args:
            more: for how many more there is time before it is asked again, if these have a few numbers each.
        """
        begun, before, due = self.extent.entries, self._checks, 0
        while not self.replaying:
            due = due or self._policy.due(self.extent)
            windows = self.extent.oldest_before(begun, min(due, self.operator.together))
            if not windows or not (most := more()):
                break
            windows = windows[:most]
            due -= len(windows)
            self.extent.saved(windows)
            self._append(checks_of(self.operator.position, windows, self.operator.parts_of(windows)), None)
            self._checks += len(windows)
        return self._checks - before

    @property
    def counts(self) -> dict[str, int]:
        """What the log would cost now, and since the operator was made or restored what went into it: opens, checks and
        bytes. `records` and `results` are those since the beginning."""
        counted = (
            max(self.operator.position, self._restored_at),
            len(self.extent),
            self._opens,
            self._checks,
            self._results,
            self.extent.length,
            self.extent.replay,
            self._bytes,
        )
        return dict(zip(COUNTS, counted, strict=True))

    def take_block(self) -> Block:
        """All that was recorded since the last call, with where the operator is now."""
        blocks, self._blocks = [*self._blocks, self._block(NO_ENTRIES, None)], []
        block = merged(blocks)
        self._bytes += block.nbytes
        return block

    def _add(self, rows: pa.RecordBatch | None, step: Footprints) -> pa.RecordBatch | None:
        self.extent.add(step, self.operator.position)
        self._opens += int(np.count_nonzero(step.entries.column("kind").to_numpy() == EntryKind.OPEN.value))
        if rows is not None:
            self._results += rows.num_rows
        if step.entries.num_rows:
            self._append(step.entries, rows)
        return rows

    def _append(self, entries: pa.RecordBatch, rows: pa.RecordBatch | None) -> None:
        self._keep(self._block(entries, rows))

    def _keep(self, block: Block) -> None:
        self._blocks.append(block)

    def _block(self, entries: pa.RecordBatch, rows: pa.RecordBatch | None) -> Block:
        numbers = self.operator.position, self._watermark_ns, len(self.extent), self._results
        return Block(*numbers, entries, rows)
