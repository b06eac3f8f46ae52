"""When queries come back in a hand-made journal, beside the plan of the model; times in seconds.

Five slots have a partition each. Fault 0 takes those of query q0 and the operator of q1. The sink of q1 is still there.
"""

import pytest

from experiments import spec
from experiments.errors import BadInput
from models.recovery import within_limits
from models.recovery.exact import exact
from models.recovery.planners import PLANNERS
from spark_jobs.tables.dataflow.partition_recoveries import partition_recoveries
from spark_jobs.tables.dataflow.query_recoveries import query_recoveries
from spark_jobs.tables.ledger import NS
from spark_jobs.tables.losses import Loss
from tests.unit.spark_jobs.timelines import told

EXPERIMENT = spec.load("incremental-topology-1", [])
EVERYONE = ("tweets.0", "o0.0", "q0.0", "o1.0", "q1.0")
LOST = {"o0.0": 20.0, "q0.0": 20.1, "o1.0": 20.2}
LINE = dict.fromkeys(EVERYONE, 3)


def restored(epoch, second, *partitions):
    yield told("recovering", second, epoch=epoch, line=LINE, restored=partitions)
    yield told("ready", second + 0.5, epoch=epoch)
    for name in partitions:
        yield told("partition-loaded", second + 0.4, partition=name, epoch=epoch, seconds=0.2, size_bytes=1)
        yield told("partition-reached", second + 2, partition=name, epoch=epoch, records=1, size_bytes=1)


def joined(number, second):
    return told("worker-joined", second, worker=f"slot-{number}", host="10.0.0.2")


START = [*(joined(number, 0) for number in range(5)), *restored(1, 0.5, *EVERYONE)]
LOSSES = [
    told("worker-lost", at + 0.3, worker=f"slot-{i}", partitions=(name,)) for i, (name, at) in enumerate(LOST.items())
]
FIRST_BACK = [joined(5, 30), *restored(2, 30.1, "o0.0")]
THEN_BACK = [joined(6, 40), *restored(3, 40.1, "q0.0"), joined(7, 50), *restored(4, 50.1, "o1.0")]


def rows(journal, experiment=EXPERIMENT):
    lost = [Loss(0, round(at * NS), round((at + 0.3) * NS), (name,)) for name, at in LOST.items()]
    lost += [Loss(1, round(35 * NS), round(35 * NS), ("o0.0",))]
    known = query_recoveries(experiment, journal, lost, partition_recoveries(journal, lost))
    seconds = ("death_ns", "planned_ns", "available_ns", "predicted_ns")
    return {row["query"]: tuple(None if row[name] is None else row[name] / NS for name in seconds) for row in known}


def test_a_query_is_available_when_the_last_of_its_partitions_is_as_far_as_it_was():
    found = rows([*START, *LOSSES, *FIRST_BACK, *THEN_BACK])
    assert found["q0.0"][:3] == (20.0, 40.1, 42.1)
    assert found["q1.0"][:3] == (20.2, 50.1, 52.1)


def test_the_model_would_have_begun_with_the_query_that_needs_one_slot_or_with_the_favoured_one():
    journal = [*START, *LOSSES, *FIRST_BACK, *THEN_BACK]
    assert [found[3] for found in rows(journal).values()] == [50.0, 30.0]
    dear = spec.load("incremental-topology-1", ["workload.priorities=[9, 1]", "engine.planner=operator-centric"])
    assert [found[3] for found in rows(journal, dear).values()] == [40.0, 50.0]


def test_the_model_plans_a_complete_failure_from_no_slot_at_all():
    driver = Loss(0, 20 * NS, 22 * NS, EVERYONE)
    arrivals = [joined(5 + number, 30 + 10 * number) for number in range(5)]
    back = [event for number, name in enumerate(EVERYONE) for event in restored(2 + number, 30.1 + 10 * number, name)]
    begun = [told("driver-started", -5), *START, told("driver-started", 22)]
    journal = sorted([*begun, *arrivals, *back], key=lambda each: each.at_ns)
    found = query_recoveries(EXPERIMENT, journal, [driver], partition_recoveries(journal, [driver]))
    assert {row["query"]: (row["available_ns"] / NS, row["predicted_ns"] / NS) for row in found} == {
        "q0.0": (52.1, 50.0),
        "q1.0": (72.1, 70.0),
    }


def refuses(problem):
    raise BadInput("failed", f"{len(problem.queries)} failed queries", "at most 20")


def test_the_model_plans_by_the_planner_that_a_run_falls_back_to(monkeypatch):
    journal = [*START, *LOSSES, *FIRST_BACK, *THEN_BACK]
    monkeypatch.setitem(PLANNERS, "dp", refuses)
    refused = spec.load("incremental-topology-1", ["engine.planner=dp"])
    quick = spec.load("incremental-topology-1", ["engine.planner=density-beam"])
    assert rows(journal, refused) == rows(journal, quick)


