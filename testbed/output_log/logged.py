"""An operator with its output log: works, saves parts of its state, and is restored from its output."""

from __future__ import annotations

import pyarrow as pa

from testbed.operators.parts import Parted
from testbed.output_log.blocks import Block
from testbed.output_log.eventual import EventualCheckpoint, find_eventual
from testbed.output_log.log import KeptSegment, OutputLog
from testbed.output_log.policies import Policy
from testbed.output_log.reading import LogReader
from testbed.output_log.recorded import RecordedOperator


class LoggedOperator(RecordedOperator):
    """Takes input in and puts rows out, numbered from 1, none of them before the log has it: `commit` returns them."""

    def __init__(self, operator: Parted, log: OutputLog, policy: Policy) -> None:
        """`operator`: opened and empty."""
        super().__init__(operator, policy)
        self.log = log
        self._delivered = 0
        self._unsent: list[pa.RecordBatch] = []

    def restore(self, reader: LogReader, delivered: int = 0, replayable_after: int = 0) -> EventualCheckpoint:
        """Go on from the log; the records after `replay_after` of what this returns have to come next.

        Operators that have written this log before may still be alive. From now on, their `trim` deletes nothing and
        raises `LogTakenOver`.

        Args:
            reader: of this operator's log.
            delivered: how many of the rows are known to have arrived; these are not emitted again.
            replayable_after: the records after this position can be replayed.

        Raises:
            StateLost: if the state can't be rebuilt.
            EnvironmentFailure: if the store refuses.
        """
        self.log.begin_life()
        # What was listed earlier may be deleted by now. What is listed after the life has begun stays, as far as a
        # recovery needs it.
        reader.refresh()
        found = find_eventual(reader, delivered, replayable_after)
        self.load(found)
        self._delivered, self._unsent = delivered, found.unsent
        kept = _with_older(reader, found)
        strays = reader.ids.difference(each.id for each in kept)
        self.log.restore(kept, strays)
        return found

    def commit(self) -> list[pa.RecordBatch]:
        """Make the log safe; returns the rows that may be sent now, which are those that have not arrived.

        Raises `EnvironmentFailure` if the store refuses. Nothing is lost then, and nothing may be sent.
        """
        block = self.log.commit(self.extent)
        self._bytes += block.nbytes if block is not None else 0
        rows, self._unsent = list(self._unsent), []
        fresh = block.rows_after(self._delivered) if block is not None else None
        return rows if fresh is None else [*rows, fresh]

    def _keep(self, block: Block) -> None:
        self.log.append(block)


def _with_older(reader: LogReader, found: EventualCheckpoint) -> list[KeptSegment]:
    """The segments that were read, after those that were not: these are before the first one that was."""
    if not found.kept:
        return []
    first = found.kept[0]
    older = sorted((each for each in reader.ids if each.number < first.id.number), key=lambda each: each.number)
    return [*(KeptSegment(each, first.ends, first.results, 0, 0) for each in older), *found.kept]
