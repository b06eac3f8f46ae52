"""Which runs a measurement can be taken from, and which are missing."""

import hashlib
import json

import pytest

from aftershock.airflow import trigger_form
from experiments import spec
from experiments.faults import FaultSpec
from reproductions import measured
from reproductions.checkmate.experiments import killed, loaded, one_record, searched, skewed
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
EVERYTHING = [*killed(1), *one_record(1), *searched(1)]


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


def test_a_search_in_which_nothing_failed_is_none_and_nothing_is_run_at_shares_of_it():
    for search in skewed(1):
        put_run(search, {"runs": facts(search, sustainable_rate=1000.0)})
    assert {experiment.load.mode for experiment in skewed(1)} == {"sustainable"}
    assert len(measured.missing(skewed(1))) == 9
    closed = skewed(1)[0]
    put_run(closed, {"runs": facts(closed, sustainable_rate=900.0, unsustainable_rate=990.0)}, START_NS - 1)
    assert closed not in measured.missing([closed])


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
    assert usual_s["start_load"] == 5 + 2 * 5 + 8 * 5 + 3 * (10 + 30)  # two checkpoints, bursts, three probes


def test_skewed_runs_are_at_shares_of_what_was_sustained_and_wait_for_that_to_be_found():
    searches = skewed(1)
    assert {experiment.load.mode for experiment in searches} == {"sustainable"}
    put_run(searches[0], {"runs": facts(searches[0], sustainable_rate=1000.0, unsustainable_rate=1100.0)})
    then = skewed(1)
    assert [experiment for experiment in then if experiment.load.mode == "sustainable"] == searches[1:]
    known = [experiment for experiment in then if experiment.load.mode == "rate"]
    assert sorted(experiment.load.rate for experiment in known) == [500] * 3 + [800] * 3
    assert {experiment.workload.hot_sellers for experiment in known} == {0.1, 0.2, 0.3}
    assert len({experiment.name for experiment in known}) == 6


def test_a_run_at_a_high_load_has_a_share_of_what_its_own_protocol_sustains():
    searches = loaded(1)
    assert len(searches) == 12
    assert {experiment.load.mode for experiment in searches} == {"sustainable"}
    put_run(searches[0], {"runs": facts(searches[0], sustainable_rate=1000.0, unsustainable_rate=1100.0)})
    (known,) = (each for each in loaded(1) if each not in searches)
    assert (known.load.rate, known.workload.hot_sellers, known.faults) == (800, 0, FaultSpec())
    assert (known.workload.query, known.engine.protocol) == (searches[0].workload.query, searches[0].engine.protocol)
