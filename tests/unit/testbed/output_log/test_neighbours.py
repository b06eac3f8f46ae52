"""Neighbours that are lost together: each reads its own log, at the same time, and they feed each other's replay."""

from collections import defaultdict

import pytest

from testbed.core.by_batch.cutting import Batching
from testbed.core.checkpoints import last_common
from testbed.output_log.partition import LoggedPartition
from testbed.output_log.policies import OpensOnly, Targets
from testbed.output_log.recorded import RecordedOperator
from testbed.protocols import PROTOCOLS
from testbed.protocols.output_logged import OutputLogged
from testbed.recovery import STRATEGIES
from testbed.simulation import CrashMoment, Fault, Simulation
from tests.unit.testbed.campaigns import first_and_rest, parts
from tests.unit.testbed.output_log.planted import behind_its_own_border, is_noticed, sent_again
from tests.unit.testbed.output_log.test_flows_in_parts import laid_out, wanted

SEEDS = 12
SHARE = 40
SLOTS, LOST = 5, (2, 3)  # how many workers there are, and how many of them are lost at once
FIRST = 550  # steps before


def lost_together(monkeypatch, seed):
    """A run in which several workers are lost at once; returns it and its line of neighbours: by epoch the operators
    whose partitions were rebuilt from logs that were not empty."""
    layout, given = laid_out("stacked")
    rebuilt = defaultdict(set)

    def noting(partition, message, objects, real=LoggedPartition.rebuilt):
        if message.checkpoint.state_keys:
            rebuilt[message.epoch].add(partition.layout.operator)
        return real(partition, message, objects)

    monkeypatch.setattr(LoggedPartition, "rebuilt", noting)
    first = Fault(CrashMoment.ANY, FIRST + 30 * (seed % 10), late=bool(seed % 2))
    others = [Fault(CrashMoment.ANY, 0, late=bool(seed % 2))] * (LOST[seed % 2] - 1)
    options = {"batching": Batching(5, 1 + seed % 2), "expected": wanted("stacked"), "faults": [first, *others]}
    options |= {
        "policy": Targets(6, 8) if seed % 3 else OpensOnly(),
        "recovery": STRATEGIES["passive"](),
        "slots": SLOTS,
    }
    outcome = Simulation(layout, PROTOCOLS["output-log"], given, seed, **options).run()
    return outcome, sum(operators == {"slide", "again"} for operators in rebuilt.values())


@pytest.mark.parametrize("seeds", first_and_rest(range(SEEDS), 2))
def test_neighbours_that_are_lost_together_cost_no_result(monkeypatch, seeds):
    together = 0
    for seed in seeds:
        outcome, found = lost_together(monkeypatch, seed)
        assert outcome.published == wanted("stacked"), f"seed {seed}"
        assert outcome.crashes == LOST[seed % 2]
        together += found
    assert together >= len(seeds) / 3


@pytest.mark.extended
@pytest.mark.parametrize("part", parts(4))
def test_many_of_them_do_not_either(monkeypatch, part):
    together = 0
    for seed in range(part * SHARE, (part + 1) * SHARE):
        outcome, found = lost_together(monkeypatch, SEEDS + seed)
        assert outcome.published == wanted("stacked"), f"seed {seed}"
        together += found
    assert together >= SHARE / 4


PLANTS = [
    (OutputLogged, "find_line", staticmethod(last_common)),
    (LoggedPartition, "_end_batch", sent_again),
    (RecordedOperator, "resume", behind_its_own_border),
]


@pytest.mark.parametrize(("where", "name", "planted"), PLANTS, ids=[each[1] for each in PLANTS])
def test_a_planted_error_is_noticed(monkeypatch, where, name, planted):
    monkeypatch.setattr(where, name, planted)
    runs = (lambda seed=seed: lost_together(monkeypatch, seed)[0] for seed in range(SEEDS))
    assert any(is_noticed(run, wanted("stacked")) for run in runs)
