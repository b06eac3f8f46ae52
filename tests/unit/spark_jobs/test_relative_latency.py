"""Latency of queries slide by slide, and when it is normal again; times in seconds, slides of one second."""

import pytest

from experiments import spec
from spark_jobs.tables.dataflow.relative_latency import Slide, query_latencies, with_normal

EXPERIMENT = spec.load("incremental-topology-1", [])
S = 10**9
LOSS_S, PLANNED_S, USUAL_S = 20.0, 30.0, 0.5  # usual: from the middle of a slide


def slides(late_s, query="q0"):
    """Slides that end every second until 60, each late by so much at that second beside what is usual."""
    return [Slide(query, at * S, round((at + USUAL_S - 0.5 + late_s(at)) * S)) for at in range(1, 61)]


def on_time(at_s):
    return 0.0


def behind(at_s):
    """What was due from the loss on comes when the query is restored, and the backlog is gone after 36.7."""
    return max(0.0, PLANNED_S + 0.4 * (at_s - LOSS_S) - at_s) if at_s > LOSS_S else 0.0


def latencies(found, start_s=0, first_loss_s=LOSS_S):
    return query_latencies(EXPERIMENT, found, start_s * S, round(first_loss_s * S))


def lost(death_s=LOSS_S, planned_s=PLANNED_S, query="q0.0"):
    planned_ns = None if planned_s is None else round(planned_s * S)
    return {"query": query, "death_ns": round(death_s * S), "planned_ns": planned_ns}


def normal_s(late_s, *more, **of):
    row, *_ = with_normal(EXPERIMENT, [lost(**of), *more], latencies(slides(late_s)))
    return None if row["normal_ns"] is None else row["normal_ns"] / S


def test_latency_counts_from_the_middle_of_a_slide_and_is_relative_to_the_mean_before_the_loss():
    rows = latencies(slides(lambda at_s: 0.25 if at_s > LOSS_S else (0.1 if at_s % 2 else -0.1) * (at_s <= 18)))
    assert (rows[0]["due_ns"] / S, rows[0]["latency_s"]) == (0.5, pytest.approx(USUAL_S + 0.1))
    assert rows[-1]["relative_latency"] == pytest.approx(1.5)


def test_what_was_due_before_the_window_does_not_count():
    assert latencies(slides(on_time), start_s=10)[0]["due_ns"] / S == 10.5


def test_each_query_is_held_against_itself():
    found = latencies([*slides(on_time), *slides(lambda at_s: 1.0, "q1")])
    assert {row["relative_latency"] for row in found} == {1.0}


def test_a_query_that_put_nothing_out_before_the_loss_has_no_relative_latency():
    rows = latencies(slides(on_time), first_loss_s=0.5)
    assert {row["relative_latency"] for row in rows} == {None}
    assert with_normal(EXPERIMENT, [lost()], rows)[0]["normal_ns"] is None


def test_without_a_loss_all_is_usual():
    rows = query_latencies(EXPERIMENT, slides(on_time), 0, None)
    assert {row["relative_latency"] for row in rows} == {1.0}


def test_a_query_is_on_time_when_its_backlog_is_gone_not_when_it_is_restored():
    assert normal_s(behind) == 37.0


def test_what_came_before_the_recovery_was_planned_does_not_count():
    assert normal_s(on_time) == 30.0


@pytest.mark.parametrize(("relative", "is_normal"), [(1.19, True), (1.21, False)])
def test_normal_is_below_1_2(relative, is_normal):
    found = normal_s(lambda at_s: (relative - 1) * USUAL_S if at_s > LOSS_S else 0.0)
    assert (found is not None) == is_normal


def test_one_slide_in_time_is_not_enough():
    assert normal_s(lambda at_s: 0.0 if at_s in (*range(1, 21), 40) else 2.0) is None


def test_what_is_lost_again_at_once_was_not_on_time():
    assert normal_s(behind, lost(38.5, 50.0)) is None
    assert normal_s(behind, lost(38.5, 50.0, "q1.0")) is not None


def test_what_was_never_planned_is_never_on_time():
    assert normal_s(on_time, planned_s=None) is None


def test_a_sink_of_several_partitions_is_several_queries_of_which_none_is_known():
    several = spec.load("incremental-topology-1", ["engine.partitions=2"])
    assert "normal_ns" not in with_normal(several, [lost()], latencies(slides(on_time)))[0]
