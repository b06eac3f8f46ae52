"""Figures 7 to 10 of `ppa`, on made-up runs: they pass on the paper's shape, and each check fails on its error."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle

import pandas as pd
import pytest

from experiments.spec import Experiment
from reproductions.catalogue import CATALOGUE
from reproductions.judging import judge
from reproductions.measured import Cell
from reproductions.ppa.experiments import COST_RATES, KILLS_AT_S, RATES, Mode, mode_of
from reproductions.ppa.recoveries import latencies
from reproductions.reproduce import missing_runs, reproduce
from reproductions.reproduction import Computed, ReproductionCheck
from tests.unit.reproductions.runs import Tables, computed_on, computed_once, facts, ns, put_run

pytestmark = pytest.mark.usefixtures("home")

RECOVERIES = ("ppa/fig-07", "ppa/fig-08", "ppa/fig-10")
IDS = (*RECOVERIES, "ppa/fig-09")
AS_FIGURE_7 = [(id, check) for id in RECOVERIES[1:] for check in CATALOGUE["ppa/fig-07"].checks]  # of other runs
CHECKS = [
    pytest.param(id, check, id=f"{id} {check.name}", marks=[pytest.mark.extended] * ((id, check) in AS_FIGURE_7))
    for id in IDS
    for check in CATALOGUE[id].checks
]
RUNS = 2  # of each cell, which pairs of runs take
ACTIVE_S, STORM_S = 0.05, 2.0
FAULT = {"kind": "kill", "targets": "worker-1", "outcome": "injected"}
FELT: Tables = {
    "faults": [FAULT | {"fault": number} for number in range(len(KILLS_AT_S))],
    "recoveries": [{"fault": 0, "death_ns": ns(KILLS_AT_S[0])}],
}


def recovered(partition: str, how: str, took_s: float | None, kill: int = 0) -> dict[str, object]:
    notice_ns = ns(KILLS_AT_S[kill] + 1)
    reached_ns = None if took_s is None else notice_ns + round(took_s * 1e9)
    moments = {
        "death_ns": ns(KILLS_AT_S[kill]),
        "notice_ns": notice_ns,
        "ready_ns": reached_ns,
        "reached_ns": reached_ns,
    }
    return {"fault": kill, "epoch": 2, "partition": partition, "how": how, "checkpoint_age_s": 2.0 + kill} | moments


def paper(experiment: Experiment) -> Tables:
    """Copies take over at once; what is restored takes the longer the older its checkpoint is."""
    engine = experiment.engine
    if not experiment.fault_spec.events:
        return {"runs": facts(experiment, checkpoint_cpu_share=0.5 / engine.checkpoint_interval_s)}
    rows = [row for kill in range(len(KILLS_AT_S)) for row in recovered_in_paper(experiment, kill)]
    return {"partition_recoveries": rows, **FELT}


def recovered_in_paper(experiment: Experiment, kill: int) -> list[dict[str, object]]:
    """The older the checkpoint, the longer it takes: some kills of a run find older ones than others."""
    replayed_s = experiment.load.rate / RATES[-1] * (1 + 0.2 * kill)
    storm_s = STORM_S * replayed_s
    passive_s = replayed_s * experiment.engine.checkpoint_interval_s / 10
    promoted = [recovered("O1.0", "promoted", ACTIVE_S, kill), recovered("O1.1", "promoted", ACTIVE_S / 2, kill)]
    return {
        Mode.ALL: promoted,
        Mode.HALF: [*promoted, recovered("O2.0", "restored", passive_s / 2, kill)],
        Mode.NONE: [recovered("O1.0", "restored", passive_s, kill), recovered("O2.0", "restored", passive_s / 2, kill)],
        Mode.STORM: [recovered("O1.0", "restored", storm_s, kill), recovered("O3.0", "rolled-back", 99.0, kill)],
    }[mode_of(experiment)]


def run_all(id: str) -> Computed:
    return computed_on(id, paper, RUNS)


found_in = computed_once(paper)


@pytest.mark.extended
@pytest.mark.parametrize("id", IDS)
def test_the_papers_shape_passes(id, tmp_path):
    run_all(id)
    found = reproduce(id, tmp_path, RUNS)
    assert [row for row in found.verdicts if row["verdict"] != "pass"] == []
    table = pd.read_parquet(found.files["parquet"])
    assert table["run_id"].notna().all()
    assert found.files["png"].read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("id", "check"), CHECKS)
def test_a_check_notices_the_error_that_it_names(id: str, check: ReproductionCheck, found_in) -> None:
    sound = found_in(id, RUNS)
    assert judge(check, sound)["verdict"] == "pass"
    assert judge(check, replace(sound, table=check.plant.change(sound.rows())))["verdict"] == "fail"


@pytest.mark.extended
def test_figure_10_needs_no_runs_but_those_of_figure_8():
    run_all("ppa/fig-08")
    assert missing_runs("ppa/fig-10", RUNS) == []


def test_the_kills_of_one_run_of_each_cell_do_not_tell_how_runs_differ(found_in):
    judged = {check.name: judge(check, found_in("ppa/fig-07")) for check in CATALOGUE["ppa/fig-07"].checks}
    for name in ("active.flat", "active.tenth_of_passive", "storm.grows_with_rate"):
        assert (judged[name]["verdict"], "from one pair" in str(judged[name]["detail"])) == ("unknown", True)
    assert judged["ppa.none_not_before_half"]["verdict"] == "pass"  # of three pairs, one for each window and load


@pytest.mark.parametrize("noise", [(0.03, 0.02), (0.03, -0.02), (-0.03, 0.02), (-0.03, -0.02)], ids=str)
def test_shares_that_differ_by_chance_alone_are_undecided(found_in, noise: tuple[float, float]):
    """From 15 to 30 s checkpoints store equally much in a second: one run of each cell is above or below by chance."""
    sound = found_in("ppa/fig-09")
    table = sound.rows()
    by_chance = table["rate"].map(dict(zip(COST_RATES, noise, strict=True)))
    share = table["share"].mask(table["interval_s"] == 15, 0.07).mask(table["interval_s"] == 30, 0.07 * (1 + by_chance))
    check = CATALOGUE["ppa/fig-09"].checks[0]
    judged = judge(check, replace(sound, table=table.assign(share=share)))
    assert (judged["verdict"], "every 15 s over every 30 s" in str(judged["detail"])) == ("unknown", True)


def test_a_kill_of_partitions_without_copies_says_nothing_about_copies():
    def last_without_copies(experiment: Experiment) -> Tables:
        tables = paper(experiment)
        kept = [row for row in tables["partition_recoveries"] if (row["fault"], row["how"]) != (2, "promoted")]
        return tables if mode_of(experiment) is not Mode.HALF else tables | {"partition_recoveries": kept}

    found = computed_on("ppa/fig-08", last_without_copies)
    (check,) = (each for each in CATALOGUE["ppa/fig-08"].checks if each.name == "ppa.active_part")
    assert judge(check, found)["verdict"] == "pass"


def test_what_lacks_a_run_is_unknown_by_name_and_the_rest_is_judged():
    lacking = [each for each in missing_runs("ppa/fig-08", 1) if mode_of(each) is Mode.ALL][-1]
    for experiment in missing_runs("ppa/fig-08", 1):
        if experiment != lacking:
            put_run(experiment, paper(experiment))
    found = Computed("ppa/fig-08", CATALOGUE["ppa/fig-08"].compute(1, lambda done, total: None))
    rows = {check.name: judge(check, found) for check in CATALOGUE["ppa/fig-08"].checks}
    assert rows["ppa.half_not_before_all"]["verdict"] == "unknown"
    assert f"PPA-1.0 w30 r{RATES[-1]:g} c15 #1" in rows["ppa.half_not_before_all"]["detail"]
    assert rows["passive.grows_with_interval"]["verdict"] == "pass"


def test_a_kill_after_which_a_lost_partition_did_not_arrive_has_no_latency():
    (experiment, *_) = (each for each in missing_runs("ppa/fig-08", 1) if mode_of(each) is Mode.ALL)
    tables = paper(experiment)
    tables["partition_recoveries"].append(recovered("O3.0", "restored", None, kill=1))
    rows = list(latencies(Cell(experiment, put_run(experiment, tables))))
    assert [row["latency_s"] for row in rows] == [ACTIVE_S, None, ACTIVE_S]


def test_a_lost_partition_that_is_rolled_back_once_more_arrives_after_that():
    (experiment, *_) = (each for each in missing_runs("ppa/fig-08", 1) if mode_of(each) is Mode.STORM)
    tables = paper(experiment)
    tables["partition_recoveries"] += [
        recovered("O3.1", "restored", None, kill=1) | {"epoch": 4},
        recovered("O3.1", "rolled-back", 60.0, kill=1) | {"epoch": 5},
    ]
    rows = list(latencies(Cell(experiment, put_run(experiment, tables))))
    assert [row["latency_s"] == 60.0 for row in rows] == [False, True, False]
    assert [row["lost"] for row in rows] == [1, 2, 1]


def test_storm_is_compared_with_rare_checkpoints_while_it_replays_a_window(found_in):
    """Later kills of a run find more input than windows need."""
    sound = found_in("ppa/fig-08", RUNS)
    table = sound.rows()
    (check,) = (each for each in CATALOGUE["ppa/fig-08"].checks if each.name == "storm.before_rare_checkpoints")
    for kills, verdict in (([2, 3], "pass"), ([1], "fail")):
        late = (table["mode"] == Mode.STORM.value) & table["kill"].isin(kills)
        latency_s = table["latency_s"].mask(late, 20 * table["latency_s"])
        assert judge(check, replace(sound, table=table.assign(latency_s=latency_s)))["verdict"] == verdict


def test_a_kill_that_took_no_partition_leaves_the_technique_unknown():
    experiments = missing_runs("ppa/fig-08", 1)
    for experiment in experiments:
        tables = paper(experiment)
        if mode_of(experiment) is Mode.STORM:
            tables["partition_recoveries"] = [row for row in tables["partition_recoveries"] if row["fault"] != 2]
        put_run(experiment, tables)
    found = Computed("ppa/fig-08", CATALOGUE["ppa/fig-08"].compute(1, lambda done, total: None))
    rows = {check.name: judge(check, found) for check in CATALOGUE["ppa/fig-08"].checks}
    assert rows["storm.grows_with_rate"]["verdict"] == "unknown"
    assert "not known of every kill of Storm" in rows["storm.grows_with_rate"]["detail"]
    assert rows["passive.grows_with_interval"]["verdict"] == "pass"


def test_where_runs_differ_as_much_as_techniques_nothing_is_decided():
    took_s = {Mode.HALF: iter((0.5, 1.6, 1.0)), Mode.NONE: cycle((1.1, 1.0, 1.2))}
    for experiment in missing_runs("ppa/fig-08", 1):
        tables = paper(experiment)
        if (mode := mode_of(experiment)) in took_s:
            took = next(took_s[mode])
            tables["partition_recoveries"] = [
                recovered("O2.0", "restored", took, kill) for kill in range(len(KILLS_AT_S))
            ]
        put_run(experiment, tables)
    found = Computed("ppa/fig-08", CATALOGUE["ppa/fig-08"].compute(1, lambda done, total: None))
    check = next(each for each in CATALOGUE["ppa/fig-08"].checks if each.name == "ppa.none_not_before_half")
    assert judge(check, found)["verdict"] == "unknown"


def test_what_was_rolled_back_or_lost_to_no_fault_does_not_count():
    (experiment, *_) = (each for each in missing_runs("ppa/fig-08", 1) if mode_of(each) is Mode.STORM)
    tables = paper(experiment)
    tables["partition_recoveries"].append(recovered("O2.1", "restored", 77.0) | {"fault": None})
    row, *_ = latencies(Cell(experiment, put_run(experiment, tables)))
    expected_s = STORM_S * experiment.load.rate / RATES[-1]
    assert (row["latency_s"], row["active_s"], row["lost"], row["promoted"]) == (pytest.approx(expected_s), None, 1, 0)
    assert row["age_s"] == 2.0
