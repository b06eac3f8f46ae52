"""The example of docs/start/first-own-job.md: every step of a run on a real cluster while a host of it dies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from experiments import spec
from journal.reader import raw_entries
from results.runs.store import Run
from results.views.document import document
from tests import by_the_clock
from tests.whole_runs import carry_out

pytestmark = pytest.mark.extended

ROOT = Path(__file__).parents[4]
EXAMPLE = "docs/examples/own-job/experiment.yaml"
SHORT = ["window_s=30", "faults.events.0.at=3", "faults.events.0.heal_after=1", "cluster.worker_memory_mb=512"]
SHOPS = 4


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """The published run of the example, with a shorter window."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AFTERSHOCK_HOME", str(tmp_path_factory.mktemp("home")))
        patch.chdir(ROOT)
        yield carry_out(spec.load(EXAMPLE, SHORT))


def test_it_is_measured_like_any_other_run(run: Run) -> None:
    row = run.table("runs").iloc[0]
    assert (row["workload"], row["recovery"], row["faults"]) == ("own job own-job/job.py", "task", 1)
    assert pd.isna(row["depth"])
    assert row["records_committed"] > 500
    (kill,) = run.table("faults").to_dict("records")
    assert (kill["kind"], kill["targets"], kill["outcome"], kill["violations"]) == ("kill", "worker-1", "injected", 0)
    (recovery,) = run.table("recoveries").to_dict("records")
    assert recovery["detect_s"] >= 0
    assert recovery["restore_s"] >= 0
    latency = run.table("latency")
    assert latency["records"].sum() > 500
    assert latency["p50_s"].between(0, 30).all()
    assert run.table("checkpoints")["undisturbed"].sum() > 2
    assert run.report.is_file()


def test_every_check_but_those_of_the_clock_passes(run: Run) -> None:
    verdicts = by_the_clock.others(dict(run.table("verdicts")[["check", "verdict"]].itertuples(index=False)))
    assert set(verdicts.values()) == {"pass"}, verdicts
    assert {"quality.nothing_lost", "quality.nothing_wrong", "faults.proved"} <= set(verdicts)


def test_its_output_is_what_its_owners_oracle_says(run: Run) -> None:
    found = document(run)["quality"]
    assert found["lost"] == 0
    assert found["exact"] >= 2 * SHOPS
    assert set(pd.read_parquet(run.raw / "sink.parquet")["key"]) == {"harbour", "market", "museum", "station"}


def test_the_program_ran_once_unchanged(run: Run) -> None:
    source = ROOT / "docs" / "examples" / "own-job" / "job.py"
    assert (run.raw / "job" / "job.py").read_bytes() == source.read_bytes()
    events = [entry["event"] for entry in raw_entries(run.raw / "query.jsonl")]
    assert events.count("driver-started") == events.count("ready") == 1  # Spark itself brought it through the kill
    assert events.count("executors-lost") == 1
