"""Measured tables and figures of `checkmate`, on made-up runs: they pass on the paper's shape and fail on any other."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import pandas as pd
import pytest

from experiments.engines import ProtocolName
from reproductions.catalogue import CATALOGUE
from reproductions.checkmate import cycle
from reproductions.checkmate import simulated as simulation
from reproductions.checkmate.checkpoints import checkpoint_counts
from reproductions.checkmate.recoveries import recovery_times
from reproductions.checkmate.simulated import CALIBRATION
from reproductions.judging import judge
from reproductions.measured import Cell
from reproductions.reproduce import Reproduced, missing_runs, reproduce
from reproductions.reproduction import Computed, ReproductionCheck, ReproductionKind
from results.checks.rules import NotEnough
from results.runs.step_times import whole_s
from tests.unit.reproductions.checkmate_shapes import QUERIES, SHAPES, SIMULATED, Shape, sustaining
from tests.unit.reproductions.runs import checkpoints, ns, put_run

pytestmark = pytest.mark.usefixtures("home")

LAB = (Path(__file__).parents[3] / "docs" / "lab" / "testbed-throughput.md").read_text(encoding="utf-8")
SIMULATED_THROUGHPUT = "## Simulated against measured"
COUNTED = ("checkmate/table-3", "checkmate/table-4", "checkmate/staggered")
SIZES = dict.fromkeys(("checkmate/fig-07", *COUNTED), 2)
IN_MANY_RUNS = {*(f"{query}.few_invalid" for query in (*QUERIES, "reachability")), "invalid.few"}  # open after two
TIMES = 50  # as many runs: enough to know that a share of invalid checkpoints of the paper's shape is small
OF_CHECKMATE = {id: found for id, found in CATALOGUE.items() if found.paper == "checkmate"}
MEASURED = [id for id, found in OF_CHECKMATE.items() if found.kind is ReproductionKind.MEASURED]
CHECKS = [pytest.param(id, check, id=f"{id} {check.name}") for id in MEASURED for check in CATALOGUE[id].checks]


def run_all(id: str, shape: Shape, size: int | None = None) -> None:
    """Make up what is missing, as often as more is asked for."""
    while lacking := missing_runs(id, size or SIZES.get(id)):
        for experiment in lacking:
            put_run(experiment, shape(experiment))


def of_runs(found: Reproduced) -> list[dict[str, str | None]]:
    """The verdicts on what was measured in runs."""
    return [row for row in found.verdicts if not row["check"].startswith("simulated.")]


def computed(id: str) -> Computed:
    return Computed(id, CATALOGUE[id].compute(SIZES.get(id, 1), lambda done, total: None))


@pytest.fixture(scope="module")
def found_in(tmp_path_factory):
    """What a table or figure comes to in runs of a shape; made once for all checks that are judged on it."""

    @cache
    def made(id: str, shape: Shape) -> Computed:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("AFTERSHOCK_HOME", str(tmp_path_factory.mktemp("home")))
            run_all(id, shape)
            return computed(id)

    return made


@pytest.mark.extended
@pytest.mark.parametrize("id", MEASURED)
def test_the_papers_shape_passes(id, tmp_path):
    run_all(id, SHAPES[id])
    found = reproduce(id, tmp_path, SIZES.get(id))
    verdicts = {row["check"]: row["verdict"] for row in of_runs(found)}
    assert verdicts == {name: "unknown" if name in IN_MANY_RUNS else "pass" for name in verdicts}
    table = pd.read_parquet(found.files["parquet"])
    measured = table[~table["simulated"]]
    assert measured["run_id"].notna().sum() >= len(measured) - 1  # table IV has a row of what is refused
    assert found.files["png"].read_bytes().startswith(b"\x89PNG")


@pytest.mark.extended
@pytest.mark.parametrize(("id", "check"), CHECKS)
def test_a_check_notices_the_error_that_it_names(id: str, check: ReproductionCheck, found_in) -> None:
    """In runs of the paper's shape, or in simulated rows of it."""
    simulated = check.name.startswith("simulated.")
    sound = Computed(id, SIMULATED[id]) if simulated else found_in(id, SHAPES[id])
    if check.name in IN_MANY_RUNS:
        again = [sound.rows().assign(replicate=number) for number in range(TIMES)]
        sound = replace(sound, table=pd.concat(again, ignore_index=True))
    assert judge(check, sound)["verdict"] == "pass"
    assert judge(check, replace(sound, table=check.plant.change(sound.rows())))["verdict"] == "fail"


