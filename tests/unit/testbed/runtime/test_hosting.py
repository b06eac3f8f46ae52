"""The partitions of one slot at work: outlets that fail, and a store that refuses."""

import pickle
import threading
import time
import weakref
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.errors import BadInput, EnvironmentFailure
from testbed.core.checkpoints import initial_line
from testbed.core.control import Dismiss, Go, NotStored, Ready, Rejoin, Restore, Stored, Unreadable
from testbed.core.effects import Publish
from testbed.operators import Delivery, Sink, Source
from testbed.runtime.connectors.sinks import Outlet, Superseded
from testbed.runtime.job import InputKind, JobInput, OutputKind, OutputSpec
from testbed.runtime.network.wire import turn
from testbed.runtime.slot import outputs
from testbed.runtime.slot.storing import STORE_INTERVALS
from testbed.stores.store import DirectoryStore, MemoryStore
from tests.unit.testbed.queries.average_prices import SLOW
from tests.unit.testbed.runtime.lone_slot import LoneSlot
from tests.unit.testbed.small_job import JOB


class Overtaken(Outlet):
    """A sink that finds out, once it may, that another slot has it."""

    def __init__(self, may):
        self._may = may

    def publish(self, outputs):
        assert self._may.wait(60)
        raise Superseded("out.0")

    def write(self, batches):
        raise NotImplementedError


class Slow(Overtaken):
    """A sink that publishes nothing until it may, and nothing more once it was left."""

    left = False

    def publish(self, outputs):
        assert self._may.wait(60)
        if self.left:
            raise Superseded("out.0")

    def abandon(self):
        self.left = True


class BusySlot(LoneSlot):
    """The one slot of a job without end, with many checkpoints."""

    def __init__(self, folder, delivery=Delivery.PLAIN, protocol="uncoordinated"):
        job = replace(
            JOB,
            slots=1,
            parallelism=1,
            protocol=protocol,
            batch_length_s=0.1,
            checkpoint_interval_s=0.1,
            store=str(folder / "store"),
            input=JobInput(InputKind.GENERATED, None, rate=5000.0),
            output=OutputSpec(OutputKind.NOWHERE, delivery),
        )
        super().__init__(job)

    def run_from_start(self, epoch):
        self.restore(epoch)
        self.go(epoch)


@pytest.fixture
def alone(tmp_path):
    with closing(BusySlot(tmp_path)) as made:
        yield made


def test_a_slot_reports_also_while_a_partition_that_keeps_a_log_rolls_back(tmp_path):
    """Its operator is gone then, and its state may take seconds to be read."""
    output = OutputSpec(OutputKind.NOWHERE, Delivery.EXACTLY_ONCE)
    job = replace(JOB, workload=SLOW, protocol="output-log", slots=1, parallelism=1, store=str(tmp_path), output=output)
    with closing(LoneSlot(job)) as slot:
        slot.restore(1)
        (logged,) = slot.hosting.status().logs
        slot.begin(2)
        assert slot.hosting.status().logs == {}
        slot.restore(2)
        assert list(slot.hosting.status().logs) == [logged]


@pytest.mark.parametrize("later", ["the same session", "no session", "another epoch"])
def test_an_outlet_that_fails_ends_the_session_that_it_is_of_and_no_later_one(alone, monkeypatch, later):
    may = threading.Event()
    monkeypatch.setattr(outputs, "outlet_of", lambda *_: Overtaken(may))
    alone.run_from_start(1)
    alone.hosting._do(alone.hosting._hosted[alone.the(Sink)], Publish(1, ()))
    if later == "another epoch":
        alone.run_from_start(2)
    elif later == "no session":
        alone.hosting.close()
    may.set()
    alone.writing._pool.submit(lambda: None).result(60)
    with pytest.raises(Superseded) if later == "the same session" else nullcontext():
        turn(alone.selector, 1.0)


@pytest.mark.parametrize("first", ["it gets out", "another epoch"])
def test_what_a_sink_cannot_publish_in_time_holds_up_the_sources(tmp_path, monkeypatch, first):
    may = threading.Event()
    monkeypatch.setattr(outputs, "outlet_of", lambda *_: Slow(may))
    with closing(BusySlot(tmp_path, Delivery.EXACTLY_ONCE)) as slot:
        slot.run_from_start(1)
        source, sink = (slot.hosting._hosted[slot.the(kind)] for kind in (Source, Sink))
        for number in range(1, 1 + outputs.MOST_PUBLICATIONS):
            slot.hosting._do(sink, Publish(number, ()))
        slot.until(lambda: source.source_input.position and not source.wants_input)
        if first == "another epoch":
            slot.run_from_start(2)  # what waited is forgotten; what was under way still is, so one more fills the sink
            slot.hosting._do(sink, Publish(1, ()))
            slot.until(lambda: source.source_input.position and not source.wants_input)
        reached = source.source_input.position
        for _ in range(20):
            slot.turn()
        assert source.source_input.position == reached
        may.set()
        slot.until(lambda: source.source_input.position > reached)


