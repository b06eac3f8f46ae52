"""Simulated runs in which what returns on a cycle goes to the store: nothing is lost, doubled, or waits for itself."""

from dataclasses import replace
from functools import partial

import pytest

from testbed.core.dataflow.layout import lay_out
from testbed.core.effects import Discard, Spill
from testbed.core.frames import log_parts
from testbed.core.partition.overflow import Overflow
from testbed.core.partition.partition import PartitionLimits
from testbed.core.partition.sending import Sending
from testbed.operators import Delivery
from testbed.protocols import PROTOCOLS
from testbed.queries.reachability import reachability
from tests.unit.testbed.campaigns import first_and_rest, parts
from tests.unit.testbed.cycles.spilling_runs import (
    LockstepSimulation,
    SpillingSimulation,
    SpoilingSimulation,
    TooMuchWaits,
    spilling,
)
from tests.unit.testbed.planting import assert_noticed, notice_of
from tests.unit.testbed.queries.test_reachability import EVENTS, FAULTS, inputs, net
from tests.unit.testbed.queries.test_reachability import SPEC as GRAPH
from tests.unit.testbed.ranges.lockstep import Differs
from tests.unit.testbed.runs import oracle
from workloads.reachability.input import reachable

ON_CYCLES = ("uncoordinated", "communication-induced")
ONE_BY_ONE = PartitionLimits(frames_in_flight=1, records_per_message=1, messages_in_range=1, returning_bytes=1)


@pytest.mark.parametrize("seeds", first_and_rest(range(12), 3))
@pytest.mark.parametrize("protocol", ON_CYCLES)
def test_nothing_is_lost_or_doubled_with_crashes_and_a_store_that_refuses(protocol, seeds):
    spilled = fetched = crashes = 0
    for seed in seeds:
        outcome = spilling("cyclic", protocol, seed, refusals=0.2 * (seed % 2)).run()
        assert outcome.published == oracle("cyclic"), f"seed {seed}"
        crashes += outcome.crashes
        spilled, fetched = spilled + outcome.spilled, fetched + outcome.fetched
    assert crashes
    assert spilled
    assert fetched


@pytest.mark.parametrize("refusals", [0.0, 0.3])
def test_it_is_the_same_without_a_protocol(refusals):
    outcome = spilling("cyclic", "none", 1, limits=ONE_BY_ONE, refusals=refusals).run()
    assert outcome.written == oracle("cyclic")
    assert outcome.fetched


@pytest.mark.extended
@pytest.mark.parametrize("part", parts(4, of_each_run=1))
@pytest.mark.parametrize("protocol", ON_CYCLES)
def test_hundreds_of_schedules(protocol, part):
    fetched = 0
    for seed in range(part * 100, (part + 1) * 100):
        outcome = spilling("cyclic", protocol, seed, refusals=0.1 * (seed % 3), spare_lines=seed % 2).run()
        assert outcome.published == oracle("cyclic"), f"seed {seed}"
        fetched += outcome.fetched
    assert fetched > 100


@pytest.mark.parametrize("seeds", first_and_rest(range(12), 2))
@pytest.mark.parametrize("protocol", ON_CYCLES)
def test_partitions_do_what_they_would_do_with_memory_for_everything(protocol, seeds):
    fetched = 0
    for seed in seeds:
        run = spilling("cyclic", protocol, seed, LockstepSimulation, refusals=0.1 * (seed % 2))
        assert run.run().published == oracle("cyclic"), f"seed {seed}"
        fetched += run.outcome.fetched
    assert fetched


@pytest.mark.parametrize("seeds", first_and_rest(range(20), 6))
@pytest.mark.parametrize("protocol", ON_CYCLES)
def test_what_is_spoilt_in_the_store_costs_a_recovery_and_no_record(protocol, seeds):
    recoveries = 0
    for seed in seeds:
        outcome = spilling("cyclic", protocol, seed, SpoilingSimulation, limits=ONE_BY_ONE, faults=()).run()
        assert outcome.published == oracle("cyclic"), f"seed {seed}"
        recoveries += outcome.recoveries
    assert recoveries


