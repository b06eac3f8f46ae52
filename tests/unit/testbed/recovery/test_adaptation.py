"""Copies that follow the load: which plan holds, and that changing it on the way has no effect on the output."""

from random import Random

import pytest

from experiments.errors import BadInput
from testbed.core.by_batch.partition import is_muted
from testbed.core.coordinator.copying import Copying
from testbed.recovery.adaptation import Adaptation
from testbed.simulation import Simulation
from tests.unit.testbed.campaigns import first_and_rest
from tests.unit.testbed.recovery.copied_runs import copied
from tests.unit.testbed.recovery.moving_loads import BUDGET, LAYOUT, fidelity, rates, skewed
from tests.unit.testbed.runs import oracle

MOST_CHANGES = 12  # of a run: copies that are made again and again would keep it going


def first_plan(weights):
    """What is planned under this load if there is no plan yet."""
    return Adaptation(LAYOUT, "structure-aware", BUDGET, frozenset(), 0.0).next(rates(weights)).partitions


def test_a_load_whose_skew_moves_takes_its_copies_along():
    made = Adaptation(LAYOUT, "structure-aware", BUDGET, first_plan(skewed(0)))
    before = made.present
    after = made.next(rates(skewed(12)))
    assert made.present == after.partitions != before
    assert after.fidelity == fidelity(after.partitions, skewed(12)) > after.fidelity_before + 0.3
    assert after.fidelity_before == fidelity(before, skewed(12))
    assert len(after.partitions) <= BUDGET


def plans_under_noise(made):
    random = Random(7)
    found = {made.present}
    for _ in range(40):
        made.next(rates([random.uniform(0.95, 1.05) for _ in range(16)]))
        found.add(made.present)
    return found


def test_rates_that_fluctuate_change_nothing_but_would_without_hysteresis():
    even = first_plan([1.0] * 16)
    assert plans_under_noise(Adaptation(LAYOUT, "structure-aware", BUDGET, even)) == {even}
    assert len(plans_under_noise(Adaptation(LAYOUT, "structure-aware", BUDGET, even, least_gain=0.0))) > 3


@pytest.mark.parametrize("least_gain", [1.0, -0.1])
def test_what_is_no_gain_is_refused(least_gain):
    with pytest.raises(BadInput, match="least_gain"):
        Adaptation(LAYOUT, "structure-aware", BUDGET, frozenset(), least_gain)


def test_an_unknown_planner_is_refused():
    with pytest.raises(BadInput, match="replication_planner"):
        Adaptation(LAYOUT, "best", BUDGET, frozenset())


class Adapted(Simulation):
    """A run in which other partitions get copies, again and again, at any moment."""

    changes = 0

    def _possible(self):
        events = super()._possible()
        is_due = events and self.changes < MOST_CHANGES and self._random.random() < 0.03
        return [(self._adapt,)] if is_due else events

    def _adapt(self):
        everyone = range(len(self.layout.partitions))
        wanted = frozenset(number for number in everyone if self._random.random() < 0.5)
        self.changes += wanted != self.coordinator.copies.wanted
        self.coordinator.adapt(wanted)
        self._coordinate()


def adapted(flow, seed, **options):
    return copied(flow, seed, (1.0, 0.5)[seed % 2], kind=Adapted, **options)


def run_through(flow, seeds):
    """How often plans changed, and how many copies were promoted and held against their primaries."""
    changes = promoted = compared = 0
    for seed in seeds:
        run = adapted(flow, seed)
        outcome = run.run()
        assert outcome.published == oracle(flow), f"seed {seed}"
        changes, promoted = changes + run.changes, promoted + outcome.promoted
        compared += run.checks.copies.compared
    return changes, promoted, compared


@pytest.mark.parametrize("seeds", first_and_rest(range(20), 7))
def test_plans_that_change_at_any_moment_have_no_effect_on_output(seeds):
    changes, promoted, compared = run_through("tiny", seeds)
    assert changes > 2 * len(seeds)
    assert promoted > len(seeds) / 7
    assert compared > 2 * len(seeds)


@pytest.mark.extended
@pytest.mark.parametrize("flow", ["joined", "windowed"])
def test_plans_that_change_in_other_dataflows(flow):
    changes, _, compared = run_through(flow, range(4))
    assert changes > 20
    assert compared > 40


@pytest.mark.parametrize("seeds", first_and_rest(range(6), 2))
def test_without_faults_nobody_is_restored_for_a_new_plan(seeds):
    for seed in seeds:
        run = adapted("tiny", seed, faults=[], slots=2, standby=2)
        assert run.run().restored == 0
        assert run.changes


def test_copies_whose_senders_do_not_hear_of_their_end_are_noticed(monkeypatch):
    """Planted: copies are closed down without a word to the workers that have them."""
    assert not any(map(forgotten_copies, range(6)))

    def in_silence(self, numbers):
        for each in set(numbers) & self.copies.of.keys():
            self.copies.drop(each)

    monkeypatch.setattr(Copying, "drop", in_silence)
    assert any(map(forgotten_copies, range(6)))


def forgotten_copies(seed):
    """The copies that workers have at the end but that the coordinator does not know."""
    run = adapted("tiny", seed, faults=[], slots=2, standby=2)
    run.run()
    kept = {number for worker in run.workers for number, p in worker.partitions.items() if is_muted(p)}
    return kept - run.coordinator.copies.of.keys()
