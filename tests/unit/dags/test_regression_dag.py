"""The DAG `regression`: when it runs, and what it says of each experiment."""

import logging
from pathlib import Path

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk.exceptions import AirflowFailException

from aftershock.airflow import regressing
from aftershock.airflow.assets import RESULT_TABLES
from aftershock.airflow.pool import RUNS_POOL

REPOSITORY = Path(__file__).parents[3]
SENTENCES = ["worse: checkpoint_s 0.9 s instead of 0.7, +28 %", "better: p99_s 1 s instead of 2, -50 %"]


@pytest.fixture(scope="module")
def dag():
    return DagBag(dag_folder=str(REPOSITORY / "dags" / "regression.py")).dags["regression"]


def test_it_runs_when_a_night_has_published_its_tables(dag):
    nightly = DagBag(dag_folder=str(REPOSITORY / "dags" / "nightly.py")).dags["nightly"]
    published = {asset.name for asset in nightly.get_task("publish").outlets}
    assert {asset.name for asset in dag.timetable.asset_condition.objects} == published
    assert published == {asset.name for asset in RESULT_TABLES.values()}


def test_a_comparison_takes_no_core_from_a_run_that_is_measured(dag):
    assert dag.get_task("compare").pool == RUNS_POOL


def test_without_runs_there_is_nothing_to_compare(home):
    with pytest.raises(AirflowFailException, match=r"^results regress: 'no run' is not usable"):
        regressing.compare(None)


def finding(verdict):
    return {"regression_id": "regression-1", "experiment": "words", "verdict": verdict, "sentences": SENTENCES}


@pytest.mark.parametrize("verdict", ["better", "same", "unknown"])
def test_what_is_not_worse_is_told_and_fails_nothing(verdict, caplog):
    with caplog.at_level(logging.INFO, logger="aftershock.airflow.regressing"):
        regressing.judge(finding(verdict))
    assert caplog.messages == [*SENTENCES, f"words: {verdict}"]


def test_what_became_worse_fails_with_what_by_how_much_and_where_to_look():
    told = r"^words: worse: checkpoint_s 0\.9 s instead of 0\.7, \+28 %; http.*/regressions/regression-1$"
    with pytest.raises(AirflowFailException, match=told):
        regressing.judge(finding("worse"))
