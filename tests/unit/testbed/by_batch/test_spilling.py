"""Retained output that is too much for memory goes to the store, and comes back from there."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from experiments.errors import BadInput
from testbed.core.by_batch.retained import HELD_UP_AT, Retained
from testbed.core.by_batch.sending import BatchSending
from testbed.core.effects import Discard, Fetch, Spill
from testbed.core.frames import Frame, FrameKind, decode_log
from testbed.core.partition.partition import PartitionLimits
from testbed.core.segments import held_bytes
from testbed.simulation import CrashMoment, Fault
from tests.unit.testbed.campaigns import first_and_rest, parts, quick
from tests.unit.testbed.planting import assert_noticed, notice_of
from tests.unit.testbed.recovery.runs import FLOWS, simulated
from tests.unit.testbed.runs import oracle

SCHEMA = pa.schema([("key", pa.int64()), ("name", pa.string())])
BOUND, ROWS = 100_000, 50
LITTLE = PartitionLimits(retained_bytes=3000)
SHUFFLED = [flow for flow in FLOWS if flow != "chain"]  # else a slot has all that a lost partition sends to
SPILLING = [*((flow, "passive") for flow in SHUFFLED), ("joined", "blocking")]
AWAY = 0.005  # a lost worker comes back late, so that much is sent meanwhile


def frame(channel, sequence):
    names = [f"record {sequence}-{each}" for each in range(ROWS)]
    batch = pa.record_batch({"key": np.arange(ROWS) + sequence, "name": names}, schema=SCHEMA)
    return Frame(FrameKind.DATA, 1, channel, sequence, 0, b"", batch)


class Store:
    """Does what `Retained` asks for, but for a while nothing."""

    def __init__(self, most_bytes=BOUND, channels=2):
        self.asked, self.objects = [], {}
        self.retained = Retained(range(channels), 0, "a.0/sent-{}-1", most_bytes, self.asked)

    def answer(self):
        """Everything that was asked for, until nothing more is."""
        while self.asked:
            match self.asked.pop(0):
                case Spill(key, content):
                    self.objects[key] = b"".join(map(bytes, content()))
                    self.retained.on_spilled(key)
                case Fetch(key):
                    self.retained.on_fetched(key, decode_log(self.objects[key], [SCHEMA] * 2))
                case Discard(keys):
                    for key in keys:
                        del self.objects[key]


def buffer_bytes(retained):
    """What Arrow holds for the frames that are in memory, each buffer once."""
    batches = (frame.batch for segment in retained.segments for frame in segment.frames or ())
    buffers = (buffer for batch in batches for column in batch.columns for buffer in column.buffers() if buffer)
    return sum({buffer.address: buffer.size for buffer in buffers}.values())


def test_memory_is_bounded_while_a_receiver_is_away():
    store = Store()
    retained, most, sent = store.retained, 0, 0
    for sequence in range(1, 400):
        for channel in (0, 1):
            retained.add(frame(channel, sequence))
            sent += held_bytes(frame(channel, sequence))
        store.answer()
        most = max(most, buffer_bytes(retained) if sequence % 20 == 0 else 0)
    assert sent > 10 * BOUND
    assert BOUND / 4 < most <= BOUND
    assert sum(map(len, store.objects.values())) > 4 * most


def test_all_that_was_sent_comes_back_with_little_of_it_in_memory():
    store = Store()
    retained, most = store.retained, 0
    for sequence in range(1, 300):
        retained.add(frame(sequence % 2, sequence))
        store.answer()
    for channel in (0, 1):
        found = []
        for place in range(retained.since(channel, 0), retained.end(channel)):
            if retained.read("receiver", channel, place) is None:
                store.answer()
            found.append(retained.read("receiver", channel, place))
            most = max(most, buffer_bytes(retained))
        retained.leave("receiver")
        assert found == [frame(channel, each) for each in range(1, 300) if each % 2 == channel]
    assert most <= BOUND * 5 / 4


def test_what_a_newer_line_covers_is_deleted_also_on_its_way_to_the_store():
    store = Store()
    for sequence in range(1, 200):
        store.retained.add(frame(0, sequence))
        if sequence < 100:
            store.answer()
    assert store.objects
    assert store.asked
    store.retained.mark(1)
    store.retained.trim(1)
    store.answer()
    assert (store.objects, store.retained.frames, store.retained.unstored_bytes) == ({}, 0, 0)


def test_a_partition_waits_for_a_store_that_refuses_and_goes_on_once_it_takes():
    store = Store()
    retained = store.retained
    while not retained.overfull:
        retained.add(frame(0, retained.end(0)))
    assert retained.unstored_bytes > HELD_UP_AT * BOUND
    (spill,) = store.asked
    store.asked.clear()
    retained.on_refused(spill.key)
    retained.add(frame(0, retained.end(0)))
    assert not store.asked
    retained.retry()
    store.answer()
    assert not retained.overfull
    assert retained.read("receiver", 0, 0) is None


@pytest.mark.parametrize("seeds", first_and_rest(range(4), 2))
@pytest.mark.parametrize(
    "of", quick(SPILLING, [("fused", "passive"), ("windowed", "passive"), ("joined", "blocking")]), ids="-".join
)
def test_nothing_is_lost_or_doubled_with_output_that_is_spilled(of, seeds):
    (flow, strategy), fetched = of, 0
    for seed in seeds:
        outcome = simulated(flow, strategy, seed, limits=LITTLE, refusals=0.2 * (seed % 2), returns=AWAY).run()
        assert outcome.published == oracle(flow), f"seed {seed}"
        fetched += outcome.fetched
    assert fetched


@pytest.mark.extended
@pytest.mark.parametrize("part", parts(4))
def test_a_thousand_schedules_with_output_that_is_spilled(part):
    spilled = fetched = 0
    for seed in range(part * 250, (part + 1) * 250):
        limits = replace(LITTLE, retained_bytes=1 + 3000 * (seed % 4), frames_in_flight=1 + seed % 8)
        outcome = simulated("tiny", "passive", seed, limits=limits, refusals=0.1 * (seed % 3), returns=AWAY).run()
        assert outcome.published == oracle("tiny"), f"seed {seed}"
        spilled, fetched = spilled + outcome.spilled, fetched + outcome.fetched
    assert spilled > 1000
    assert fetched > 500


@pytest.mark.extended
def test_spilled_output_that_is_spoilt_costs_a_line_and_no_record():
    spoilt = 0
    for seed in range(25):
        spoiling = [Fault(CrashMoment.ANY, 300 + 7 * seed, late=True, spoils=True), Fault(CrashMoment.ANY, 5)]
        limits = replace(LITTLE, retained_bytes=1)
        outcome = simulated("tiny", "passive", seed, faults=spoiling, limits=limits, returns=AWAY).run()
        assert outcome.published == oracle("tiny"), f"seed {seed}"
        spoilt += outcome.fallbacks
    assert spoilt > 2


def test_nothing_is_retained_where_nobody_goes_back_alone():
    simulation = simulated("joined", "global", 1)
    simulation.run()
    assert not any(p.sending.retained.frames for worker in simulation.workers for p in worker.partitions.values())


def test_no_memory_at_all_is_refused():
    with pytest.raises(BadInput, match="retained_bytes"):
        PartitionLimits(retained_bytes=0)


def one_place_on(retained, reader, channel, place, real=Retained.read):
    return real(retained, reader, channel, min(place + 1, retained.end(channel) - 1))


def dropped_before_it_is_stored(retained, real=Retained._spill):
    real(retained)
    if (segment := retained._in_store.get(retained._under_way)) is not None:
        segment.frames = None


def kept_in_memory(retained, key):
    retained._under_way = None
    retained._count_stored(retained._in_store[key])
    retained._in_store[key].stored = False


def never_full(retained):
    return False


def nothing_discarded(retained, number, real=Retained.trim):
    real(retained, number)
    retained._effects[:] = [each for each in retained._effects if not isinstance(each, Discard)]


def read_on_for_ever(retained, reader):
    retained._read.pop(reader, None)


def retained_by_all(sending, link, frame, real=BatchSending._post):
    if sending._retained_bytes is None:
        sending.retained.add(frame)
    real(sending, link, frame)


PLANTS = {
    "a frame is left out of what is read back": (Retained, "read", one_place_on, "ChannelGap"),
    "frames go before the store has them": (Retained, "_spill", dropped_before_it_is_stored, "Stuck|IndexError"),
    "spilled frames stay in memory": (Retained, "on_spilled", kept_in_memory, "bytes of retained output in memory"),
    "a full memory holds nobody up": (Retained, "overfull", property(never_full), "bytes of retained output in memory"),
    "what is trimmed stays in the store": (Retained, "trim", nothing_discarded, "and needs"),
    "segments that were read stay": (Retained, "_close", read_on_for_ever, "more than one segment"),
}


def notice(seed, strategy="passive"):
    """What is wrong with a run; None if nothing is."""
    flow = ("tiny", "chain", "joined")[seed % 3]
    limits = replace(LITTLE, retained_bytes=1 + 3000 * (seed % 3))
    run = simulated(flow, strategy, seed, limits=limits, returns=AWAY, refusals=0.1)
    return notice_of(run.run, flow, IndexError)


@pytest.mark.parametrize("plant", PLANTS)
def test_an_error_in_spilling_is_noticed(plant, monkeypatch):
    assert_noticed(monkeypatch, PLANTS[plant], notice, range(12))


def test_output_that_is_kept_for_nobody_is_noticed(monkeypatch):
    plant = BatchSending, "_post", retained_by_all, "no recovery asks for"
    assert_noticed(monkeypatch, plant, lambda seed: notice(seed, "global"), [1])
