"""A run that recovered in another way than it was asked to is judged as what it was, and says so in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession

from aftershock.run import derive
from experiments import spec
from journal.events.testbed import FellBack
from journal.writer import Journal
from results import checks
from results.checks.catalogue import checks_for
from results.runs.store import Run, write_json
from results.summary.fallback import as_it_recovered
from results.summary.findings import headline, the_run
from results.views.document import document
from results.views.terminal import summary
from spark_jobs.tables.run_files import RunFiles
from tests.unit.results import synthetic

ASKED = spec.load("incremental-topology-1", ["engine.tentative=true"])
WHY = "recovery global with protocol coordinated instead of recovery query-centric: operator some is not deterministic"
LEFT = "planner density-beam instead of exact: no time is left"


def run_that(root: Path, fell_back: str | None, recovery: str = "global", protocol: str = "coordinated") -> Run:
    told = {"fell_back": fell_back, "recovery": recovery, "protocol": protocol}
    return synthetic.make_run(root, changes={"runs": lambda frame: frame.assign(**told)})


def judged_as(run: Run) -> spec.Experiment:
    return as_it_recovered(ASKED, the_run(run))


def test_a_run_that_fell_back_is_not_asked_what_its_own_strategy_would_promise(tmp_path):
    became = judged_as(run_that(tmp_path, WHY))
    assert (became.engine.recovery_run, became.engine.protocol_run) == ("global", "coordinated")
    assert not became.engine.tentative_run
    names = {each.name for each in checks_for(became)}
    assert not {name for name in names if name.startswith(("query_recoveries", "tentative"))}
    assert {"query_recoveries.as_planned", "tentative.corrected"} <= {each.name for each in checks_for(ASKED)}


def test_a_run_that_only_changed_its_protocol_is_judged_by_that(tmp_path):
    """Recovery global with protocol batch-aligned falls back to the same recovery with another protocol."""
    asked = spec.load("incremental-topology-1", ["engine.recovery=global", "engine.partitions=5"])
    became = as_it_recovered(asked, the_run(run_that(tmp_path, WHY)))
    assert (asked.engine.protocol_run, became.engine.protocol_run) == ("batch-aligned", "coordinated")
    assert became.engine.recovery_run == asked.engine.recovery_run == "global"


@pytest.mark.parametrize(
    ("told", "recovery", "protocol"),
    [(None, "global", "coordinated"), (LEFT, "query-centric", "batch-aligned")],
    ids=["no", "only a planner"],
)
def test_a_run_that_recovered_as_asked_is_judged_as_that(tmp_path, told, recovery, protocol):
    assert judged_as(run_that(tmp_path, told, recovery, protocol)) == ASKED


def test_a_run_without_its_table_is_judged_as_what_was_asked(tmp_path):
    assert judged_as(synthetic.make_run(tmp_path, without=("runs",))) == ASKED


def test_verdicts_are_of_what_the_run_was(tmp_path, monkeypatch):
    judged = []
    monkeypatch.setattr(checks, "validate", lambda run, experiment: judged.append(experiment))
    derive.validate(run_that(tmp_path, WHY), ASKED)
    assert judged[0].engine.recovery_run == "global"


def test_terminal_headline_and_document_say_it_in_one_line(tmp_path):
    run = run_that(tmp_path, WHY)
    assert headline(run).startswith(f"This run fell back: {WHY}. ")
    assert "This run fell back: recovery global" in summary(run)
    assert json.loads(json.dumps(document(run)))["fell_back"] == WHY


def test_a_run_that_did_as_asked_says_nothing(tmp_path):
    run = run_that(tmp_path, None)
    assert "fell back" not in headline(run)
    assert "fell_back" not in document(run)


@pytest.mark.parametrize(
    ("entry", "recovery", "protocol"),
    [
        (FellBack(WHY, "global", "coordinated"), "global", "coordinated"),
        (FellBack(LEFT), "query-centric", "batch-aligned"),
    ],
    ids=["the strategy", "only a planner"],
)
def test_tables_are_made_of_what_the_run_was(tmp_path, entry, recovery, protocol):
    write_json(tmp_path / "experiment.json", ASKED.model_dump(mode="json"))
    Journal(tmp_path / "raw" / "query.jsonl").record(entry)
    files = RunFiles(cast(SparkSession, None), tmp_path)
    assert (files.experiment.engine.recovery_run, files.experiment.engine.protocol_run) == (recovery, protocol)
    assert [each.why for each in files.fallbacks] == [entry.why]