@pytest.mark.extended
@pytest.mark.parametrize("id", SIMULATED)
def test_what_the_machine_cannot_hold_is_simulated_and_says_so(id):
    run_all(id, SHAPES[id])
    table = computed(id).table
    rows = table[table["simulated"]]
    protocols = set(table.loc[~table["simulated"], "protocol"])
    found = rows.groupby(["query", "protocol", "workers"]).size()
    assert set(found.index) == set(product(QUERIES, protocols, (10, 50)))
    assert rows["run_id"].isna().all()
    assert set(rows["calibration"]) == {CALIBRATION}
    assert table.loc[~table["simulated"], "calibration"].isna().all()
    values = {
        "checkmate/fig-07": "relative",
        "checkmate/table-2": "message_overhead",
        "checkmate/fig-08": "mean",
        "checkmate/table-3": "invalid_share",
        "checkmate/fig-11": "own_s",
        "checkmate/staggered": "invalid_share",
    }
    assert rows[values[id]].notna().all()


@pytest.mark.parametrize("id", SIMULATED)
def test_simulated_rows_are_judged_by_themselves(id):
    """Without simulated rows the check says nothing, with any measured rows."""
    measured = Computed(id, SIMULATED[id].assign(simulated=False))
    asked = [check for check in CATALOGUE[id].checks if check.name.startswith("simulated.")]
    assert {judge(check, measured)["verdict"] for check in asked} == {"unknown"}


def test_each_simulated_row_says_that_it_is_not_calibrated_and_how_far_off_the_lab_found_it():
    rows = simulation.simulated([ProtocolName.NONE], lambda cell: [{}], ()).rows(lambda done, total: None)
    assert {row["calibration"] for row in rows} == {CALIBRATION}
    section = LAB.partition(SIMULATED_THROUGHPUT)[2].partition("\n### ")[0]
    found = re.findall(r"^\| q\d+ \| (?!none).* \| (\d\.\d\d) \|$", section, re.MULTILINE)
    within = sum(0.85 <= float(ratio) <= 1.15 for ratio in found)
    told = f"{min(found)} to {max(found)} times the measured ones, {within} of {len(found)} of them within 15 %"
    assert told in CALIBRATION


@pytest.mark.parametrize("id", SIMULATED)
def test_checks_and_plots_of_what_is_simulated_say_that_it_is_not_calibrated(id):
    sound = Computed(id, SIMULATED[id])
    asked = [check for check in CATALOGUE[id].checks if check.name.startswith("simulated.")]
    told = {str(judge(check, sound)["expected"]).rpartition("; ")[2] for check in asked}
    assert told == {"not calibrated against measured workers"}
    figure = CATALOGUE[id].plot(SIMULATED[id].assign(std=0.1, samples=4))
    panels = [axes.get_title() for axes in figure.axes if re.search("[15]0 workers", axes.get_title())]
    assert len(panels) == 2
    assert all(panel.endswith("simulated, not calibrated") for panel in panels)


@pytest.mark.parametrize("told", [None, "refused, somehow"])
def test_coordinated_checkpoints_on_a_cycle_must_be_refused_by_field_and_value(told, monkeypatch):
    (asked,) = (each for each in CATALOGUE["checkmate/table-4"].checks if each.name == "coordinated.refused")
    monkeypatch.setattr(cycle, "refusal", lambda protocol: told)
    table = cycle.with_refusal(pd.DataFrame({"protocol": ["UNC"]}))
    assert judge(asked, Computed("it", table))["verdict"] == "fail"


@pytest.mark.parametrize("id", [id for id in MEASURED if id not in SIMULATED])
def test_without_runs_everything_is_unknown_and_there_is_no_table(id, tmp_path):
    found = reproduce(id, tmp_path)
    assert {row["verdict"] for row in found.verdicts} == {"unknown"}
    assert set(found.files) == {"verdicts"}
    assert "has been done on this machine" in found.verdicts[0]["detail"]


