"""Processes records in a partition: its source, operator or sink."""

from __future__ import annotations

import pyarrow as pa

from testbed.core.dataflow.graph import Element
from testbed.core.dataflow.layout import PartitionLayout
from testbed.core.effects import PartitionEffect, Publish, Write
from testbed.core.frames import Frame
from testbed.core.partition.counts_and_watermarks import Tally, Watermarks
from testbed.core.partition.sending import Sending
from testbed.core.partition.snapshots import Snapshots
from testbed.operators import END_OF_TIME_NS, Delivery, Operator, Sink, Source
from testbed.operators.state import State


class Processing:
    """Owns the partition's copy of the dataflow's element, with its state.

    element   the copy; between `leave` and `restore` the one of the layout, which has no state
    """

    def __init__(
        self,
        layout: PartitionLayout,
        sending: Sending,
        snapshots: Snapshots,
        watermarks: Watermarks,
        tally: Tally,
        effects: list[PartitionEffect],
    ) -> None:
        self._layout, self._sending, self._snapshots = layout, sending, snapshots
        self._watermarks, self._tally, self._effects = watermarks, tally, effects
        self._ports = {channel.id: channel.port for channel in layout.inputs}
        self.element: Element = layout.element

    def leave(self) -> None:
        """Let the state go: a recovery begins, and there is not room for it twice."""
        self.element = self._layout.element

    def restore(self, element: Element) -> None:
        """Go on with this element and its state."""
        self.element = element

    @property
    def is_restored(self) -> bool:
        """Whether there is an element with its state: not before `restore`, nor after `leave`."""
        return self.element is not self._layout.element

    @property
    def states(self) -> dict[str, State]:
        """The operator's state by name."""
        return states_of(self.element)

    def read(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """What a source sends of a batch that it has read; raises `TypeError` if this is no source."""
        if not isinstance(self.element, Source):
            raise TypeError(f"{self._layout.name} is no source: it takes no input")
        return self.element.process(batch)

    def process(self, frame: Frame) -> None:
        """Process data, send what that makes the operator emit, and advance event time."""
        if isinstance(self.element, Sink):
            self._deliver(self.element, frame)
        elif frame.batch is not None and isinstance(self.element, Operator):
            self._tally.records_in += frame.rows
            self._sending.emit(self.element.process(self._ports[frame.channel], frame.batch))
        reached_ns = self._watermarks.advance(frame.channel, frame.watermark_ns)
        if reached_ns is not None:
            self._advance(reached_ns)

    def publish(self, number: int) -> None:
        """The output of a sink up to this checkpoint will never be undone: it may be published."""
        for each, frames in self._snapshots.take_publishable(number):
            self._effects.append(Publish(each, tuple(f.batch for f in frames if f.batch is not None)))

    def _deliver(self, sink: Sink, frame: Frame) -> None:
        if frame.batch is None:  # it has a watermark only
            return
        self._tally.records_in += frame.rows
        if sink.delivery is Delivery.EXACTLY_ONCE:
            self._snapshots.hold(frame)
        else:
            self._effects.append(Write(frame.batch))

    def _advance(self, reached_ns: int) -> None:
        if isinstance(self.element, Operator):
            self._sending.emit(self.element.advance(reached_ns))
        self._watermarks.current_ns = reached_ns
        if reached_ns == END_OF_TIME_NS:
            self._sending.announce()


def states_of(element: Element) -> dict[str, State]:
    """The state of an element by name; nothing for a source or sink."""
    return element.states() if isinstance(element, Operator) else {}