def test_the_model_gives_a_planner_the_time_of_the_run(monkeypatch):
    limits_s = []

    def watched(problem, limit_s):
        limits_s.append(limit_s)
        return exact(problem)

    monkeypatch.setattr(within_limits, "exact", watched)
    limited = ["engine.planner=exact", "engine.planner_limit_s=0.5"]
    rows([*START, *LOSSES, *FIRST_BACK, *THEN_BACK], spec.load("incremental-topology-1", limited))
    assert set(limits_s) == {0.5}


def test_the_model_does_not_know_what_the_coordinator_plans_by_measured_costs():
    """It packs slot by slot, by the costs of each arrival."""
    measured = spec.load("incremental-topology-1", ["engine.cpu_limit=0.8"])
    costs = told("costs-measured", 21, cores=dict.fromkeys(EVERYONE, 0.2))
    found = rows([*START, *LOSSES, costs, *FIRST_BACK, *THEN_BACK], measured)
    assert [row[1:] for row in found.values()] == [(40.1, 42.1, None), (50.1, 52.1, None)]
    assert all(row[3] for row in rows([*START, *LOSSES, *FIRST_BACK, *THEN_BACK], measured).values())


def test_the_model_does_not_count_on_a_slot_that_is_lost_without_a_partition():
    """One stands by, and is lost before others come; one that has come is lost amid the burst."""

    def predicted(*further):
        journal = [*START, *LOSSES, *FIRST_BACK, *THEN_BACK, *further]
        return [row[3] for row in rows(sorted(journal, key=lambda each: each.at_ns)).values()]

    standby, gone = joined(9, 0), told("worker-lost", 25, worker="slot-9", partitions=())
    assert predicted(standby, gone) == predicted() != predicted(standby)
    assert predicted(joined(10, 31), told("worker-lost", 33, worker="slot-10", partitions=())) == [None, None]


def test_what_never_comes_back_has_no_times():
    found = rows([*START, *LOSSES, *FIRST_BACK])
    assert found["q0.0"] == (20.0, None, None, None)
    assert found["q1.0"] == (20.2, None, None, 30.0)


def test_a_partition_that_is_lost_again_counts_anew_and_the_model_knows_no_such_bursts():
    again = told("worker-lost", 35, worker="slot-5", partitions=("o0.0",))
    journal = [*START, *LOSSES, *FIRST_BACK, again, *THEN_BACK, joined(8, 60), *restored(5, 60.1, "o0.0")]
    assert rows(journal)["q0.0"] == (20.0, 60.1, 62.1, None)


def test_a_query_of_which_a_partition_is_lost_again_for_good_is_not_available():
    again = told("worker-lost", 35, worker="slot-5", partitions=("o0.0",))
    assert rows([*START, *LOSSES, *FIRST_BACK, again, *THEN_BACK])["q0.0"] == (20.0, None, None, None)


def test_blocking_is_planned_for_the_last_slot():
    blocking = spec.load("incremental-topology-1", ["engine.recovery=blocking"])
    journal = [*START, *LOSSES, joined(5, 30), joined(6, 40), joined(7, 50), *restored(2, 50.1, *LOST)]
    found = rows(journal, blocking)
    assert [each[1:] for each in found.values()] == [(50.1, 52.1, 50.0), (50.1, 52.1, 50.0)]


def test_the_model_of_blocking_knows_no_moment_while_slots_are_missing():
    blocking = spec.load("incremental-topology-1", ["engine.recovery=blocking"])
    found = rows([*START, *LOSSES, joined(5, 30), joined(6, 40)], blocking)
    assert [each[1:] for each in found.values()] == [(None, None, None)] * 2


@pytest.mark.parametrize("strategy", ["passive", "global"])
def test_other_strategies_do_not_know_queries(strategy):
    other = spec.load("incremental-topology-1", [f"engine.recovery={strategy}", "engine.partitions=5"])
    assert rows([*START, *LOSSES, *FIRST_BACK, *THEN_BACK], other) == {}


def test_what_goes_to_a_slot_that_dies_next_is_lost_in_the_same_burst():
    soon = [told("recovering", 20.32, epoch=9, line=LINE, restored=("o0.0",)), told("ready", 20.33, epoch=9)]
    again = told("worker-lost", 20.55, worker="slot-3", partitions=("o0.0",))
    lost = [LOSSES[0], *soon, again, *THEN_BACK, joined(8, 60), *restored(5, 60.1, "o0.0")]
    of = [
        Loss(0, round(20 * NS), round(20.3 * NS), ("o0.0",)),
        Loss(1, round(20.25 * NS), round(20.55 * NS), ("o0.0",)),
    ]
    journal = [*START, *lost]
    (row,) = query_recoveries(EXPERIMENT, journal, of, partition_recoveries(journal, of))
    assert (row["query"], row["fault"], row["planned_ns"] / NS) == ("q0.0", 0, 60.1)
