"""The DAG `reproduce`: its choices, the runs it asks for, and what its last task makes of verdicts."""

from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException, ParamValidationError
from airflow.serialization.serialized_objects import DagSerialization

from aftershock.airflow import reproducing, trigger_form
from aftershock.airflow.pool import RUNS_POOL
from experiments import spec
from reproductions import reproduce as reproductions
from reproductions.ids import IDS
from reproductions.reproduce import missing_runs
from reproductions.utilization.experiments import Interval, interval_of, row_of
from results.runs import store
from tests.unit.reproductions.runs import put_run
from tests.unit.reproductions.utilization_shapes import as_modelled

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def dag():
    return DagBag(dag_folder=str(REPOSITORY / "dags" / "reproduce.py")).dags["reproduce"]


def test_any_id_of_the_catalogue_can_be_chosen_and_nothing_else(dag):
    chosen = dag.params.get_param("id")
    assert [chosen.resolve(id) for id in IDS] == list(IDS)
    for wrong in ("utilization/fig-99", "../etc", None):
        with pytest.raises(ParamValidationError):
            chosen.resolve(wrong)
    with pytest.raises(ParamValidationError):
        dag.params.get_param("size").resolve(0)


def test_everything_waits_until_no_run_is_measured_and_no_failure_stops_the_rest(dag):
    reproduce = dag.get_task("reproduce")
    assert (reproduce.pool, reproduce.trigger_rule) == (RUNS_POOL, "all_done")
    of_runs = ("runs.run", "runs.follow_up", "runs.run_follow_up")
    assert {dag.get_task(name).pool for name in of_runs} == {RUNS_POOL}
    assert dag.get_task("run_then").partial_kwargs["pool"] == RUNS_POOL
    assert {dag.get_task(name).trigger_rule for name in ("runs.follow_up", "missing_then")} == {"all_done"}
    order = ["missing", *of_runs, "missing_then", "run_then", "reproduce"]
    assert all(after in dag.get_task(before).downstream_task_ids for before, after in pairwise(order))


def test_a_follow_up_comes_before_the_runs_that_wait(dag):
    """The one slot of the pool goes to the task with the highest weight; a night has runs that wait for it, too."""
    scheduled = DagSerialization.from_dict(DagSerialization.to_dict(dag))
    tasks = [scheduled.get_task(name) for name in ("runs.run", "runs.follow_up", "runs.run_follow_up")]
    night = DagBag(dag_folder=str(REPOSITORY / "dags" / "nightly.py")).dags["nightly"]
    tasks.insert(0, DagSerialization.from_dict(DagSerialization.to_dict(night)).get_task("run"))
    weights = [task.weight_rule.get_weight(SimpleNamespace(task=task)) for task in tasks]
    assert weights == sorted(set(weights))


def test_runs_that_two_figures_share_are_not_asked_for_twice(dag):
    assert dag.max_active_runs == 1, "what is missing is listed outside the pool, at once"


@pytest.mark.extended
def test_the_runs_that_are_missing_are_asked_for_and_those_that_have_failed_not_again(home):
    asked = reproducing.missing("checkmate/fig-11", None)
    wanted = missing_runs("checkmate/fig-11")
    assert [spec.validate(trigger_form.fold(cell["conf"])) for cell in asked] == wanted
    assert len({cell["run_label"] for cell in asked}) == len(wanted) == 12
    put_run(wanted[0], {})
    again = reproducing.missing("checkmate/fig-11", None, None)
    assert [cell["conf"] for cell in again] == [cell["conf"] for cell in asked[1:]]
    assert reproducing.missing("checkmate/fig-11", None, asked, iter([])) == []
    with pytest.raises(AirflowSkipException, match="requested with it"):
        reproducing.follow_up("checkmate/fig-11", None, asked[0]["conf"], asked)


@pytest.mark.extended
def test_the_run_at_the_best_interval_follows_the_one_that_tells_it(home):
    def asked_after(cell):
        return reproducing.follow_up("utilization/table-1", None, cell["conf"], first)

    first = reproducing.missing("utilization/table-1", None)
    assert len(first) == 6
    with pytest.raises(AirflowSkipException, match="told no other"):
        asked_after(first[5])
    experiments = [spec.validate(trigger_form.fold(cell["conf"])) for cell in first]
    put_run(experiments[0], as_modelled(experiments[0]))
    then = asked_after(first[0])
    best = spec.validate(trigger_form.fold(then["conf"]))
    assert row_of(best) == row_of(experiments[0])
    assert (interval_of(best), best.seed) == (Interval.BEST, experiments[0].seed)
    assert reproducing.missing("utilization/table-1", None, first, iter([then])) == []
    assert reproducing.missing("utilization/table-1", None, first, then) == [], "a lone one"
    put_run(best, as_modelled(best))
    with pytest.raises(AirflowSkipException, match="told no other"):
        asked_after(first[0])


def test_what_is_computed_asks_for_no_runs(home):
    assert reproducing.missing("utilization/fig-04", None) == []


def test_a_size_that_cannot_be_is_refused_before_anything_is_run(home):
    with pytest.raises(AirflowFailException, match=r"^size: 5 is not usable"):
        reproducing.missing("utilization/fig-04", 5)


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
        {"check": "place", "verdict": "unknown", "observed": None, "expected": "46 min", "detail": "no run of it"},
    ]
    monkeypatch.setattr(reproductions, "reproduce", lambda id, size: SimpleNamespace(verdicts=rows))
    told = r"1 failed and 1 unknown of 2 checks: maximum: observed 0\.7, expected 0\.7541; place: no run of it"
    with pytest.raises(AirflowFailException, match=rf"^utilization/fig-04: {told}; http.*/reproductions$"):
        reproducing.reproduce("utilization/fig-04", None)


def test_what_is_unknown_fails_the_task(home):
    with pytest.raises(
        AirflowFailException, match=r"0 failed and 10 unknown of 10 .*none of its 12 runs has been done"
    ):
        reproducing.reproduce("checkmate/fig-09", None)


def test_the_last_task_measures_what_is_measured_in_its_process(home, monkeypatch):
    asked = []
    monkeypatch.setattr(reproductions, "measure_missing", lambda *given: asked.append(given))
    with pytest.raises(AirflowFailException, match="not measured on this machine"):
        reproducing.reproduce("cec/fig-09", 2)
    assert asked == [("cec/fig-09", 2)]
