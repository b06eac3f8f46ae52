"""Which runs a measurement can be taken from, and which are missing."""

import hashlib
import json

import pytest

from aftershock.airflow import trigger_form
from experiments import spec
from experiments.faults import FaultSpec
from reproductions import measured
from reproductions.checkmate.experiments import (
    LOAD_RATES,
    LOADED_INTERVAL_S,
    killed,
    loaded,
    one_record,
    searched,
    skewed,
    skewed_and_killed,
)
from reproductions.incremental.experiments import throughputs
from results.checks.subjects.ledger import SATURATED
from results.runs import published, step_times
from results.runs.machine import experiment_digest
from results.runs.store import ReadOnce, write_json
from results.tables.schema import SCHEMA_VERSION
from tests.unit.reproductions.runs import facts, put_published_run, put_run
from tests.unit.results.synthetic import START_NS

pytestmark = pytest.mark.usefixtures("home")

FIRST, *OTHERS = killed(1)
SKEWED = [each for rate in LOAD_RATES for each in skewed(rate, 1)]
EVERYTHING = [*killed(1), *one_record(1), *searched(1), *loaded(1), *SKEWED, *skewed_and_killed(1)]


def test_the_newest_run_counts():
    put_run(FIRST, {}, START_NS + 1)
    newest = put_run(FIRST, {}, START_NS + 2)
    put_run(FIRST, {}, START_NS)
    (cell,) = measured.cells([FIRST])
    assert cell.run == ReadOnce.of(newest)
    assert measured.missing(killed(1)) == OTHERS


@pytest.mark.parametrize(
    "status", [{"state": "failed"}, {"machine": "another"}, {"schema_version": SCHEMA_VERSION - 1}], ids=str
)
def test_a_run_that_cannot_be_compared_is_none(status):
    put_run(FIRST, {}, **status)
    assert measured.missing([FIRST]) == [FIRST]


@pytest.fixture
def publications(tmp_path, monkeypatch):
    """An empty folder of what is published, beside the home."""
    monkeypatch.setenv("AFTERSHOCK_PUBLISHED", str(tmp_path / "published"))


def test_a_published_run_of_no_example_counts_in_another_installation(publications):
    run_id = put_published_run(FIRST, {})
    (cell,) = measured.cells([FIRST])
    assert (cell.run.run_id, cell.run.is_published) == (run_id, True)
    assert measured.missing(killed(1)) == OTHERS
    newest = put_run(FIRST, {}, START_NS + 1)
    assert measured.cells([FIRST])[0].run == ReadOnce.of(newest)


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("published.json", {"example": "wordcount"}),
        ("published.json", {"format": 99}),
        ("status.json", {"machine": "another"}),
        ("status.json", {"experiment_digest": "0" * 16}),
        ("status.json", {"schema_version": SCHEMA_VERSION - 1}),
    ],
    ids=["for show", "format", "machine", "experiment", "tables"],
)
def test_a_published_run_that_is_for_show_or_cannot_be_compared_is_none(name, fields, publications):
    root = published.folder() / "runs" / put_published_run(FIRST, {})
    write_json(root / name, json.loads((root / name).read_text()) | fields)
    about = json.loads((root / published.ABOUT).read_text())
    digest = hashlib.sha256((root / "status.json").read_bytes()).hexdigest()
    write_json(root / published.ABOUT, about | {"files": about["files"] | {"status.json": digest}})
    assert measured.missing([FIRST]) == [FIRST]


@pytest.mark.parametrize("change", ["changed", "added", "missing"])
def test_a_published_run_whose_files_are_not_those_that_were_published_is_none(change, publications):
    root = published.folder() / "runs" / put_published_run(FIRST, {})
    assert measured.missing([FIRST]) == []
    if change == "changed":
        (root / "status.json").write_text((root / "status.json").read_text() + "\n")
    elif change == "added":
        (root / "tables" / "faults.parquet").write_bytes((root / "tables" / "runs.parquet").read_bytes())
    else:
        (root / "tables" / "runs.parquet").unlink()
    assert measured.missing([FIRST]) == [FIRST]