@pytest.mark.extended
@pytest.mark.parametrize("id", SIMULATED)
def test_without_runs_what_is_simulated_is_judged_nevertheless(id, tmp_path):
    found = reproduce(id, tmp_path)
    assert {row["verdict"] for row in of_runs(found)} == {"unknown"}
    (lack,) = {row["detail"] for row in of_runs(found)}
    minutes = whole_s(*missing_runs(id)) / 60
    assert lack == (
        f"none of its {len(missing_runs(id))} runs has been done on this machine with tables of this version;"
        f" they take about {minutes:.0f} min"
    )
    assert "unknown" not in {row["verdict"] for row in found.verdicts if row not in of_runs(found)}
    table = pd.read_parquet(found.files["parquet"])
    assert len(table[~table["simulated"]]) == len(missing_runs(id))
    assert found.files["png"].read_bytes().startswith(b"\x89PNG")


@pytest.mark.extended
@pytest.mark.parametrize("id", [id for id in MEASURED if id not in SIMULATED])
def test_of_runs_that_measured_nothing_there_is_no_table(id):
    run_all(id, sustaining())
    with pytest.raises(NotEnough, match="nothing of it was measured"):
        computed(id)


@pytest.mark.extended
@pytest.mark.parametrize("id", [id for id in SIMULATED if id != "checkmate/fig-07"])
def test_of_runs_that_measured_nothing_only_what_is_simulated_is_judged(id, tmp_path):
    """Apart stands figure 7: a search that found nothing counts as missing."""
    run_all(id, sustaining())
    found = reproduce(id, tmp_path)
    assert {row["detail"].partition(" measured ")[0] for row in of_runs(found)} == {"no run has"}


@pytest.mark.parametrize(
    ("rates", "verdict"),
    [
        ([9900], "unknown"),
        ([7000], "unknown"),
        ([9900, 9900], "pass"),
        ([9900, 5000], "unknown"),
        ([7000, 7001], "fail"),
    ],
    ids=str,
)
def test_how_searches_differ_widens_the_bracket(rates, verdict):
    row = coordinated_beside(9000.0, rates)
    assert row["verdict"] == verdict
    assert ("one search" in f"{row.get('observed')} {row.get('detail')}") == (len(rates) == 1)


def coordinated_beside(uncoordinated: float, rates: list[float]) -> dict[str, str | None]:
    """What searches of COOR that found these rates come to, beside those of UNC; brackets are 5 % wide."""
    return judged_searches([(rate, uncoordinated) for rate in rates])


def judged_searches(pairs: list[tuple[float, float]]) -> dict[str, str | None]:
    """What pairs of searches come to that found these rates with COOR and with UNC; brackets are 5 % wide."""
    about = {"query": "q1", "workers": 1, "run_id": "it", "simulated": False}
    rows = [
        about | {"protocol": name, "replicate": i, "sustainable_rate": held, "unsustainable_rate": 1.05 * held}
        for i, pair in enumerate(pairs)
        for name, held in zip(("COOR", "UNC"), pair, strict=True)
    ]
    asked = {check.name: check for check in CATALOGUE["checkmate/fig-07"].checks}["q1.coor_not_below_unc"]
    return judge(asked, Computed("it", pd.DataFrame(rows)))


@pytest.mark.parametrize("rate", [8700.0, 9000.0, 9400.0])
@pytest.mark.parametrize("searches", [1, 3, 10, 100])
def test_rates_that_are_nearer_than_their_brackets_are_decided_by_no_number_of_searches(searches, rate):
    row = coordinated_beside(9000.0, [rate] * searches)
    assert row["verdict"] == "unknown"
    assert "no number of searches of this precision would decide" in row["detail"]


def test_searches_that_differ_by_more_than_their_brackets_say_how_many_would_tell():
    row = coordinated_beside(9000.0, [9900.0, 9900.0, 11_000.0, 8900.0])
    assert (row["verdict"], "pairs of runs instead of 4 would tell" in row["detail"]) == ("unknown", True)


def test_fast_searches_count_no_more_than_slow_ones():
    """The ratio of the mean rates is 1.057, more than a bracket of 5 %; the mean ratio of the pairs is 1.044."""
    fast, slow = (1.08 * 9000.0, 9000.0), (1.01 * 4500.0, 4500.0)
    row = judged_searches([fast, slow] * 10)
    assert row["verdict"] == "unknown"
    assert "COOR / UNC on 1 1.04 (0.99 to 1.10)" in row["detail"]
    assert "no number of searches of this precision would decide" in row["detail"]


