"""A sink puts out nothing tentative of a batch whose exact output is out, and waits until it knows that."""

import pyarrow as pa
import pytest

from testbed.core.by_batch.cutting import BORDER, Batching
from testbed.core.by_batch.publications import Publications
from testbed.core.checkpoints import initial_line
from testbed.core.control import Absent, Go, Restore
from testbed.core.effects import Publish, PublishTentative
from testbed.core.frames import Frame, FrameKind
from tests.unit.testbed.lone_partitions import lone_by_batch, named
from tests.unit.testbed.small_flows import laid_out


@pytest.fixture
def effects():
    return []


@pytest.fixture
def publications(effects):
    return Publications(effects)


def tentative(*batches):
    return [PublishTentative(batch, ()) for batch in batches]


def put_out(publications, *batches):
    for each in tentative(*batches):
        publications.put_out(each)


def test_tentative_output_waits_while_the_sink_does_not_know_what_is_out(publications, effects):
    publications.ask()
    effects.clear()
    put_out(publications, 3, 4, 5)
    assert effects == []
    publications.on_published(5)  # the numbers of batches begin at 1
    assert effects == tentative(5)
    publications.on_published(5)
    put_out(publications, 4, 6)
    assert effects == tentative(5, 6)


def test_a_sink_that_does_not_ask_does_not_wait(publications, effects):
    put_out(publications, 3)
    assert effects == tentative(3)


def test_what_waits_belongs_to_a_life(publications, effects):
    publications.ask()
    put_out(publications, 3)
    publications.restore()
    effects.clear()
    publications.ask()
    publications.on_published(0)
    assert tentative(3)[0] not in effects


LAYOUT = laid_out("tiny")[0]


def go(sink, epoch):
    """Go from the beginning, with one of two inputs absent, and ask what is out."""
    sink.restore(Restore(epoch, initial_line(LAYOUT)[sink.number], ()), {})
    sink.on_order(Go(epoch, -1))
    sink.on_order(Absent(epoch, (sink.inputs[1].sender,)))
    assert Publish(0, ()) in sink.take_effects()


@pytest.fixture
def sink():
    found = lone_by_batch(LAYOUT, named(LAYOUT, "out.0"), batching=Batching(10, 2))
    go(found, 1)
    return found


def fed(sink):
    """Four batches come on the other input; returns the batches of the tentative output that it puts out."""
    channel, epoch = sink.inputs[0], sink.epoch
    rows = pa.RecordBatch.from_pylist([dict.fromkeys(channel.schema.names, 1)], schema=channel.schema)
    for batch in range(4):
        sink.on_frame(Frame(FrameKind.DATA, epoch, channel.id, batch + 1, 0, b"", rows))
        sink.on_frame(Frame(FrameKind.BORDER, epoch, channel.id, batch + 1, 0, BORDER.pack(batch)))
    return taken(sink)


def taken(sink):
    """Let it take what it can; returns the batches of the tentative output that it puts out."""
    while (ready := sink.next_channel()) is not None:
        sink.step(ready)
    return [each.batch for each in sink.take_effects() if isinstance(each, PublishTentative)]


def test_a_sink_takes_no_further_batch_while_tentative_output_waits(sink):
    """What waits here is in no queue that could be full, so it would grow without bound."""
    assert fed(sink) == []
    assert (sink.batch, sink.ready_channels()) == (0, [])
    sink.on_published(2)
    assert taken(sink) == [2, 3]


def test_a_sink_that_is_restored_meanwhile_takes_input_again(sink):
    assert fed(sink) == []
    go(sink, 2)
    assert (fed(sink), sink.batch) == ([], 0)
    sink.on_published(0)
    assert taken(sink) == [0, 1, 2, 3]
