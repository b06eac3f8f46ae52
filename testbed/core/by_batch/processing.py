"""What a partition does with the records of a batch."""

from __future__ import annotations

import pyarrow as pa

from testbed.core.effects import Publish
from testbed.core.frames import Frame
from testbed.core.processing import Processing
from testbed.operators import Delivery, Sink


class BatchProcessing(Processing):
    """A sink publishes batch by batch, without waiting for a line of checkpoints: what a batch has never changes."""

    _output: tuple[pa.RecordBatch, ...] = ()

    def forget_output(self) -> None:
        """A recovery begins: what was gathered comes again."""
        self._output = ()

    def end_batch(self, batch: int) -> Publish | None:
        """All of a batch has been processed; returns what a sink with exactly-once delivery has to publish of it.

        Its number is one more than the batch: 0 stands for nothing published.
        """
        output, self._output = self._output, ()
        return Publish(batch + 1, output) if output else None

    def _deliver(self, sink: Sink, frame: Frame) -> None:
        if sink.delivery is not Delivery.EXACTLY_ONCE:
            super()._deliver(sink, frame)
        elif frame.batch is not None:
            self._tally.records_in += frame.rows
            self._output += (frame.batch,)
