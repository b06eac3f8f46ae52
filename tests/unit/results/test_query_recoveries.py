"""The checks of `query_recoveries` and its part of the JSON document: each planted error is noticed."""

import re

import pandas as pd
import pytest

from experiments import spec
from results.checks.catalogue import checks_for
from results.tables.schema import TABLES
from results.views.document import document
from tests.unit.results import synthetic
from tests.unit.results.judging import parts_at, verdict_of

EXPERIMENT = spec.load("incremental-topology-1", [])
PLANNED, VALUES = "query_recoveries.as_planned", "query_recoveries.values"
ON_TIME = "query_recoveries.on_time"
DEATH_S, MOMENTS_S = 20.0, {"q1.0": 10.0, "q0.0": 30.0}


def table(late_s=0.0):
    """Two queries that are planned when the model says, or later."""
    rows = [
        {
            "fault": 0,
            "query": query,
            "priority": 1.0,
            "death_ns": synthetic.ns(DEATH_S),
            "planned_ns": synthetic.ns(DEATH_S + at_s + late_s),
            "available_ns": synthetic.ns(DEATH_S + at_s + late_s + 1),
            "predicted_ns": synthetic.ns(DEATH_S + at_s),
            "normal_ns": synthetic.ns(DEATH_S + at_s + late_s + 3),
        }
        for query, at_s in MOMENTS_S.items()
    ]
    return pd.DataFrame(rows, columns=TABLES["query_recoveries"].names)


def verdict(root, frame, check):
    run = synthetic.make_run(root, changes={})
    synthetic.write_table(run, "query_recoveries", frame)
    found = verdict_of(check, run, root, EXPERIMENT)
    return found["verdict"], f"{found.get('observed')} {found.get('detail')}"


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (table(), "pass"),
        (table(0.9), "pass"),
        (table(1.1), "fail"),
        (table(-1.1), "fail"),
        (table().assign(planned_ns=[pd.NA, synthetic.ns(50)]), "fail"),
        (table().assign(predicted_ns=table()["predicted_ns"][::-1].to_list()), "fail"),
    ],
    ids=["on time", "by less than a tenth", "late", "early", "never", "in another order"],
)
def test_queries_are_held_against_the_plan_of_the_model(tmp_path, frame, expected):
    assert verdict(tmp_path, frame, PLANNED)[0] == expected


def test_a_query_that_was_never_planned_or_on_time_again_is_said_to_be_so(tmp_path):
    never_planned = table().assign(planned_ns=[pd.NA, synthetic.ns(50)])
    _, told = verdict(tmp_path / "planned", never_planned, PLANNED)
    assert told.startswith("2 queries, the worst is q1.0: never planned ")
    never_normal = table().assign(normal_ns=[pd.NA, synthetic.ns(53)])
    _, told = judged_on_time(tmp_path / "normal", never_normal, 90)
    assert told.startswith("2 queries, the slowest is q1.0: its latency did not become normal again ")


@pytest.mark.parametrize(
    ("planned_s", "told"), [(59, "34 s later"), (41, "16 s later"), (None, "never")], ids=["late", "early", "never"]
)
def test_the_query_that_is_furthest_from_the_plan_is_found(tmp_path, planned_s, told):
    """Of two that are lost at seconds 20 and 25, the second, whose moment by the model is second 50."""
    run, frame = synthetic.make_run(tmp_path, changes={}), table(0.5).astype({"planned_ns": "Int64"})
    frame.loc[1, "death_ns"] = synthetic.ns(25)
    frame.loc[1, "planned_ns"] = pd.NA if planned_s is None else synthetic.ns(planned_s)
    synthetic.write_table(run, "query_recoveries", frame)
    found = parts_at(PLANNED, run, EXPERIMENT)
    assert (found.table, found.second) == ("query_recoveries", 25.0)
    assert found.words == f"second 25: q0.0 was lost (planned: {told}; by the model: 25 s later)"


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (table()[:0], "no query was lost"),
        (table().assign(predicted_ns=pd.NA), "no burst in which slots joined between losses"),
    ],
)
def test_what_the_model_does_not_know_is_unknown(tmp_path, frame, why):
    found, told = verdict(tmp_path, frame, PLANNED)
    assert found == "unknown"
    assert re.search(why, told)


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (table(), "pass"),
        (table().assign(available_ns=table()["planned_ns"] - 1), "fail"),
        (table().assign(planned_ns=table()["death_ns"] - 1), "fail"),
        (table().assign(available_ns=pd.NA), "pass"),
        (table().assign(query=None), "fail"),
    ],
)
def test_a_query_is_lost_then_planned_then_available(tmp_path, frame, expected):
    assert verdict(tmp_path, frame, VALUES)[0] == expected


def slides(until_s):
    """Slides of a query until this number of seconds after the start of the window."""
    facts = {"query": "q0", "latency_s": 0.5, "relative_latency": 1.0}
    moments = [synthetic.ns(at) for at in sorted({1, min(60, until_s), until_s})]
    return pd.DataFrame([facts | {"due_ns": at, "arrived_ns": at} for at in moments])


