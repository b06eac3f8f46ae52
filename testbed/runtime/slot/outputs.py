"""Publishes the output of a slot's sinks, in a thread that may block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa

from experiments.errors import AftershockError
from testbed.core.dataflow.layout import PartitionLayout
from testbed.core.effects import PublishTentative
from testbed.core.partition.partition import Partition
from testbed.operators import Delivery, Sink
from testbed.queries import BATCH
from testbed.runtime.background import Background
from testbed.runtime.connectors.sinks import Files, Nowhere, Outlet
from testbed.runtime.job import Job, OutputKind
from testbed.runtime.slot.hosted import At

T = TypeVar("T")
MOST_UNWRITTEN = 32_768  # records that wait behind a writing: with one record a message, batches would tell too little
MOST_PUBLICATIONS = 2  # under way, of a sink with exactly-once delivery
MOST_BATCHES = 16  # under way, of a sink that publishes each batch by itself
# Numbers of one publication. A sink's copy that is promoted brings all that it withheld, which may take longer than a
# transaction may.
MOST_TOGETHER = MOST_BATCHES


class Outputs:
    """The sinks of a slot, by partition."""

    def __init__(self, job: Job, background: Background, at: At, wake: Callable[[int], None]) -> None:
        self._job, self._background, self._at, self._wake = job, background, at, wake
        self._sinks: dict[int, SinkOutput] = {}
        self._tentative = TentativeOutputs(job, background, wake)

    def open(self, layout: PartitionLayout) -> None:
        """A sink begins an epoch. Its tentative output that waits to be written goes first: exact output follows."""
        number = layout.number
        self._tentative.hurry(number)
        if number in self._sinks:
            self._sinks[number].reopen()
            return
        on_published, on_written = partial(self._at, number, Partition.on_published), partial(self._wake, number)
        self._sinks[number] = SinkOutput(self._job, layout, self._background, on_published, on_written)

    def write(self, number: int, batch: pa.RecordBatch) -> None:
        """Output of a plain sink: out at once."""
        self._sinks[number].write(batch)

    def publish(self, number: int, checkpoint: int, batches: Sequence[pa.RecordBatch]) -> None:
        """Output of an exactly-once sink up to a checkpoint."""
        self._sinks[number].publish(checkpoint, batches)

    def write_tentative(self, layout: PartitionLayout, effect: PublishTentative) -> None:
        """Output of a sink for a batch that misses input."""
        self._tentative.write(layout, effect)

    def is_full(self, number: int) -> bool:
        """Whether this is a sink whose output does not get out as fast as it comes: it takes nothing until some is."""
        return (number in self._sinks and self._sinks[number].full) or self._tentative.is_full(number)

    def is_out(self, number: int) -> bool:
        """Whether nothing that this partition has emitted is still under way."""
        return (number not in self._sinks or self._sinks[number].empty) and self._tentative.is_out(number)

    def close(self) -> None:
        """All outputs end."""
        for sink in self._sinks.values():
            sink.close()
        self._sinks = {}
        self._tentative.close()


class TentativeOutputs:
    """The tentative output of a slot's sinks, apart from the exact one: written as that of plain sinks is.

    A sink that never was tentative has none, so that a run without failures opens nothing.
    """

    def __init__(self, job: Job, background: Background, wake: Callable[[int], None]) -> None:
        self._job, self._background, self._wake = job, background, wake
        self._sinks: dict[int, SinkOutput] = {}

    def write(self, layout: PartitionLayout, effect: PublishTentative) -> None:
        """Each record with its batch."""
        number = layout.number
        if number not in self._sinks:
            job = replace(self._job, output=self._job.output.tentative)
            plain = replace(layout, element=Sink(Delivery.PLAIN))
            on_written = partial(self._wake, number)
            self._sinks[number] = SinkOutput(job, plain, self._background, lambda _: None, on_written)
        for batch in effect.batches:
            numbers = pa.array(np.full(batch.num_rows, effect.batch))
            self._sinks[number].write(batch.append_column(BATCH, numbers))

    def hurry(self, number: int) -> None:
        """Have what waits of a sink written before anything that is asked for later."""
        if number in self._sinks:
            self._sinks[number].hurry()

    def is_full(self, number: int) -> bool:
        """Whether the tentative output of a sink does not get out as fast as it comes."""
        return number in self._sinks and self._sinks[number].full

    def is_out(self, number: int) -> bool:
        """Whether nothing tentative of a sink is under way."""
        return number not in self._sinks or self._sinks[number].empty

    def close(self) -> None:
        """The session is over."""
        for sink in self._sinks.values():
            sink.close()
        self._sinks = {}


class SinkOutput:
    """The output of one sink, over all epochs of a session: a new outlet for each, since another slot may have had
    the sink in between.

    `on_published` is called after each publication with the last published number; `on_written` when there is room.
    Only one thing is written or published at a time, unless it is hurried; what gathers meanwhile is written or
    published together, since a transaction takes about as long with several batches as with one. A publication has at
    most `MOST_TOGETHER` numbers, the lowest first.
    """

    def __init__(
        self,
        job: Job,
        layout: PartitionLayout,
        background: Background,
        on_published: Callable[[int], None],
        on_written: Callable[[], None],
    ) -> None:
        self._job, self._layout, self._background = job, layout, background
        self._on_published, self._on_written = on_published, on_written
        self._publishes = layout.element == Sink(Delivery.EXACTLY_ONCE)
        self._outlet = outlet_of(job, layout)
        self._under_way, self._closed = 0, False
        self._unwritten, self._unwritten_records = list[pa.RecordBatch](), 0
        self._unpublished: dict[int, Sequence[pa.RecordBatch]] = {}
        self._most_publications = MOST_BATCHES if job.protocol_class.by_batch else MOST_PUBLICATIONS

    def reopen(self) -> None:
        """A new outlet for another epoch. What waited to be published comes again; what waited to be written stays."""
        self._leave()
        self._unpublished = {}
        self._outlet = outlet_of(self._job, self._layout)

    def close(self) -> None:
        """The session is over: publications in flight do not matter any more."""
        self._leave()
        self._closed = True

    @property
    def full(self) -> bool:
        """Whether as much is under way as may be."""
        if self._publishes:
            return self._under_way + len(self._unpublished) >= self._most_publications
        return self._unwritten_records >= MOST_UNWRITTEN

    @property
    def empty(self) -> bool:
        """Whether nothing is under way."""
        return not self._under_way and not self._unwritten and not self._unpublished

    def write(self, batch: pa.RecordBatch) -> None:
        """Write a batch, now or with others when the current writing is over."""
        self._unwritten.append(batch)
        self._unwritten_records += batch.num_rows
        if not self._under_way:
            self._write_all()

    def hurry(self) -> None:
        """Have what waits written right after what is under way: the background does its jobs in order."""
        if self._unwritten:
            self._write_all()

    def publish(self, number: int, batches: Sequence[pa.RecordBatch]) -> None:
        """Publish output under its number, now or with others when the current publication is over."""
        self._unpublished[number] = batches
        if not self._under_way:
            self._publish_all()

    def _publish_all(self) -> None:
        outputs = {number: self._unpublished.pop(number) for number in sorted(self._unpublished)[:MOST_TOGETHER]}
        self._under_way += 1
        outlet = self._outlet
        self._background.submit(
            partial(_attempted, partial(outlet.publish, outputs)),
            partial(self._after_publication, outlet),
        )

    def _write_all(self) -> None:
        batches, self._unwritten, self._unwritten_records = self._unwritten, [], 0
        self._under_way += 1
        outlet = self._outlet
        self._background.submit(
            partial(_attempted, partial(outlet.write, batches)), partial(self._after_writing, outlet)
        )

    def _after_writing(self, outlet: Outlet, found: AftershockError | None) -> None:
        """An outlet that was left may fail, as after a publication."""
        self._under_way -= 1
        if self._closed:
            return
        if found is not None and self._outlet is outlet:
            raise found
        if self._unwritten:
            self._write_all()
        self._on_written()

    def _after_publication(self, outlet: Outlet, found: int | AftershockError) -> None:
        """An outlet that was left may fail: what it had to publish comes again."""
        self._under_way -= 1
        if self._closed:
            return
        if isinstance(found, AftershockError) and self._outlet is outlet:
            raise found
        if self._unpublished and not self._under_way:
            self._publish_all()
        if not isinstance(found, AftershockError):
            self._on_published(found)

    def _leave(self) -> None:
        """Abandon unpublished output: a successor publishes it from the logs, and must not be fenced by this sink."""
        self._outlet.abandon()
        self._background.submit(self._outlet.close, lambda _: None)


def _attempted(act: Callable[[], T]) -> T | AftershockError:
    try:
        return act()
    except AftershockError as error:
        return error


def outlet_of(job: Job, layout: PartitionLayout) -> Outlet:
    """Where the output of a sink partition goes."""
    if job.output.kind is OutputKind.NOWHERE:
        return Nowhere()
    if job.output.kind is OutputKind.KAFKA:
        from testbed.runtime.connectors.topics import KafkaResults

        return KafkaResults(job, layout)
    return Files(Path(job.output.folder) / layout.name)
