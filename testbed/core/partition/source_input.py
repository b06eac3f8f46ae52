"""Reads the input of a source partition: new input, and after a restore first what was in flight."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from testbed.core.dataflow.layout import PartitionLayout
from testbed.core.partition.counts_and_watermarks import Watermarks
from testbed.core.partition.processing import Processing
from testbed.core.partition.readings import Piece, Reading, Rereading
from testbed.core.partition.sending import Sending
from testbed.core.partition.snapshots import Snapshots
from testbed.operators import END_OF_TIME_NS, Source


class SourceInput:
    """Where a source reads on, and what it must read again. In partitions of other operators it does nothing.

    position   where the source reads on
    ended      whether it has read everything
    """

    def __init__(
        self,
        layout: PartitionLayout,
        processing: Processing,
        sending: Sending,
        snapshots: Snapshots,
        watermarks: Watermarks,
    ) -> None:
        self._source = layout.element if isinstance(layout.element, Source) else None
        self._outputs = layout.outputs
        self._processing, self._sending = processing, sending
        self._snapshots, self._watermarks = snapshots, watermarks
        self.position, self.ended, self._epoch = 0, False, -1
        self._again = Rereading()

    def restore(self, epoch: int, position: int, ended: bool, again: Iterable[Reading]) -> None:
        """Go on in this epoch from this position, after what has to be read and sent again."""
        self._epoch, self.position, self.ended = epoch, position, ended
        self._again = Rereading(again)

    @property
    def wanted(self) -> bool:
        """Whether there is something to read, new or again."""
        return self._source is not None and (self.rereads or not self.ended)

    @property
    def rereads(self) -> bool:
        """Whether something has yet to be read and sent again."""
        return bool(self._again)

    @property
    def span(self) -> tuple[int, int | None]:
        """From where input is wanted; and before which position that must end, if it is read again."""
        return self._again.span if self._again else (self.position, None)

    def on_input(
        self, batch: pa.RecordBatch | None, position: int, ended: bool, times_ns: tuple[int, int] | None = None
    ) -> None:
        """A batch was read; `position` is where to read on, and `ended` says that nothing more will come.

        `times_ns`: of the first and the last event read, if the input tells them: those for other sources count, too.
        Raises `SourceChanged` for another batch than before where it is read again.
        """
        if self._again:
            self._read_again(batch, position)
            return
        start, self.position, self.ended = self.position, position, ended
        if batch is not None and batch.num_rows:
            self._snapshots.begin_reading(Reading(start, position, batch.num_rows, self._watermarks.current_ns))
            self._sending.emit(self._processing.read(batch))
            if self._source is not None and self._source.time is not None:
                self._watermarks.current_ns = batch.column(self._source.time)[-1].as_py()
        if times_ns is not None and self._source is not None and self._source.time is not None:
            self._watermarks.current_ns = max(self._watermarks.current_ns, times_ns[1])
        if ended:
            self._watermarks.current_ns = END_OF_TIME_NS
            self.announce()

    def start(self) -> None:
        """Send again what needs no input for that: where the source told only how far event time was."""
        while self._again and not self._again.first.rows:
            told = self._again.first.last
            self._send_again([(channel, None) for channel in self._outputs if channel.id in told])
        self.announce()

    def announce(self) -> None:
        """Tell how far event time is. After all that was in flight comes what is new."""
        if not self._again:
            self._snapshots.begin_reading(Reading(self.position, self.position, 0, self._watermarks.current_ns))
            self._sending.announce()

    def _read_again(self, batch: pa.RecordBatch | None, position: int) -> None:
        whole = self._again.add(batch, position)
        if whole is not None:
            self._send_again(list(self._sending.pieces(self._processing.read(whole))))
            self.start()

    def _send_again(self, pieces: list[Piece]) -> None:
        reading = self._again.pop()
        self._sending.resend(reading.frames(self._epoch, pieces, in_ranges=self._sending.sends_ranges))