def test_sources_read_nothing_while_a_store_refuses_and_go_on_once_it_takes(alone, tmp_path):
    (tmp_path / "store").write_text("no directory")
    alone.run_from_start(1)
    source = alone.the(Source)

    def position():
        return alone.hosting.status().positions[source]

    def refusals():
        return sum(isinstance(each, NotStored) for each in alone.told)

    alone.until(lambda: alone.hosting._storing.lags)
    held, before = position(), refusals()
    alone.until(lambda: refusals() >= before + 10)
    assert position() == held
    (tmp_path / "store").unlink()
    alone.until(lambda: position() > held)


def test_by_batches_sources_read_on_after_a_refusal_since_the_next_checkpoint_needs_input(tmp_path):
    (tmp_path / "store").write_text("no directory")
    with closing(BusySlot(tmp_path, protocol="batch-aligned")) as slot:
        slot.run_from_start(1)
        source = slot.hosting._hosted[slot.the(Source)]
        slot.until(lambda: any(isinstance(each, NotStored) for each in slot.told))
        late_s = time.monotonic() + 2 * STORE_INTERVALS * slot.hosting._timers.interval_s
        slot.until(lambda: time.monotonic() > late_s)
        refused_until = source.source_input.position
        slot.until(lambda: source.source_input.position > refused_until)
        (tmp_path / "store").unlink()
        slot.until(lambda: any(isinstance(each, Stored) for each in slot.told))


class Choosy(MemoryStore):
    """Refuses the first object of each partition, such as a large one, and takes what comes after it."""

    def __init__(self):
        super().__init__()
        self.refused = set()

    def _write(self, key, pieces):
        if key.split("/")[0] not in self.refused:
            self.refused.add(key.split("/")[0])
            raise EnvironmentFailure("too large", "make room")
        super()._write(key, pieces)


def test_what_a_store_takes_without_use_does_not_let_sources_read_on(alone, monkeypatch):
    """A checkpoint on top of one that was refused does not count, though the store has it."""
    alone.hosting._storing._store = store = Choosy()
    monkeypatch.setattr(alone.hosting._timers, "checkpoint_due", lambda _: False)
    alone.run_from_start(1)
    source = alone.hosting._hosted[alone.the(Source)]
    for _ in range(2):
        source.checkpoint(forced=True)
    alone.hosting._carry_out(source)
    alone.until(lambda: not alone.hosting._storing.is_busy(source.number))
    assert f"{source.layout.name}/state-2-1" in store.objects
    alone.until(lambda: alone.hosting._storing.lags)
    held = source.source_input.position
    for _ in range(20):
        alone.turn()
    assert source.source_input.position == held
    source.checkpoint()
    alone.hosting._carry_out(source)
    alone.until(lambda: source.source_input.position > held)


def test_a_state_that_cannot_be_serialised_ends_the_slot_and_names_its_owner(alone, monkeypatch):
    alone.run_from_start(1)
    partition = alone.hosting._hosted[alone.the(Sink)]
    monkeypatch.setattr(partition._protocol, "snapshot", lambda: alone)
    with pytest.raises(BadInput, match=f"state of {partition.layout.name}: .* allowed: values that pickle"):
        alone.until(lambda: False)


def test_all_partitions_of_a_slot_take_their_checkpoints_at_one_moment(alone, monkeypatch):
    """Nothing is processed in between, so that within a slot they always fit together.

    A slow disk must not decide: the timer passes over a partition whose last checkpoint is not stored. Here it waits.
    """
    alone.run_from_start(1)
    partitions = list(alone.hosting._hosted)
    storing, due = alone.hosting._storing, alone.hosting._timers.checkpoint_due

    def due_when_all_are_stored(now_s):
        return not any(storing.is_busy(each.number) for each in partitions) and due(now_s)

    monkeypatch.setattr(alone.hosting._timers, "checkpoint_due", due_when_all_are_stored)
    rounds = []

    def note():
        rounds.append(tuple(each.tally.checkpoints for each in partitions))
        return rounds[-1][0] >= 3

    alone.until(note)
    assert all(len(set(each)) == 1 for each in rounds)