@pytest.mark.parametrize("protocol", [ON_CYCLES[0], pytest.param(ON_CYCLES[1], marks=pytest.mark.extended)])
def test_every_path_is_found_once_with_no_memory_for_what_returns(protocol):
    layout = lay_out(reachability(GRAPH, 2, Delivery.EXACTLY_ONCE))
    limits = PartitionLimits(frames_in_flight=1, records_per_message=4, returning_bytes=1)
    run = SpillingSimulation(layout, PROTOCOLS[protocol], inputs(), 1, faults=FAULTS, limits=limits)
    outcome = run.run(most_steps=200_000)
    assert net(outcome.published) == reachable(GRAPH, EVENTS)
    assert outcome.fetched


def last_segment_first(overflow, channel, upcoming, real=Overflow.bring):
    overflow._segments[channel].rotate(1)
    return real(overflow, channel, upcoming)


def one_frame_left_out(overflow, segment, real=Overflow._spill):
    real(overflow, segment)
    spill = overflow._effects.pop()
    overflow._effects.append(Spill(spill.key, partial(log_parts, segment.frames[1:])))


def later_frames_first(overflow, upcoming, frame, real=Overflow.add):
    if upcoming:
        real(overflow, upcoming, frame)
    else:
        upcoming.append(frame)


def kept_in_memory(overflow, key):
    segment = overflow._in_store.get(key)
    if segment is not None:
        segment.stored = True
        overflow._unstored_bytes -= segment.size


def nothing_discarded(overflow, channel, upcoming, real=Overflow.bring):
    found = real(overflow, channel, upcoming)
    overflow._effects[:] = [each for each in overflow._effects if not isinstance(each, Discard)]
    return found


def waits_for_itself(sending):
    return any(link.waiting for link in sending._links.values())


def forgets_nothing(overflow, stem, real=Overflow.restore):
    if getattr(overflow, "_stem", ""):
        overflow._stem = stem
    else:
        real(overflow, stem)


def with_piggyback_of_before(overflow, segment, real=Overflow._spill):
    said = [each.piggyback for each in segment.frames]
    stale = [getattr(overflow, "stale", said[0]), *said]
    segment.frames = [replace(each, piggyback=before) for each, before in zip(segment.frames, stale, strict=False)]
    overflow.stale = said[-1]
    real(overflow, segment)


SEEDS = range(60, 72)  # of all, one in twenty notices an operator that does not wait
PLANTS = {
    "the last segment comes back first": (Overflow, "bring", last_segment_first, "ChannelGap"),
    "a frame is left out of what is stored": (Overflow, "_spill", one_frame_left_out, "ChannelGap|IndexError"),
    "later frames leave first": (Overflow, "add", later_frames_first, "ChannelGap"),
    "spilled frames stay in memory": (Overflow, "on_spilled", kept_in_memory, "waited in memory"),
    "the operator does not wait for the store": (Overflow, "overfull", property(lambda _: False), "waited in memory"),
    "what was read back stays in the store": (Overflow, "bring", nothing_discarded, "left in the store"),
    "an operator waits for what it sends to itself": (Sending, "congested", property(waits_for_itself), "Stuck"),
    "what waited outlives a recovery": (Overflow, "restore", forgets_nothing, "Stuck|ChannelGap"),
}


def notice(seed):
    """What is wrong with a run; None if nothing is."""
    run = spilling("cyclic", ON_CYCLES[seed % 2], seed, limits=ONE_BY_ONE, refusals=0.1)
    return notice_of(partial(run.run, most_steps=20_000), "cyclic", IndexError, TooMuchWaits)


@pytest.mark.parametrize("plant", PLANTS)
def test_an_error_in_spilling_is_noticed(plant, monkeypatch):
    assert_noticed(monkeypatch, PLANTS[plant], notice, SEEDS)


def run_all_in_lockstep():
    for seed in range(6):
        spilling("cyclic", "communication-induced", seed, LockstepSimulation, limits=ONE_BY_ONE).run()


def test_another_piggyback_than_without_spilling_is_noticed(monkeypatch):
    monkeypatch.setattr(Overflow, "_spill", with_piggyback_of_before)
    with pytest.raises(Differs, match="sent on channel"):
        run_all_in_lockstep()
