"""Measured figures of `ppa`, on made-up runs: they pass on the paper's shape, and each check fails on its error."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from experiments.spec import Experiment
from reproductions.catalogue import CATALOGUE
from reproductions.judging import judge
from reproductions.measured import Cell
from reproductions.replication.experiments import KILLS_AT_S, RATES, Mode, mode_of
from reproductions.replication.recoveries import latencies
from reproductions.replication.tentative_experiments import Query, by_metric, by_planner, query_of
from reproductions.replication.tentative_output import accuracies
from reproductions.replication.tentative_output import facts as quality_facts
from reproductions.reproduce import missing_runs, reproduce
from reproductions.reproduction import Computed, ReproductionCheck
from testbed.experiment_layout import layout_of
from testbed.recovery.partially_active import PartiallyActive
from tests.unit.reproductions.runs import Tables, computed_on, computed_once, facts, ns, put_run

pytestmark = pytest.mark.usefixtures("home")

RECOVERIES = ("ppa/fig-07", "ppa/fig-08", "ppa/fig-10")
QUALITY = ("ppa/fig-12", "ppa/fig-13")
IDS = (*RECOVERIES, "ppa/fig-09", *QUALITY)
AS_FIGURE_7 = ("ppa/fig-08", "ppa/fig-10")  # they have its checks, of other runs
CHECKS = [
    pytest.param(id, check, id=f"{id} {check.name}", marks=[pytest.mark.extended] * (id in AS_FIGURE_7))
    for id in IDS
    for check in CATALOGUE[id].checks
]
ACTIVE_S = 0.05
KILL_AT_S = KILLS_AT_S[0]
FAULT = {"kind": "kill", "targets": "worker-1", "outcome": "injected"}
FELT: Tables = {
    "faults": [FAULT | {"fault": number} for number in range(len(KILLS_AT_S))],
    "recoveries": [{"fault": 0, "death_ns": ns(KILL_AT_S)}],
}
AWAY_S = 40.0  # until the hosts of figures 12 and 13 are back


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
    """Copies take over at once; what is restored takes as long as there is to replay; fidelity tells the accuracy."""
    if experiment.engine.tentative_run:
        reports = copies(experiment, KILL_AT_S - 1)
        return {"tentative": tentative(experiment, accuracy_in_paper(experiment)), "copies": reports, **away()}
    engine = experiment.engine
    if not experiment.fault_spec.events:
        return {"runs": facts(experiment, checkpoint_cpu_share=0.5 / engine.checkpoint_interval_s)}
    rows = [row for kill in range(len(KILLS_AT_S)) for row in recovered_in_paper(experiment, kill)]
    return {"partition_recoveries": rows, **FELT}


def recovered_in_paper(experiment: Experiment, kill: int) -> list[dict[str, object]]:
    """The older the checkpoint, the longer it takes: some kills of a run find older ones than others."""
    replayed_s = experiment.load.rate / RATES[-1] * (1 + 0.2 * kill)
    passive_s = replayed_s * experiment.engine.checkpoint_interval_s / 10
    promoted = [recovered("O1.0", "promoted", ACTIVE_S, kill), recovered("O1.1", "promoted", ACTIVE_S / 2, kill)]
    return {
        Mode.ALL: promoted,
        Mode.HALF: [*promoted, recovered("O2.0", "restored", passive_s / 2, kill)],
        Mode.NONE: [recovered("O1.0", "restored", passive_s, kill), recovered("O2.0", "restored", passive_s / 2, kill)],
        Mode.STORM: [recovered("O1.0", "restored", 8 * replayed_s, kill), recovered("O3.0", "rolled-back", 99.0, kill)],
    }[mode_of(experiment)]


def away(took_s: float = AWAY_S) -> Tables:
    """Nothing but copies was up before the hosts were."""
    lost = [recovered("O1.0", "promoted", ACTIVE_S), recovered("O2.0", "restored", took_s)]
    return {"partition_recoveries": lost, **FELT}


def accuracy_in_paper(experiment: Experiment) -> float:
    """Entries that every server gives out are still the top ones if some servers are missing."""
    found = float(quality_facts(Cell(experiment, None))["output_fidelity"])
    return 0.98 if query_of(experiment) is Query.SPREAD else found


def tentative(experiment: Experiment, accuracy: float) -> list[dict[str, object]]:
    """Ten windows of 100 results that lacked the same throughout, and one that did not; none if nothing came out."""
    moments = {"window_start_ns": ns(50), "window_end_ns": ns(55), "first_ns": ns(55)}
    counts = {"exact": 100, "emitted": 100, "both": round(100 * accuracy), "absent": "a.0", "leaked": 0}
    steady = [moments | counts | {"throughout": True}] * 10
    return [*steady, moments | counts | {"both": 100, "throughout": False}] if accuracy else []


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
    assert f"PPA-1.0 w30 r{RATES[-1]:g} c15 #1" in rows["active.flat"]["detail"]
    assert rows["passive.grows_with_interval"]["verdict"] == "pass"


def test_a_kill_after_which_a_lost_partition_did_not_arrive_has_no_latency():
    (experiment, *_) = (each for each in missing_runs("ppa/fig-08", 1) if mode_of(each) is Mode.ALL)
    tables = paper(experiment)
    tables["partition_recoveries"].append(recovered("O3.0", "restored", None, kill=1))
    rows = list(latencies(Cell(experiment, put_run(experiment, tables))))
    assert [row["latency_s"] for row in rows] == [ACTIVE_S, None, ACTIVE_S]


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
    assert rows["active.flat"]["verdict"] == "pass"


def test_where_kills_differ_as_much_as_techniques_nothing_is_decided():
    for experiment in missing_runs("ppa/fig-08", 1):
        tables = paper(experiment)
        if mode_of(experiment) is Mode.HALF:
            kills = enumerate(recovered_in_paper(experiment, kill) for kill in range(len(KILLS_AT_S)))
            tables["partition_recoveries"] = [
                row if row["how"] == "promoted" else recovered("O2.0", "restored", (0.5, 1.6, 1.0)[kill], kill)
                for kill, rows in kills
                for row in rows
            ]
        if mode_of(experiment) is Mode.NONE:
            tables["partition_recoveries"] = [
                recovered("O2.0", "restored", took_s, kill) for kill, took_s in enumerate((1.1, 1.0, 1.2))
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
    expected_s = 8 * experiment.load.rate / RATES[-1]
    assert (row["latency_s"], row["active_s"], row["lost"], row["promoted"]) == (pytest.approx(expected_s), None, 1, 0)
    assert row["age_s"] == 2.0


def test_only_windows_that_lacked_the_same_throughout_have_an_accuracy():
    experiment = by_metric(1)[0]
    rows = tentative(experiment, 0.25)
    (found,) = accuracies(
        Cell(
            experiment, put_run(experiment, {"tentative": rows, "copies": copies(experiment, KILL_AT_S - 1), **away()})
        )
    )
    assert found == {"accuracy": 0.25, "windows": 10}
    late = [row | {"throughout": False} for row in rows]
    assert (
        list(
            accuracies(
                Cell(
                    experiment,
                    put_run(
                        experiment, {"tentative": late, "copies": copies(experiment, KILL_AT_S - 1), **away()}, 10**18
                    ),
                )
            )
        )
        == []
    )


def test_without_tentative_output_there_is_no_accuracy_if_the_copies_ran():
    (found,) = accuracies(silent(by_metric(1)[0], copies_at_s=[KILL_AT_S - 1]))
    assert found == {"accuracy": 0.0, "windows": 0}


def test_what_comes_out_when_some_of_the_lost_are_back_says_nothing_of_the_plan():
    experiment = by_metric(1)[0]
    late = [row | {"first_ns": ns(KILL_AT_S + 1 + AWAY_S)} for row in tentative(experiment, 0.25)]
    run = put_run(experiment, {"tentative": late, "copies": copies(experiment, KILL_AT_S - 1), **away()})
    assert list(accuracies(Cell(experiment, run))) == [{"accuracy": 0.0, "windows": 0}]


@pytest.mark.parametrize("told", [True, False], ids=["tentative", "silent"])
def test_a_run_in_which_others_were_up_at_once_says_nothing_of_the_plan(told):
    experiment = by_metric(1)[0]
    rows = tentative(experiment, 0.25) if told else []
    ran = {"tentative": rows, "copies": copies(experiment, KILL_AT_S - 1)}
    assert list(accuracies(Cell(experiment, put_run(experiment, ran | away(took_s=0.3))))) == []


@pytest.mark.parametrize("at_s", [[], [KILL_AT_S - 4], [KILL_AT_S + 1]], ids=["never", "before", "after"])
def test_without_its_copies_a_silent_run_says_nothing_of_the_plan(at_s):
    assert list(accuracies(silent(by_metric(1)[0], copies_at_s=at_s))) == []


def test_one_copy_that_lacks_is_enough():
    experiment = by_metric(1)[0]
    ran = copies(experiment, KILL_AT_S - 1)
    assert list(accuracies(Cell(experiment, put_run(experiment, {"copies": ran[1:], **away()})))) == []


@pytest.mark.parametrize(
    ("id", "name"), [("ppa/fig-12", "completeness.misleads_with_joins"), ("ppa/fig-13", "greedy.accuracy_worst")]
)
def test_runs_in_which_no_copies_were_there_make_no_check_pass(id, name):
    spoken, *others = missing_runs(id, 1)
    put_run(spoken, paper(spoken))
    for experiment in others:
        silent(experiment, copies_at_s=[])
    found = Computed(id, CATALOGUE[id].compute(1, lambda done, total: None))
    check = next(each for each in CATALOGUE[id].checks if each.name == name)
    assert judge(check, found)["verdict"] == "unknown"


def silent(experiment: Experiment, copies_at_s: list[float]) -> Cell:
    """A run without tentative output, whose copies were reported at these times."""
    reports = [row for at_s in copies_at_s for row in copies(experiment, at_s)]
    return Cell(experiment, put_run(experiment, {"tentative": [], "copies": reports, **away()}))


def copies(experiment: Experiment, at_s: float) -> list[dict[str, object]]:
    """Reports on all copies of the plan, as the run makes it."""
    engine, layout = experiment.engine, layout_of(experiment)
    plan = PartiallyActive(engine.replication_ratio_run, engine.replication_planner_run.value).copied(layout)
    return [{"at_ns": ns(at_s), "partition": layout.partitions[number].name} for number in sorted(plan)]


def test_figures_12_and_13_share_the_runs_of_whole_trees():
    run_all("ppa/fig-12")
    assert len(missing_runs("ppa/fig-13", 1)) == 12 - 6


def test_hosts_that_stand_by_take_nothing_but_copies():
    """Otherwise something else is restored there at once."""
    assert {each.engine.standby_room for each in (*by_metric(1), *by_planner(1))} == {0}
