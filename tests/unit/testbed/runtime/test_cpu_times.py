"""CPU time of partitions in a slot: what their turns take is processing, whenever checkpoints are taken."""

import time
from collections import Counter
from contextlib import closing
from dataclasses import replace

import pytest

from testbed.core.control import Round
from testbed.core.partition.partition import Partition
from testbed.operators import Delivery, Source
from testbed.runtime.job import InputKind, JobInput, OutputKind, OutputSpec
from tests.unit.testbed.runtime.lone_slot import LoneSlot
from tests.unit.testbed.small_job import JOB

TURN_S, CHECKPOINT_S = 0.125, 8.0  # added without error


class RunningSlot(LoneSlot):
    """The one slot of a job without end, whose partitions have gone on. No timer is ever due."""

    def __init__(self, folder, protocol):
        own = {"slots": 1, "parallelism": 1, "protocol": protocol, "store": str(folder / "store")}
        endless, nowhere = JobInput(InputKind.GENERATED, None), OutputSpec(OutputKind.NOWHERE, Delivery.PLAIN)
        super().__init__(replace(JOB, **own, input=endless, output=nowhere))
        self.hosting._timers.checkpoint_due = lambda _: False
        self.restore(1)
        self.go(1)

    @property
    def checkpoints(self):
        """How many each partition has taken."""
        return [each.tally.checkpoints for each in self.hosting._hosted]


class CpuClock:
    """In place of the CPU time of this thread: a turn takes `TURN_S`, and each checkpoint `CHECKPOINT_S` more."""

    def __init__(self, hosting, monkeypatch):
        self.turns, self._now_s = Counter(), 0.0
        self._serve, self._checkpoint = hosting._serve, Partition.checkpoint
        monkeypatch.setattr(time, "thread_time", lambda: self._now_s)
        monkeypatch.setattr(hosting, "_serve", self._serving)
        monkeypatch.setattr(Partition, "checkpoint", lambda *given: self._taking(*given))

    def _serving(self, partition):
        self.turns[partition.number] += 1
        self._now_s += TURN_S
        self._serve(partition)

    def _taking(self, *given):
        self._now_s += CHECKPOINT_S
        self._checkpoint(*given)


def timers(hosting, layout):
    """As when a timer is due: every partition takes a checkpoint, between turns."""
    for each in layout.partitions:
        hosting._at(each.number, Partition.on_timer)


def a_round(hosting, layout):
    """Sources take their checkpoint when they are told, the others when markers come, in their turns."""
    for each in layout.partitions:
        if isinstance(each.element, Source):
            hosting.order(each.number, Round(1, 1))


@pytest.mark.parametrize(("protocol", "begin"), [("uncoordinated", timers), ("coordinated", a_round)])
def test_checkpoints_between_turns_and_in_them_leave_what_processing_took(tmp_path, monkeypatch, protocol, begin):
    with closing(RunningSlot(tmp_path, protocol)) as slot:
        clock = CpuClock(slot.hosting, monkeypatch)
        begin(slot.hosting, slot.layout)
        slot.until(lambda: 0 not in slot.checkpoints and len(clock.turns) == len(slot.everyone))
        costs = slot.hosting.status().costs
        assert {n: cost.processing_s for n, cost in costs.items()} == {n: clock.turns[n] * TURN_S for n in costs}
        assert [each.checkpoint_s for each in slot.hosting._hosted] == [n * CHECKPOINT_S for n in slot.checkpoints]
