"""The checks of `query_recoveries` and its part of the JSON document: each planted error is noticed."""

import re

import pandas as pd
import pytest

from experiments import spec
from results.checks.catalogue import checks_for
from results.tables.schema import TABLES
from results.views.document import document
from tests.unit.results import synthetic
from tests.unit.results.judging import verdict_of

EXPERIMENT = spec.load("incremental-topology-1", [])
PLANNED, VALUES = "query_recoveries.as_planned", "query_recoveries.values"
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


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (table()[:0], "no query was lost"),
        (table().assign(predicted_ns=pd.NA), "slots came between the losses"),
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


def test_only_recovery_by_query_is_asked():
    passive = spec.load("dataflow-passive", [])
    names = {each.name for each in checks_for(EXPERIMENT)} - {each.name for each in checks_for(passive)}
    assert {PLANNED, VALUES, "query_recoveries.schema"} <= names


def test_the_document_has_the_queries_in_seconds_after_the_first_loss(tmp_path):
    run = synthetic.make_run(tmp_path, changes={})
    assert "query_recoveries" not in document(run)
    synthetic.write_table(run, "query_recoveries", table().assign(available_ns=[synthetic.ns(31), pd.NA]))
    first, second = document(run)["query_recoveries"]
    assert first == {"query": "q1.0", "priority": 1, "planned_at": 10, "available_at": 11, "predicted_at": 10}
    assert (second["planned_at"], second["available_at"]) == (30, None)
