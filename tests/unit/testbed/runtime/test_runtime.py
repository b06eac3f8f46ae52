"""What the runtime is made of, piece by piece: jobs, sources, blocks, messages and threads."""

import json
import selectors
import threading
import time
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.errors import BadInput
from experiments.workloads.catalogue import NexmarkQuery, NexmarkSpec, ReachabilitySpec
from testbed.core.shapes import UnknownMessage
from testbed.runtime.background import Background, Results
from testbed.runtime.connectors.sources import Generated, columns, stream_of
from testbed.runtime.job import InputKind, Job, JobInput
from testbed.runtime.network import messages
from testbed.runtime.network.messages import Broken, Hello, Kept, Peers, SlotError, SlotStatus, Stop
from testbed.runtime.network.wire import BLOCK, LONGEST_BLOCK, BlockReader, WireError, block, turn
from tests.unit.testbed.small_job import HERE, JOB
from workloads.nexmark.stream import events
from workloads.schedule import Schedule


@pytest.mark.parametrize("job", [JOB, replace(JOB, workload=ReachabilitySpec(nodes=9), protocol="uncoordinated")])
def test_a_job_survives_its_way_to_the_slots(job):
    assert Job.from_json(json.loads(json.dumps(job.to_json()))) == job


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"slots": 0}, "slots"),
        ({"slots": 4}, "parallelism"),
        ({"checkpoint_interval_s": 0}, "checkpoint_interval_s"),
        ({"protocol": "hope"}, "protocol"),
        ({"protocol": "none"}, "delivery"),
        ({"workload": NexmarkSpec(query=NexmarkQuery.Q5)}, "workload.query"),
        ({"workload": ReachabilitySpec()}, "protocol of reachability"),
        ({"input": JobInput(InputKind.GENERATED, None, rate=0)}, "input.rate"),
    ],
)
def test_a_job_that_cannot_run_is_refused(change, named):
    with pytest.raises(BadInput, match=named):
        replace(JOB, **change)


def feed_of(index, **input_changes):
    job = replace(JOB, input=replace(JOB.input, **input_changes))
    return Generated(job, next(p for p in job.layout().partitions if (p.operator, p.index) == ("bids", index)))


def test_the_partitions_of_a_source_make_every_bid_once():
    found = []
    for index in range(JOB.parallelism):
        feed, position, ended = feed_of(index), 0, False
        while not ended:
            assert feed.read(position) == feed.read(position), "the same again from the same position"
            batch, position, ended, _ = feed.read(position)
            found += [] if batch is None else [batch]
    schema = found[0].schema
    bids = events(stream_of(JOB.workload, Schedule(0, JOB.input.rate)), 0, JOB.input.events).bids
    assert pa.Table.from_batches(found).sort_by("position") == pa.Table.from_batches([columns(bids, schema)])


def test_events_are_not_made_before_they_are_due():
    assert feed_of(0, start_ns=time.time_ns() + 10**12).read(0) is None


@given(st.lists(st.tuples(st.integers(-1, 9), st.binary(max_size=20))), st.integers(1, 30))
def test_blocks_arrive_in_any_pieces(given_blocks, size):
    data, reader, found = b"".join(block(*each) for each in given_blocks), BlockReader(), []
    for start in range(0, len(data), size):
        found += reader.feed(data[start : start + size])
    assert found == given_blocks


def test_a_block_that_nobody_would_send_is_refused():
    with pytest.raises(WireError, match="block of"):
        list(BlockReader().feed(BLOCK.pack(LONGEST_BLOCK + 1, 0)))


@pytest.mark.parametrize(
    "message",
    [
        Hello((HERE, 1), 2, 3),
        Peers(4, ((HERE, 1), None), (3, 0), 0, (2, 5)),
        Broken(1, 2),
        Stop(),
        SlotError("why"),
        SlotStatus(1, {0: {"records_in": 5}}, {0: 7}, (3,), (Kept(0, 1, 0.5, 100, True),), 12),
    ],
)
def test_a_message_of_a_slot_survives_its_way(message):
    assert messages.decode(messages.encode(message)) == message


@pytest.mark.parametrize("data", [b"", b"[]", b'["Job", {}]', b'["Peers", {"epoch": 1}]'])
def test_what_is_no_message_is_refused(data):
    with pytest.raises(UnknownMessage):
        messages.decode(data)


def test_a_result_that_raises_holds_back_no_other():
    selector, seen = selectors.DefaultSelector(), []
    results = Results(selector)
    background = Background(results, "test")

    def fail(_):
        raise BadInput("result", 2, "any other")

    for number in range(5):
        background.submit(lambda number=number: number, fail if number == 2 else seen.append)
    background._pool.shutdown(wait=True)
    with pytest.raises(BadInput):
        turn(selector, 1.0)
    turn(selector, 1.0)
    assert seen == [0, 1, 3, 4]
    results.close()


def test_a_thread_that_finishes_ends_what_is_under_way_and_begins_nothing_more():
    results, begun, may, done = Results(selectors.DefaultSelector()), threading.Event(), threading.Event(), []
    background = Background(results, "test")
    background.submit(lambda: (begun.set(), may.wait(60), done.append("under way")), lambda _: None)
    background.submit(lambda: done.append("waited"), lambda _: None)
    assert begun.wait(60)
    background.finish(0.05)
    assert done == [], "it hangs, and nobody waits for ever"
    may.set()
    background.finish(60)
    assert done == ["under way"]
    results.close()


def test_a_thread_tells_how_long_it_has_been_at_its_job():
    results, begun, may = Results(selectors.DefaultSelector()), threading.Event(), threading.Event()
    background = Background(results, "test")
    assert background.busy_s == 0.0
    background.submit(lambda: (begun.set(), may.wait(60)), lambda _: None)
    assert begun.wait(60)
    time.sleep(0.05)
    assert 0.05 <= background.busy_s < 60.0
    may.set()
    background.finish(60)
    assert background.busy_s == 0.0
    results.close()


def test_the_text_of_an_error_can_be_written_anywhere_and_is_not_long():
    assert messages.printable("no room in \udcff") == "no room in \\udcff"
    assert len(messages.printable("x" * 2000)) == messages.LONGEST_ERROR
