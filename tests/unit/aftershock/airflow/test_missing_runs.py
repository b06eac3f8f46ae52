"""The examples without a published run are run one after the other, even if some of them fail."""

from __future__ import annotations

import pytest

from aftershock.airflow import missing_runs
from experiments import spec
from experiments.errors import BadInput, EnvironmentFailure
from results import publication
from results.checks.subjects.ledger import SATURATED
from results.publication import examples_to_run, publish_results
from results.runs.step_times import whole_s
from tests.unit.reproductions.runs import put_run
from tests.unit.results.synthetic import START_NS

KNOWN = ["external", "soak-netns", "dataflow-q12", "wordcount"]


@pytest.fixture(autouse=True)
def publications(tmp_path, monkeypatch):
    """An empty folder of what is published, and few examples."""
    monkeypatch.setenv("AFTERSHOCK_PUBLISHED", str(tmp_path / "published"))
    monkeypatch.setattr(publication.spec, "available", lambda: KNOWN)


@pytest.fixture
def asked(monkeypatch):
    """The names of the examples that were run; two of them no machine like this one can run, and one fails."""
    names = []

    def run(experiment):
        names.append(experiment.name)
        if experiment.name == "external":
            raise BadInput("cluster.inventory", "cluster.json", "a file that is there")
        if experiment.name == "soak-netns":
            raise EnvironmentFailure("no root", "run it as root")
        run = put_run(experiment, {}, state="failed" if failing else "done", error="it broke")
        run.experiment_path.write_text(experiment.model_dump_json())
        return run

    failing: list[str] = []
    monkeypatch.setattr(missing_runs.orchestrate, "run", run)
    return names, failing


def test_the_shortest_goes_first_and_what_cannot_be_run_stops_no_other(asked, capsys):
    names, _ = asked
    missing_runs.run_examples()
    assert names == sorted(KNOWN, key=lambda name: whole_s(spec.load(name)))
    told = capsys.readouterr().err
    assert told.startswith("examples: 4 runs are missing, about ")
    assert "no run of external: " in told
    assert "no run of soak-netns: no root" in told


def test_another_call_goes_on_where_the_first_stopped(asked):
    names, _ = asked
    missing_runs.run_examples()
    names.clear()
    missing_runs.run_examples()
    assert names == ["external", "soak-netns"]
    assert [id.split("-179")[0] for id in sorted(publish_results([]).changed)] == ["dataflow-q12-2", "wordcount-3"]
    assert examples_to_run() == ["external", "soak-netns"]


def test_a_run_that_fails_is_told_and_tried_again_by_the_next_call(asked, capsys):
    _, failing = asked
    failing.append("all")
    missing_runs.run_examples()
    assert "failed: it broke" in capsys.readouterr().err
    assert examples_to_run() == KNOWN


def test_a_run_that_cannot_be_used_for_a_figure_is_told_and_not_tried_again_in_the_same_call(monkeypatch, capsys):
    """The load was to saturate the query, which was idle for a part of the time."""
    names = []
    idle = {"check": SATURATED, "table": "ledger", "verdict": "fail"}

    def run(experiment):
        names.append(experiment.name)
        return put_run(experiment, {"verdicts": [idle]})

    monkeypatch.setattr(missing_runs.orchestrate, "run", run)
    missing_runs.run_missing("incremental/fig-19", None, None)
    assert len(names) == len(set(names)) == 4
    told = capsys.readouterr().err
    assert all(f"incremental/fig-19: the run of {name} does not count" in told for name in names)


def test_experiments_of_one_name_that_differ_are_each_run(monkeypatch):
    first = spec.load("wordcount")
    second = first.model_copy(update={"window_s": first.window_s + 1})
    made = []

    def run(experiment):
        made.append(experiment)
        return put_run(experiment, {}, START_NS + len(made))

    monkeypatch.setattr(missing_runs.orchestrate, "run", run)
    monkeypatch.setattr(missing_runs, "missing_runs", lambda id, size: [first, second])
    missing_runs.run_missing("incremental/fig-19", None, None)
    assert made == [first, second]
