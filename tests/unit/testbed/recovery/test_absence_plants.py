"""Errors planted where input is absent, and drivers die amid that: the simulation notices each within a few seeds."""

from dataclasses import replace

import pytest

from testbed.core.by_batch.cutting import Batching
from testbed.core.by_batch.partition import BatchedPartition
from testbed.core.by_batch.processing import BatchProcessing
from testbed.core.by_batch.publications import Publications
from testbed.core.by_batch.tentative import TentativeIntake
from testbed.core.coordinator.line_record import LineRecord
from testbed.core.coordinator.write_ahead import WriteAhead
from testbed.operators import Delivery
from testbed.protocols import PROTOCOLS
from testbed.recovery import STRATEGIES
from testbed.simulation import CrashMoment, Fault, Simulation
from tests.unit.testbed.planting import (
    assert_noticed,
    checkpoint_all_the_same,
    forgets_what_was_missing,
    nothing_waits,
    notice_of,
    old_epoch,
    published_as_exact,
)
from tests.unit.testbed.recovery.dying_drivers import going_on
from tests.unit.testbed.runs import oracle
from tests.unit.testbed.small_flows import laid_out

SEEDS = 12


def does_not_wait(publications, effect):
    if not publications.has(effect.batch):
        publications._effects.append(effect)


def does_not_ask(publications):
    return


def of_a_later_batch(processing, batch, end_ns, real=BatchProcessing.end_tentative_batch):
    found = real(processing, batch, end_ns)
    return found and replace(found, batch=batch + 1000)


REUSED = "ChannelGap|ContentChanged|of a credit|other output"
NOT_EXACT = "put out and not expected|ContentChanged|another state|received or sent something else|other output"
PLANTS = {
    "nothing waits for the record": (WriteAhead, "take_effects", nothing_waits, f"{REUSED}|no line of checkpoints"),
    "an old epoch is used again": (LineRecord, "encode", old_epoch, REUSED),
    "what is tentative is of no batch": (BatchProcessing, "end_tentative_batch", of_a_later_batch, "not corrected"),
    "missing input goes unnoticed": (TentativeIntake, "begin", forgets_what_was_missing, NOT_EXACT),
    "a tentative sink publishes": (BatchedPartition, "_end_tentative_batch", published_as_exact, NOT_EXACT),
    "tentative state is in a checkpoint": (
        BatchedPartition,
        "_end_tentative_batch",
        checkpoint_all_the_same,
        "takes checkpoint . and is tentative",
    ),
}
# The first seed to try: few runs show each error.
FIRST = {"nothing waits for the record": 153}
FIRST |= dict.fromkeys(("a tentative sink publishes", "what is tentative is of no batch"), 14)
OUT_ALREADY = {
    "tentative output does not wait for what is out": ("put_out", does_not_wait),
    "a sink does not ask what is out": ("ask", does_not_ask),
}


class LateAnswers(Simulation):
    """A sink that was lost hears what is out only when little else can happen."""

    def _possible(self):
        events = super()._possible()
        others = [each for each in events if not (self.outcome.crashes and self._answers(*each))]
        return others or events

    def _answers(self, event, worker=None, *_):
        return event == self._publish and worker.publishing[0][1].number == 0


def repeating_what_is_out(seed):
    """Both slots are lost, and only the one with the sink is replaced: the sink has to do again without the other what
    it had put out with it."""
    layout, inputs = laid_out("tiny", Delivery.EXACTLY_ONCE)
    faults = [Fault(CrashMoment.ANY, 260, late=True), Fault(CrashMoment.ANY, 3)]
    options = {"faults": faults, "batching": Batching(5, 2), "tentative": True, "returns": 0.0}
    options |= {"recovery": STRATEGIES["passive"](), "expected": oracle("tiny")}
    return LateAnswers(layout, PROTOCOLS["batch-aligned"], inputs, seed, **options)


def amid_absence(seed):
    """Drivers die at moments drawn from the seed."""
    return going_on("tiny", "passive" if seed % 4 == 3 else "partially-active", seed)


def notice(run):
    """What is wrong with a run; None if nothing is."""
    return notice_of(run.run, "tiny", KeyError, ValueError)


@pytest.mark.parametrize("plant", PLANTS)
def test_an_error_amid_absence_is_noticed(plant, monkeypatch):
    first = FIRST.get(plant, 0)
    seeds = range(first, first + SEEDS)
    assert_noticed(monkeypatch, PLANTS[plant], lambda seed: notice(amid_absence(seed)), seeds)


@pytest.mark.parametrize("plant", OUT_ALREADY)
def test_tentative_output_of_what_is_out_is_noticed(plant, monkeypatch):
    def of_repetition(seed):
        return notice(repeating_what_is_out(seed))

    assert not any(map(of_repetition, range(SEEDS)))
    assert_noticed(monkeypatch, (Publications, *OUT_ALREADY[plant], "which is out"), of_repetition, range(SEEDS))