@pytest.mark.extended
def test_what_lacks_a_run_is_unknown_by_name_and_the_rest_is_judged(tmp_path):
    for experiment in missing_runs("checkmate/fig-08", 2):
        if not (experiment.workload.query == "q8" and experiment.engine.protocol == "uncoordinated"):
            put_run(experiment, SHAPES["checkmate/fig-08"](experiment))
    found = reproduce("checkmate/fig-08", tmp_path, 2)
    rows = {row["check"].rpartition("_")[2]: row for row in of_runs(found)}
    assert {other: row["verdict"] for other, row in rows.items()} == {"unc": "unknown", "cic": "pass"}
    assert rows["unc"]["detail"] == "mean is not known of q8 UNC 2w #1, q8 UNC 2w #2"


def test_a_run_from_which_nothing_comes_any_more_has_not_returned_to_normal():
    before = [
        {"query": "q1", "protocol": "UNC", "workers": 2, "replicate": 1, "second": at, "p50_s": 8.0} for at in (1, 9)
    ]
    asked = {check.name: check for check in CATALOGUE["checkmate/fig-09"].checks}["q1.returns_to_normal"]
    row = judge(asked, Computed("it", pd.DataFrame(before)))
    assert (row["verdict"], row["observed"]) == ("fail", "UNC #1 10.00")


@pytest.mark.parametrize(("last", "verdict"), [(58, "pass"), (52, "pass"), (50, "fail")])
def test_a_dataflow_that_comes_back_and_then_stands_has_not_returned_to_normal(last, verdict):
    """Its last results are no later than before; of the seconds after them there is no row."""
    about = {"query": "q1", "protocol": "UNC", "workers": 2, "replicate": 1, "p50_s": 8.0}
    rows = [about | {"second": at} for at in range(0, last + 1, 2)]
    asked = {check.name: check for check in CATALOGUE["checkmate/fig-09"].checks}["q1.returns_to_normal"]
    assert judge(asked, Computed("it", pd.DataFrame(rows)))["verdict"] == verdict


def test_under_skew_coordinated_output_is_not_held_back_for_an_older_line():
    """Otherwise its latency would be an interval above that of the others, at any skew."""
    runs = [*missing_runs("checkmate/fig-12a", 1), *missing_runs("checkmate/fig-12b", 1)]
    asked = [each for each in runs if each.engine.protocol_run == "coordinated"]
    assert asked
    assert {each.engine.spare_lines_run for each in asked} == {0}
    assert {each.engine.spare_lines for each in missing_runs("checkmate/fig-13", 1)} == {None}


def test_one_slow_second_before_the_kill_hides_what_is_no_slower_after_it():
    about = {"query": "q1", "protocol": "UNC", "workers": 2, "replicate": 1}
    rows = [about | {"second": at, "p50_s": p50_s} for at, p50_s in ((1, 2.0), (2, 2.0), (9, 4.0), (30, 4.5))]
    asked = {check.name: check for check in CATALOGUE["checkmate/fig-09"].checks}["q1.kill_is_felt"]
    row = judge(asked, Computed("it", pd.DataFrame(rows)))
    assert (row["verdict"], row["observed"]) == ("fail", "UNC #1 1.12")


@pytest.mark.parametrize(("before", "verdict"), [([9], "unknown"), ([4, 9], "fail")], ids=str)
@pytest.mark.parametrize("name", ["kill_is_felt", "returns_to_normal"])
def test_a_single_result_before_the_kill_does_not_tell_what_is_usual(before, verdict, name):
    about = {"query": "q1", "protocol": "UNC", "workers": 2, "replicate": 1}
    p50_s = {"kill_is_felt": 2.0, "returns_to_normal": 8.0}[name]
    rows = [about | {"second": at, "p50_s": 2.0 if at < 18 else p50_s} for at in (*before, 30, 50, 58)]
    asked = {check.name: check for check in CATALOGUE["checkmate/fig-09"].checks}[f"q1.{name}"]
    assert judge(asked, Computed("it", pd.DataFrame(rows)))["verdict"] == verdict


def test_a_host_suspected_before_the_kill_is_not_what_is_measured():
    experiment, *_ = missing_runs("checkmate/fig-11")
    phases = {"faults": 1, "death_ns": 0, "detect_s": 1.0, "restore_s": 1.0, "catch_up_s": 1.0, "executor_s": 4.0}
    suspected = phases | {"recovery": 0, "fault": None, "restart_s": 0.5}
    killed = phases | {"recovery": 1, "fault": 0, "restart_s": 6.0}
    run = put_run(experiment, {"recoveries": [suspected, killed]})
    (row,) = recovery_times(Cell(experiment, run))
    assert (row["restart_s"], row["own_s"]) == (6.0, 2.0)