@pytest.mark.parametrize(
    ("outcomes", "faults", "counts"),
    [
        (["injected"], [None, 0], True),
        (["injected"], [None], False),
        (["injected"], [], False),
        (["missing"], [0], False),
    ],
    ids=str,
)
def test_a_run_in_which_the_fault_was_not_felt_is_none(outcomes, faults, counts):
    about = {"fault": 0, "kind": "kill", "targets": "worker-1", "cause": "events", "planned_ns": START_NS}
    put_run(
        FIRST,
        {
            "faults": [about | {"outcome": outcome} for outcome in outcomes],
            "recoveries": [
                {"recovery": i, "fault": fault, "faults": 1, "death_ns": 0} for i, fault in enumerate(faults)
            ],
        },
    )
    assert measured.missing([FIRST]) == ([] if counts else [FIRST])


@pytest.mark.parametrize(
    ("verdicts", "counts"), [(["pass"], True), (["unknown"], False), (["fail"], False), ([], False)]
)
def test_a_run_whose_load_was_to_saturate_it_counts_if_it_was_busy(verdicts, counts):
    (full,) = (each for each in throughputs(1) if each.engine.checkpoint_interval_s == 1.0)
    other = {"check": "faults.on_time", "table": "faults", "verdict": "pass"}
    put_run(
        full, {"verdicts": [other, *({"check": SATURATED, "table": "ledger", "verdict": each} for each in verdicts)]}
    )
    assert measured.missing([full]) == ([] if counts else [full])


def test_a_search_in_which_nothing_failed_is_none():
    first, *others = searched(1)
    put_run(first, {"runs": facts(first, sustainable_rate=1000.0)})
    assert first in measured.missing([first])
    put_run(first, {"runs": facts(first, sustainable_rate=900.0, unsustainable_rate=990.0)}, START_NS - 1)
    assert measured.missing([first, *others]) == others


def test_another_seed_is_another_run():
    put_run(FIRST, {})
    again = FIRST.model_copy(update={"seed": 2})
    assert measured.missing([FIRST, again]) == [again]


@pytest.mark.extended
@pytest.mark.parametrize("experiment", EVERYTHING, ids=lambda experiment: experiment.name)
def test_an_experiment_is_the_same_once_it_has_been_through_the_trigger_form(experiment):
    """Its run is found by the digest of what the DAG was given."""
    ran = spec.validate(trigger_form.fold(trigger_form.flatten(experiment)))
    assert experiment_digest(ran) == experiment_digest(experiment)


def test_names_are_of_one_experiment_each():
    assert len({experiment.name for experiment in EVERYTHING}) == len(EVERYTHING)


def test_a_search_is_estimated_by_the_probes_that_it_usually_takes():
    usual_s = step_times.usual_s(searched(1)[0])
    assert usual_s["start_load"] == 5 + 2 * 2 + 8 * 2 + 3 * (4 + 12)  # two checkpoints, bursts, three probes


def test_runs_under_load_differ_in_skew_and_load_alone():
    runs = [*loaded(1), *SKEWED, *skewed_and_killed(1)]
    assert [each.load.rate for each in SKEWED] == [LOAD_RATES[0]] * 27 + [LOAD_RATES[1]] * 27
    assert {each.load.rate for each in skewed_and_killed(1)} == {LOAD_RATES[0]}
    assert {each.load.rate for each in loaded(1)} == {max(LOAD_RATES)}
    assert {each.engine.checkpoint_interval_s for each in runs} == {LOADED_INTERVAL_S}
    assert [each.workload.hot_sellers > 0 for each in runs] == [False] * 12 + [True] * (54 + 27)
    assert [each.faults != FaultSpec() for each in runs] == [False] * (12 + 54) + [True] * 27
