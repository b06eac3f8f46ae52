"""Processes the records of a batch in a partition."""

from __future__ import annotations

import pyarrow as pa

from testbed.core.effects import Publish, PublishTentative
from testbed.core.frames import Frame
from testbed.core.partition.processing import Processing
from testbed.operators import Delivery, Sink


class BatchProcessing(Processing):
    """A sink publishes batch by batch, without waiting for a line of checkpoints: what a batch has never changes.

    tentative   whether records may be missing from now on: then the output of a sink of either kind is set apart
    """

    _output: list[pa.RecordBatch]  # of a sink, of the batch that is being processed
    tentative = False

    def forget_output(self) -> None:
        """A recovery begins, which each life does: what was gathered comes again."""
        self._output, self.tentative = [], False

    def end_batch(self, batch: int) -> Publish | None:
        """All of a batch has been processed; returns what a sink with exactly-once delivery has to publish of it.

        Its number is one more than the batch: 0 stands for nothing published.
        """
        output, self._output = tuple(self._output), []
        return Publish(batch + 1, output) if output else None

    def end_tentative_batch(self, batch: int, end_ns: int) -> PublishTentative | None:
        """All that there is of a batch has been processed; returns what a sink has of it.

        Event time goes on to the end of the batch [ns], since channels from which nothing comes would hold it up.
        """
        if end_ns > self._watermarks.current_ns:
            self._advance(end_ns)
        output, self._output = tuple(self._output), []
        return PublishTentative(batch, output) if output else None

    def _deliver(self, sink: Sink, frame: Frame) -> None:
        if sink.delivery is not Delivery.EXACTLY_ONCE and not self.tentative:
            super()._deliver(sink, frame)
        elif frame.batch is not None:
            self._tally.records_in += frame.rows
            self._output.append(frame.batch)
