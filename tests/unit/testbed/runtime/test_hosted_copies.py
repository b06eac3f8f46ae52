"""Copies of partitions in a slot: what they open, what is told of them, how they leave; and jobs that want them."""

import time
import weakref
from contextlib import closing
from dataclasses import replace

import pytest

from experiments.errors import BadInput
from testbed.core.control import Dismiss, Promote
from testbed.core.frames import Frame, FrameKind
from testbed.core.partition.partition import PartitionLimits
from testbed.operators import Delivery, Sink, Source
from testbed.runtime.connectors.sinks import Nowhere
from testbed.runtime.job import InputKind, JobInput, OutputKind, OutputSpec
from testbed.runtime.slot import outputs
from tests.unit.testbed.runtime.lone_slot import LoneSlot
from tests.unit.testbed.small_job import JOB

ACTIVE = {"protocol": "batch-aligned", "recovery": "partially-active", "replication_ratio": 1.0}


class CopyingSlot(LoneSlot):
    """A slot that has a copy of every partition of a job."""

    def __init__(self, folder, **changes):
        nowhere, endless = OutputSpec(OutputKind.NOWHERE, Delivery.EXACTLY_ONCE), JobInput(InputKind.GENERATED, None)
        of_one = {"slots": 1, "parallelism": 1, "protocol": "batch-aligned", "store": str(folder / "store")}
        super().__init__(replace(JOB, **of_one, input=endless, output=nowhere, **changes))
        self.restore(1, muted=True)


@pytest.fixture
def opened(monkeypatch):
    """The sinks that were opened, by name."""
    found = []
    monkeypatch.setattr(outputs, "outlet_of", lambda _, layout: found.append(layout.name) or Nowhere())
    return found


@pytest.fixture
def slot(tmp_path, opened):
    with closing(CopyingSlot(tmp_path)) as made:
        yield made


def test_the_copy_of_a_sink_opens_its_output_when_it_is_promoted(slot, opened):
    assert not opened
    slot.hosting.order(slot.the(Sink), Promote(2))
    assert opened == [slot.layout.partitions[slot.the(Sink)].name]


def test_a_status_tells_of_copies_apart(slot):
    status = slot.hosting.status()
    assert (status.tallies, status.positions, status.copied.keys()) == ({}, {}, {slot.the(Source)})
    assert (status.progress, status.loaded) == ({}, ())
    slot.hosting.order(slot.the(Source), Promote(2))
    status = slot.hosting.status()
    assert (status.tallies.keys(), status.positions.keys(), status.copied) == (*[{slot.the(Source)}] * 2, {})


def test_a_status_tells_what_copies_cost(slot):
    slot.until(lambda: slot.hosting.status().costs[slot.the(Source)].records)
    costs = slot.hosting.status().costs
    assert costs.keys() == {each.number for each in slot.layout.partitions}
    assert all(each.muted for each in costs.values())
    source = costs[slot.the(Source)]
    assert 0 < source.processing_s < time.process_time()
    slot.hosting.order(slot.the(Source), Promote(2))
    assert not slot.hosting.status().costs[slot.the(Source)].muted


def test_a_copy_that_is_dismissed_is_gone(slot):
    slot.hosting.order(slot.the(Source), Dismiss(1))
    assert slot.the(Source) not in slot.hosting._hosted
    assert not slot.hosting.status().copied
    slot.turn()


def test_a_copy_that_is_dismissed_leaves_nothing_in_the_store(tmp_path):
    """It is followed by another one, which may keep as much."""
    with closing(CopyingSlot(tmp_path, recovery="passive", limits=PartitionLimits(retained_bytes=20_000))) as slot:
        number = slot.the(Source)

        def spilled():
            return [key for key in slot.store.keys(slot.layout.partitions[number].name) if "sent-" in key]

        slot.until(lambda: len(spilled()) > 1)
        slot.hosting.order(number, Dismiss(1))
        slot.storing._pool.submit(lambda: None).result(60)
        assert spilled() == []


def test_a_copy_that_is_dismissed_keeps_no_output_in_memory(tmp_path):
    """Its parts know it, so the rest of it stays until a search for garbage. A slot makes none of what has settled."""
    with closing(CopyingSlot(tmp_path, recovery="passive")) as slot:
        source = slot.hosting._hosted[slot.the(Source)]
        slot.until(lambda: source.sending.retained.frames)
        kept = weakref.ref(source.sending.retained)
        slot.hosting.order(source.number, Dismiss(1))
        assert kept() is None


def test_a_copy_that_is_dismissed_keeps_no_input_in_memory(slot):
    """Copies that lag behind are dismissed, and much waits there."""
    sink = slot.hosting._hosted[slot.the(Sink)]
    slot.hosting.on_frame(Frame(FrameKind.DATA, 1, sink.inputs[0].id, 1, 0))
    assert not sink.intake.empty
    slot.hosting.order(sink.number, Dismiss(1))
    assert sink.intake.empty


def test_fewer_standby_slots_than_the_copies_need_are_refused():
    """Six partitions, of which the larger slot has four."""
    assert replace(JOB, **ACTIVE, standby=2).standby == 2
    with pytest.raises(BadInput, match=r"standby.* 2 or more: 6 copies need this many slots"):
        replace(JOB, **ACTIVE, standby=1)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"replication_ratio": 1.2}, "0 to 1"),
        ({"replication_planner": "best"}, "exact, dp, structure-aware, greedy"),
        ({"protocol": "coordinated"}, "protocol batch-aligned"),
    ],
)
def test_a_job_that_asks_for_copies_that_cannot_be_is_refused(wrong, why):
    with pytest.raises(BadInput, match=why):
        replace(JOB, **{**ACTIVE, "standby": 2, **wrong})