def judged_on_time(root, frame, until_s):
    run = synthetic.make_run(root, changes={})
    synthetic.write_table(run, "query_recoveries", frame)
    synthetic.write_table(run, "query_latencies", slides(until_s)[TABLES["query_latencies"].names])
    found = verdict_of(ON_TIME, run, root, EXPERIMENT)
    return found["verdict"], f"{found.get('observed')} {found.get('detail')}"


@pytest.mark.parametrize(
    ("normal_s", "until_s", "expected"),
    [
        ((33, 53), 60, "pass"),
        ((41.9, 81.9), 90, "pass"),
        ((42.1, 53), 60, "fail"),
        ((33, None), 85, "fail"),
        ((33, None), 84, "pass"),
        ((None, None), 44, "unknown"),
    ],
    ids=["soon", "just", "late", "never", "not seen", "none seen"],
)
def test_a_query_is_on_time_again_after_as_long_as_it_was_away(tmp_path, normal_s, until_s, expected):
    """The queries are lost at second 20, and available at 31 and 51: away for 11 and 31."""
    moments = [None if at is None else synthetic.ns(at) for at in normal_s]
    assert judged_on_time(tmp_path, table().assign(normal_ns=moments), until_s)[0] == expected


def test_the_query_that_needs_longest_to_catch_up_is_found(tmp_path):
    run, moments = synthetic.make_run(tmp_path, changes={}), [synthetic.ns(43.5), synthetic.ns(53)]
    synthetic.write_table(run, "query_recoveries", table().assign(normal_ns=moments))
    synthetic.write_table(run, "query_latencies", slides(90)[TABLES["query_latencies"].names])
    found = parts_at(ON_TIME, run, EXPERIMENT)
    assert (found.table, found.second) == ("query_recoveries", DEATH_S)
    assert found.words.endswith("q1.0 was lost (available: 11 s later; latency normal: 23.5 s later)")


@pytest.mark.parametrize(
    ("normal_s", "until_s", "expected"), [(None, 90, "fail"), (53, 90, "pass"), (None, 80, "pass")]
)
def test_a_query_that_was_never_seen_to_be_back_is_judged_from_its_plan(tmp_path, normal_s, until_s, expected):
    """It was lost at second 20 and planned at 50, so it has until second 80. Latency is averaged over three more."""
    normal_ns = [synthetic.ns(33), None if normal_s is None else synthetic.ns(normal_s)]
    frame = table().assign(available_ns=[synthetic.ns(31), pd.NA], normal_ns=normal_ns)
    assert judged_on_time(tmp_path, frame, until_s)[0] == expected


@pytest.mark.parametrize(("normal_s", "expected"), [(31, "pass"), (32.5, "fail")])
def test_a_query_that_was_hardly_away_has_until_its_next_result(tmp_path, normal_s, expected):
    """It was away from second 20 to 20.2, and its next result comes at second 31."""
    frame = table()[1:].assign(available_ns=synthetic.ns(20.2), normal_ns=synthetic.ns(normal_s))
    assert judged_on_time(tmp_path, frame, 31)[0] == expected


@pytest.mark.parametrize(("again_s", "expected"), [(44, "pass"), (46, "fail")])
def test_a_query_that_is_lost_again_is_judged_by_its_next_recovery(tmp_path, again_s, expected):
    """It was away from second 20 to 31, so it has until second 42. Latency is averaged over three more."""
    first = table()[:1].assign(normal_ns=pd.NA)
    moments = {"death_ns": again_s, "planned_ns": again_s + 1, "available_ns": again_s + 2, "normal_ns": again_s + 3}
    then = table()[:1].assign(fault=1, **{name: synthetic.ns(at) for name, at in moments.items()})
    assert judged_on_time(tmp_path, pd.concat([first, then]), 60)[0] == expected


def test_relative_latency_is_asked_where_results_name_their_query_and_load_leaves_room():
    asked = {each.name for each in checks_for(EXPERIMENT)}
    assert {ON_TIME, "query_latencies.schema", "query_latencies.values"} <= asked
    saturated = spec.load("incremental-topology-1", ["load.mode=saturating"])
    assert ON_TIME not in {each.name for each in checks_for(saturated)}
    spread = spec.load("incremental-topology-1", ["engine.partitions=2"])
    of_both = {each.name for each in checks_for(spread)}
    assert "query_latencies.schema" in of_both
    assert ON_TIME not in of_both


def test_only_recovery_by_query_is_asked():
    passive = spec.load("dataflow-passive", [])
    names = {each.name for each in checks_for(EXPERIMENT)} - {each.name for each in checks_for(passive)}
    assert {PLANNED, VALUES, "query_recoveries.schema"} <= names


def test_the_document_has_the_queries_in_seconds_after_the_first_loss(tmp_path):
    run = synthetic.make_run(tmp_path, changes={})
    assert "query_recoveries" not in document(run)
    synthetic.write_table(run, "query_recoveries", table().assign(available_ns=[synthetic.ns(31), pd.NA]))
    first, second = document(run)["query_recoveries"]
    moments = {"planned_at": 10, "available_at": 11, "predicted_at": 10, "normal_at": 13}
    assert first == {"query": "q1.0", "priority": 1} | moments
    assert (second["planned_at"], second["available_at"]) == (30, None)