@pytest.mark.parametrize(("catch_up_s", "verdict"), [(9.0, "pass"), (1.0, "fail")])
def test_a_protocol_that_restarts_faster_may_recover_later(catch_up_s, verdict):
    """COOR restarts in 4 s and catches up in 4, the others restart in 3."""
    about = {"workers": 2, "replicate": 1, "run_id": "it", "simulated": False, "restore_s": 1.0}
    rows = [
        about | {"query": q, "protocol": name, "restart_s": restart_s, "own_s": restart_s, "catch_up_s": lag_s}
        for q in QUERIES
        for name, restart_s, lag_s in (("COOR", 4.0, 4.0), ("UNC", 3.0, catch_up_s), ("CIC", 3.0, catch_up_s))
    ]
    found = {
        check.name: judge(check, Computed("it", pd.DataFrame(rows))) for check in CATALOGUE["checkmate/fig-11"].checks
    }
    for other in ("unc", "cic"):
        assert found[f"coordinated.not_slower_than_{other}"]["verdict"] == "fail"
        assert found[f"recovery.coordinated.not_slower_than_{other}"]["verdict"] == verdict


@pytest.mark.parametrize(
    ("times", "failing"),
    [
        (1.0, []),
        (5.0, ["no_slower_than_unc", "no_slower_than_cic"]),
        (0.5, ["no_faster_than_unc", "no_faster_than_cic"]),
    ],
)
def test_under_skew_restarts_are_alike_in_both_directions(times, failing):
    about = {"workers": 2, "replicate": 1, "run_id": "it", "simulated": False}
    rows = [
        about | {"query": q, "hot_share": hot, "protocol": name, "own_s": seconds}
        for q, hot in product(QUERIES[1:], (0.1, 0.2, 0.3))
        for name, seconds in (("COOR", 2.0 * times), ("UNC", 2.0), ("CIC", 2.0))
    ]
    table = Computed("it", pd.DataFrame(rows))
    found = {check.name: judge(check, table)["verdict"] for check in CATALOGUE["checkmate/fig-13"].checks}
    assert set(found.values()) <= {"pass", "fail"}
    assert [name.removeprefix("coordinated.") for name, verdict in found.items() if verdict == "fail"] == failing


def test_what_survivors_stored_while_one_was_missing_is_told_apart():
    experiment = next(each for each in missing_runs("checkmate/table-3") if each.engine.protocol_run != "coordinated")
    taken = checkpoints("op.0", [0.1] * 12, invalid=4) + checkpoints("op.1", [0.1] * 12)
    outage = {"recovery": 0, "fault": 0, "faults": 1, "death_ns": ns(47), "notice_ns": ns(48), "ready_ns": ns(57)}
    run = put_run(experiment, {"partition_checkpoints": taken, "recoveries": [outage]})
    (row,) = checkpoint_counts(Cell(experiment, run))
    assert {name: row[name] for name in ("checkpoints", "invalid", "in_outages", "invalid_in_outages")} == {
        "checkpoints": 20,
        "invalid": 2,
        "in_outages": 4,
        "invalid_in_outages": 2,
    }


def test_the_queries_that_were_measured_are_counted():
    about = {"query": "q1", "protocol": "CIC", "replicate": 1, "run_id": "it", "simulated": False}
    about |= {"records_per_message": 1}
    rows = [about | {"workers": workers, "message_overhead": 1.0 + workers / 10} for workers in (1, 2)]
    asked = {check.name: check for check in CATALOGUE["checkmate/table-2"].checks}["cic.grows_with_workers"]
    row = judge(asked, Computed("it", pd.DataFrame(rows)))
    assert (row["verdict"], row["observed"]) == ("pass", "by 0.100 to 0.100 in 1 queries")


def test_tables_and_figures_share_runs():
    for experiment in missing_runs("checkmate/fig-11"):
        put_run(experiment, SHAPES["checkmate/table-3"](experiment))
    assert missing_runs("checkmate/table-3") == []


def test_more_runs_of_each_cell_are_further_seeds():
    run_all("checkmate/fig-11", SHAPES["checkmate/fig-11"], 1)
    more = missing_runs("checkmate/fig-11", 3)
    assert len(more) == 24
    assert {experiment.seed for experiment in more} == {2, 3}