def test_what_a_session_had_yet_to_read_back_does_not_hold_up_the_next_one(alone):
    """Two partitions wait for the thread that reads, and then the session ends."""
    read, reads = threading.Event(), []
    alone.storing.submit(read.wait, lambda _: None)
    keys = [f"{each.name}/state-1-1" for each in alone.layout.partitions]
    alone.hosting._restoring._store = store = MemoryStore()
    for key in keys:
        store.put(key, [b"large"])
    store.get = lambda key: reads.append(key) or b""
    alone.begin(1)
    for number, begun in enumerate(initial_line(alone.layout)):
        alone.hosting.order(number, Restore(1, replace(begun, number=1, state_keys=(keys[number],)), ()))
    alone.hosting.close()
    read.set()
    alone.storing._pool.submit(lambda: None).result(60)
    assert reads == []


class Planted:
    """When it is unpickled, it makes a file. It stands for any code of an attacker."""

    def __init__(self, path):
        self._path = path

    def __reduce__(self):
        return (Path.touch, (self._path,))


def test_an_object_that_somebody_else_wrote_is_never_unpickled(alone, tmp_path):
    """They know all but the key: where the store is, and how objects are named and made."""
    number, done = alone.the(Source), tmp_path / "done"
    of, key = alone.layout.partitions[number], f"{alone.layout.partitions[number].name}/state-1-1"
    DirectoryStore(tmp_path / "store").put(key, [pickle.dumps(Planted(done))])
    alone.run_from_start(1)
    begun = initial_line(alone.layout)[number]
    alone.begin(2)
    alone.hosting.order(number, Restore(2, replace(begun, number=1, state_keys=(key,)), ()))
    alone.until(lambda: Unreadable(of.number, 2, key) in alone.told)
    assert not done.exists()


def test_what_an_operator_had_is_gone_before_what_it_goes_back_to_is_built(alone, monkeypatch):
    alone.run_from_start(1)
    partition = alone.hosting._hosted[alone.the(Sink)]
    alone.until(lambda: partition.tally.records_in)
    had, left = weakref.ref(partition.processing.element), []
    rebuilt = partition.rebuilt
    monkeypatch.setattr(partition, "rebuilt", lambda *back: (left.append(had()), rebuilt(*back))[1])
    alone.run_from_start(2)
    assert left == [None]
    before = partition.tally.records_in
    alone.until(lambda: partition.tally.records_in > before)


def test_what_was_kept_for_others_is_gone_when_a_recovery_begins_though_somebody_was_reading_it(tmp_path):
    job = replace(JOB, protocol="batch-aligned", recovery="passive", slots=1, store=str(tmp_path / "store"))
    with closing(LoneSlot(replace(job, output=replace(job.output, folder=str(tmp_path / "output"))))) as slot:
        slot.restore(1)
        slot.go(1)
        source = slot.hosting._hosted[slot.layout.partitions[0].number]
        slot.until(lambda: source.sending.retained.frames)
        slot.hosting.order(source.number, Rejoin(2, 0, tuple(each.id for each in source.outputs), ()))
        kept = weakref.ref(source.sending.retained)
        slot.begin(3)
        assert kept() is None


def test_a_session_that_is_over_leaves_nothing_behind(tmp_path):
    with closing(BusySlot(tmp_path)) as slot:
        slot.run_from_start(1)
        slot.until(lambda: slot.hosting._hosted[slot.the(Sink)].tally.records_in)
        left = [weakref.ref(each) for each in slot.hosting._hosted]
    assert left
    assert [each() for each in left] == [None] * len(left)


def test_a_copy_that_is_of_no_more_use_lets_go_of_its_state_at_once(alone):
    alone.run_from_start(1)
    partition = alone.hosting._hosted[alone.the(Sink)]
    alone.until(lambda: partition.tally.records_in)
    had = weakref.ref(partition.processing.element)
    alone.hosting.order(partition.number, Dismiss(1))
    assert had() is None


def test_what_the_coordinator_says_during_a_restore_is_heard_after_it(tmp_path):
    """The store is read in another thread: a neighbour may be lost, and come back, meanwhile."""
    job = replace(JOB, protocol="batch-aligned", recovery="passive", slots=1, store=str(tmp_path / "store"))
    job = replace(job, output=replace(job.output, folder=str(tmp_path / "output")))
    with closing(LoneSlot(job)) as slot:
        slot.begin(1)
        (source, *_) = slot.layout.partitions
        outputs = tuple(channel.id for channel in source.outputs)
        restore = Restore(1, initial_line(slot.layout)[source.number], (), dict.fromkeys(outputs, 0))
        for order in (restore, Rejoin(2, 0, outputs, ()), Go(1)):
            slot.hosting.order(source.number, order)
        slot.until(lambda: len(slot.told) == 2)
    assert slot.told == [Ready(source.number, 1), Ready(source.number, 2)]
