"""Reads and sends the input of a source batch by batch."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from testbed.core.by_batch.cutting import LAST_BATCH, Batching, Cut, Cutter
from testbed.core.dataflow.layout import PartitionLayout
from testbed.core.partition.counts_and_watermarks import Watermarks
from testbed.core.partition.processing import Processing
from testbed.core.partition.sending import Sending
from testbed.core.partition.snapshots import Snapshots
from testbed.core.partition.source_input import SourceInput


class BatchSource(SourceInput):
    """A source reads ahead of what it sends: a batch is sent once its input has come to a later one.

    at      the border that was sent last, with where to go on behind it
    """

    def __init__(
        self,
        layout: PartitionLayout,
        batching: Batching,
        processing: Processing,
        sending: Sending,
        snapshots: Snapshots,
        watermarks: Watermarks,
        end_batch: Callable[[int], None],
        come_to_end: Callable[[int], None],
    ) -> None:
        super().__init__(layout, processing, sending, snapshots, watermarks)
        self._batching, self._end_batch, self._come_to_end = batching, end_batch, come_to_end

    def restore_at(self, cut: Cut, ended: bool) -> None:
        """Go on behind this border."""
        self.at, self.position, self.ended = cut, cut.position, ended
        if self._source is not None and self._source.due is not None:
            length_ns = self._batching.length_ns
            self._cutter = Cutter(self._source.due, length_ns, cut.batch, cut.position, cut.skipped)

    def on_input(
        self, batch: pa.RecordBatch | None, position: int, ended: bool, times_ns: tuple[int, int] | None = None
    ) -> None:
        """A batch was read; `position` is where to read on, and `ended` says that nothing more will come.

        `times_ns`: of the first and the last event read, if the input tells them: those for other sources count, too.
        Raises `UnorderedSource`.
        """
        for cut in self._cutter.add(batch, position, ended, times_ns):
            if cut.batch == LAST_BATCH:
                self._come_to_end(self.at.batch)
            if cut.rows is not None:
                self._sending.emit(self._processing.read(cut.rows))
            self.at = cut
            self._watermarks.current_ns = self._batching.end_ns(cut.batch)
            self._end_batch(cut.batch)
        self.position, self.ended = position, ended

    def start(self) -> None:
        """There is nothing to send again."""

    def announce(self) -> None:
        """Borders tell how far event time is."""
