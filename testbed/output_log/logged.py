"""An operator with its output log: works, saves parts of its state, and is restored from what it has put out."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from experiments.errors import AftershockError
from testbed.operators import START_OF_TIME_NS
from testbed.operators.parts import EntryKind, Footprints, Parted, entries_of
from testbed.output_log.blocks import Block
from testbed.output_log.eventual import EventualCheckpoint, find_eventual
from testbed.output_log.extent import Extent
from testbed.output_log.log import Kept, OutputLog
from testbed.output_log.policies import Policy
from testbed.output_log.reading import LogReader


class ReplayDiverged(AftershockError):
    """The replayed input is not what the operator took in before: it opens or closes a window once more."""


class LoggedOperator:
    """Takes input in and puts rows out, numbered from 1, none of them before the log has it.

    What it takes in must come in the same order after a recovery.
    """

    def __init__(self, operator: Parted, log: OutputLog, policy: Policy) -> None:
        """`operator`: opened and empty."""
        self.operator, self.log, self.extent = operator, log, Extent()
        self._policy = policy
        self._watermark_ns = START_OF_TIME_NS
        self._restored_at = self._results = self._delivered = 0
        self._unsent: list[pa.RecordBatch] = []

    def restore(self, reader: LogReader, delivered: int = 0, replayable_after: int = 0) -> EventualCheckpoint:
        """Go on from the log; the records after `replay_after` of what this returns have to come next.

        Args:
            reader: of this operator's log.
            delivered: of the rows so many are known to have arrived; they are not put out again.
            replayable_after: the records after this position can be replayed.

        Raises:
            StateLost: if the state can't be rebuilt.
            EnvironmentFailure: if the store refuses.
        """
        found = find_eventual(reader, delivered, replayable_after)
        self.operator.load_all(found.windows, found.parts, [at for _, at in found.places])
        for window, at in found.closed.items():
            self.operator.ignore(window, at)
        self.operator.resume(found.replay_after)
        self.extent.restore(zip(found.windows, found.places, strict=True), found.entries, found.position)
        self._watermark_ns, self._restored_at = found.watermark_ns, found.position
        self._results, self._delivered, self._unsent = found.results, delivered, found.unsent
        kept = _with_older(reader, found)
        strays = reader.ids.difference(each.id for each in kept)
        self.log.restore(reader.next_life, kept, strays)
        return found

    @property
    def replaying(self) -> bool:
        """Whether the operator has not yet taken in again what it had before it was restored."""
        return self.operator.position < self._restored_at

    def process(self, port: int, batch: pa.RecordBatch) -> None:
        """Take records in. Raises `ReplayDiverged` if they are replayed and other than before."""
        again = min(max(self._restored_at - self.operator.position, 0), batch.num_rows)
        if again:
            self.operator.process(port, batch.slice(0, again))
            step = self.operator.footprints()
            if step.left or step.gone:
                raise ReplayDiverged(f"up to record {self.operator.position} other windows open or close than before")
        if again < batch.num_rows:
            self._add(self.operator.process(port, batch.slice(again)), self.operator.footprints())

    def advance(self, watermark_ns: int) -> None:
        """No record before this event time will follow."""
        if watermark_ns > self._watermark_ns:
            self._watermark_ns = watermark_ns
            self._add(self.operator.advance(watermark_ns), self.operator.footprints())

    def check(self, more: Callable[[], bool]) -> int:
        """Save parts, that of the oldest window first, while the policy wants it; returns how many.

        Each window's part once at most, and none if a recovery would read and replay no less for it.

        Args:
            more: whether there is time for another one.
        """
        checked: list[tuple[bytes, bytes]] = []
        begun = self.extent.entries
        while not self.replaying and not self.extent.least and self._policy.due(self.extent):
            oldest = self.extent.oldest
            if oldest is None or oldest[1].entry >= begun or not more():
                break
            checked.append((oldest[0], self.operator.part(oldest[0])))
            self.extent.check(oldest[0])
        if checked:
            at = self.operator.position
            self._append(entries_of((EntryKind.CHECK, at, window, part) for window, part in checked), None)
        return len(checked)

    def commit(self) -> list[pa.RecordBatch]:
        """Make the log safe; returns the rows that may be sent now, which are those that have not arrived.

        Raises `EnvironmentFailure` if the store refuses. Nothing is lost then, and nothing may be sent.
        """
        block = self.log.commit(self.extent)
        rows, self._unsent = list(self._unsent), []
        fresh = block.rows_after(self._delivered) if block is not None else None
        return rows if fresh is None else [*rows, fresh]

    def _add(self, rows: pa.RecordBatch | None, step: Footprints) -> None:
        self.extent.add(step, self.operator.position)
        if rows is not None:
            self._results += rows.num_rows
        if step.entries.num_rows:
            self._append(step.entries, rows)

    def _append(self, entries: pa.RecordBatch, rows: pa.RecordBatch | None) -> None:
        numbers = self.operator.position, self._watermark_ns, len(self.extent), self._results
        self.log.append(Block(*numbers, entries, rows))


def _with_older(reader: LogReader, found: EventualCheckpoint) -> list[Kept]:
    """The segments that were read, after those that were not: these are before the first one that was."""
    if not found.kept:
        return []
    first = found.kept[0]
    older = sorted((each for each in reader.ids if each.number < first.id.number), key=lambda each: each.number)
    return [*(Kept(each, first.ends, first.results, 0, 0) for each in older), *found.kept]
