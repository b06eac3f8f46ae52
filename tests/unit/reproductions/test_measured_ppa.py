"""Figures 7 to 10 of `ppa`, on made-up runs: they pass on the paper's shape, and each check fails on its error."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from experiments.spec import Experiment
from reproductions.catalogue import CATALOGUE
from reproductions.judging import judge
from reproductions.measured import Cell
from reproductions.replication.experiments import KILL_AT_S, Mode, mode_of
from reproductions.replication.recoveries import latencies
from reproductions.reproduce import missing_runs, reproduce
from reproductions.reproduction import Computed, ReproductionCheck
from tests.unit.reproductions.runs import Tables, computed_on, computed_once, facts, ns, put_run

RECOVERIES = ("ppa/fig-07", "ppa/fig-08", "ppa/fig-10")
IDS = (*RECOVERIES, "ppa/fig-09")
AS_FIGURE_7 = ("ppa/fig-08", "ppa/fig-10")  # they have its checks, of other runs
CHECKS = [
    pytest.param(id, check, id=f"{id} {check.name}", marks=[pytest.mark.extended] * (id in AS_FIGURE_7))
    for id in IDS
    for check in CATALOGUE[id].checks
]
ACTIVE_S = 0.05
FAULT = {"fault": 0, "kind": "kill", "targets": "worker-1", "outcome": "injected"}
FELT: Tables = {"faults": [FAULT], "recoveries": [{"fault": 0, "death_ns": ns(KILL_AT_S)}]}


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("AFTERSHOCK_HOME", str(tmp_path / "home"))


def recovered(partition: str, how: str, took_s: float | None) -> dict[str, object]:
    notice_ns = ns(KILL_AT_S + 1)
    reached_ns = None if took_s is None else notice_ns + round(took_s * 1e9)
    moments = {"death_ns": ns(KILL_AT_S), "notice_ns": notice_ns, "ready_ns": reached_ns, "reached_ns": reached_ns}
    return {"fault": 0, "epoch": 2, "partition": partition, "how": how} | moments


def paper(experiment: Experiment) -> Tables:
    """Copies take over at once; what is restored takes as long as there is to replay."""
    engine, mode = experiment.engine, mode_of(experiment)
    if not experiment.fault_spec.events:
        return {"runs": facts(experiment, checkpoint_cpu_share=0.5 / engine.checkpoint_interval_s)}
    passive_s = experiment.load.rate / 10_000 * engine.checkpoint_interval_s
    promoted = [recovered("O1.0", "promoted", ACTIVE_S), recovered("O1.1", "promoted", ACTIVE_S / 2)]
    rows = {
        Mode.ALL: promoted,
        Mode.HALF: [*promoted, recovered("O2.0", "restored", passive_s / 2)],
        Mode.NONE: [recovered("O1.0", "restored", passive_s), recovered("O2.0", "restored", passive_s / 2)],
        Mode.STORM: [recovered("O1.0", "restored", 8.0), recovered("O3.0", "rolled-back", 99.0)],
    }
    return {"partition_recoveries": rows[mode], **FELT}


def run_all(id: str) -> Computed:
    return computed_on(id, paper)


found_in = computed_once(paper)


@pytest.mark.extended
@pytest.mark.parametrize("id", IDS)
def test_the_papers_shape_passes(id, tmp_path):
    run_all(id)
    found = reproduce(id, tmp_path, 1)
    assert [row for row in found.verdicts if row["verdict"] != "pass"] == []
    table = pd.read_parquet(found.files["parquet"])
    assert table["run_id"].notna().all()
    assert found.files["png"].read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("id", "check"), CHECKS)
def test_a_check_notices_the_error_that_it_names(id: str, check: ReproductionCheck, found_in) -> None:
    sound = found_in(id)
    assert judge(check, sound)["verdict"] == "pass"
    assert judge(check, replace(sound, table=check.plant.change(sound.rows())))["verdict"] == "fail"


@pytest.mark.extended
def test_figure_10_needs_no_runs_but_those_of_figure_8():
    run_all("ppa/fig-08")
    assert missing_runs("ppa/fig-10", 1) == []


def test_what_lacks_a_run_is_unknown_by_name_and_the_rest_is_judged():
    lacking = [each for each in missing_runs("ppa/fig-08", 1) if mode_of(each) is Mode.ALL][-1]
    for experiment in missing_runs("ppa/fig-08", 1):
        if experiment != lacking:
            put_run(experiment, paper(experiment))
    found = Computed("ppa/fig-08", CATALOGUE["ppa/fig-08"].compute(1, lambda done, total: None))
    rows = {check.name: judge(check, found) for check in CATALOGUE["ppa/fig-08"].checks}
    assert rows["active.flat"]["verdict"] == "unknown"
    assert "PPA-1.0 w30 r2000 c15 #1" in rows["active.flat"]["detail"]
    assert rows["passive.grows_with_interval"]["verdict"] == "pass"


def test_a_run_in_which_a_lost_partition_did_not_arrive_has_no_latency():
    (experiment, *_) = (each for each in missing_runs("ppa/fig-08", 1) if mode_of(each) is Mode.ALL)
    tables = paper(experiment)
    tables["partition_recoveries"].append(recovered("O3.0", "restored", None))
    assert list(latencies(Cell(experiment, put_run(experiment, tables)))) == []


def test_what_was_rolled_back_or_lost_to_no_fault_does_not_count():
    (experiment, *_) = (each for each in missing_runs("ppa/fig-08", 1) if mode_of(each) is Mode.STORM)
    tables = paper(experiment)
    tables["partition_recoveries"].append(recovered("O2.1", "restored", 77.0) | {"fault": None})
    (row,) = latencies(Cell(experiment, put_run(experiment, tables)))
    assert (row["latency_s"], row["active_s"], row["lost"], row["promoted"]) == (pytest.approx(8.0), None, 1, 0)
