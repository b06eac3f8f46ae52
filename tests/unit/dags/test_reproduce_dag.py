"""The DAG `reproduce`: its choices, and what its task makes of verdicts."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk.exceptions import AirflowFailException, ParamValidationError

from aftershock import reproducing
from aftershock.pool import RUNS_POOL
from reproductions import reproduce as reproductions
from results import store

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def dag():
    return DagBag(dag_folder=str(REPOSITORY / "dags" / "reproduce.py")).dags["reproduce"]


def test_any_id_of_the_catalogue_can_be_chosen_and_nothing_else(dag):
    chosen = dag.params.get_param("id")
    assert [chosen.resolve(id) for id in reproducing.IDS] == list(reproducing.IDS)
    for wrong in ("utilization/fig-99", "../etc", None):
        with pytest.raises(ParamValidationError):
            chosen.resolve(wrong)
    with pytest.raises(ParamValidationError):
        dag.params.get_param("size").resolve(0)


def test_it_waits_until_no_run_is_measured(dag):
    assert dag.get_task("reproduce").pool == RUNS_POOL


def test_a_reproduction_is_made_and_its_document_returned(home):
    found = reproducing.reproduce("utilization/fig-04", None)
    assert (found["verdict"], found["id"]) == ("pass", "utilization/fig-04")
    assert (store.home() / "reproductions" / "utilization" / "fig-04" / "utilization-fig-04.verdicts.json").exists()


def test_a_size_that_cannot_be_chosen_is_refused_in_one_line(home):
    with pytest.raises(AirflowFailException, match=r"^size: 5 is not usable"):
        reproducing.reproduce("utilization/fig-04", 5)


def test_a_check_that_fails_fails_the_task_with_what_was_seen(home, monkeypatch):
    rows = [
        {"check": "maximum", "verdict": "fail", "observed": "0.7", "expected": "0.7541"},
        {"check": "place", "verdict": "unknown", "observed": None, "expected": "46 min"},
    ]
    monkeypatch.setattr(reproductions, "reproduce", lambda id, size: SimpleNamespace(verdicts=rows))
    told = r"^utilization/fig-04: 1 of 2 checks failed: maximum: observed 0\.7, expected 0\.7541; http.*/reproductions$"
    with pytest.raises(AirflowFailException, match=told):
        reproducing.reproduce("utilization/fig-04", None)
