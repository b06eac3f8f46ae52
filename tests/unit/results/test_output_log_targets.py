"""Extent and replay against targets and model, on made-up reports with the errors that the checks must notice."""

import pandas as pd
import pytest

from experiments import spec
from models.log_extent import extent, oldest_window, settles_after
from results.checks.catalogue import CHECKS, checks_for
from results.checks.evidence import Evidence
from results.tables.schema import TABLES
from tests.unit.results import synthetic
from tests.unit.results.judging import judged, parts_at

NONE = ["engine.log_extent=null", "engine.log_replay=null"]
ALONE = spec.load("cec-prices", NONE)
Q, U = 30_000, 200_000
TARGETS = spec.load("cec-prices", [f"engine.log_extent={Q}", f"engine.log_replay={U}"])
INTERVAL_S, PERIOD_S = TARGETS.engine.check_pace_run_s
BUDGET_S = 0.5 / PERIOD_S * INTERVAL_S  # of half a second, the time between two reports
GROWN = 250 + 250 + 250 + 100  # opens, results, windows that may have closed without one, checks
NAMES = [f"output_logs.{name}" for name in ("extent", "replay", "modelled_extent", "modelled_replay")]


def reports(**last):
    """A partition's reports of four seconds; `last` puts something in the last one.

    Between two of them 2,500 records come, 250 windows open and close, and a tenth of the budget is spent.
    """
    rows = [
        {
            "at_ns": 10**9 + number * 500_000_000,
            "partition": "average.0",
            "records": 50_000 + 2_500 * number,
            "open_windows": 9_000,
            "opens": 20_000 + 250 * number,
            "checks": 100 * number,
            "results": 5_000 + 250 * number,
            "extent": Q,
            "replay": U,
            "bytes": 1,
            "check_s": number * BUDGET_S / 10,
        }
        for number in range(8)
    ]
    rows[-1] |= last
    return rows


def with_another(rows, **last):
    """The same with the reports of a second partition."""
    return rows + [each | {"partition": "average.1"} for each in reports(**last)]


def run_with(root, rows):
    run = synthetic.make_run(root, changes={})
    synthetic.write_table(run, "output_logs", pd.DataFrame(rows, columns=TABLES["output_logs"].names))
    return run


def verdict_on(root, name, rows, experiment=TARGETS):
    run = run_with(root, rows)
    named = next(each for each in CHECKS if each.name == f"output_logs.{name}")
    return judged(named, Evidence(run, experiment), root)["verdict"]


@pytest.mark.parametrize(("name", "target", "grown"), [("extent", Q, GROWN), ("replay", U, 2_500)])
def test_a_target_holds_but_for_what_came_since(tmp_path, name, target, grown):
    assert verdict_on(tmp_path / "a", name, with_another(reports(**{name: target + grown}))) == "pass"
    assert verdict_on(tmp_path / "b", name, with_another(reports(**{name: target + grown + 1}))) == "fail"


@pytest.mark.parametrize(("name", "found", "allowed"), [("extent", Q, GROWN), ("replay", U, 2_500)])
def test_the_report_that_is_furthest_from_its_target_is_found(tmp_path, name, found, allowed):
    rows = [each | {"at_ns": each["at_ns"] + synthetic.START_NS} for each in reports()]
    rows[-2] |= {name: 3 * found}
    rows[-1] |= {name: 2 * found}
    parts = parts_at(f"output_logs.{name}", run_with(tmp_path, rows), TARGETS)
    assert (parts.table, parts.second) == ("output_logs", 4.0)
    told = f"{name} of average.0 is {3 * found:,}, and at most {found + allowed:,} is allowed"
    assert parts.words == f"second 4: {told}"


@pytest.mark.parametrize("factor", [3, 1 / 3])
@pytest.mark.parametrize("name", ["extent", "replay"])
def test_the_partition_that_is_furthest_from_the_model_is_found(tmp_path, name, factor):
    model = {"extent": extent, "replay": oldest_window}[name]
    usual = int(model(ALONE.workload.items / 2, ALONE.workload.window_records, 0.5))
    rows = of_two_partitions(1_000_000, **{name: usual})
    rows[-1] |= {name: round(usual * factor), "at_ns": synthetic.ns(77.0)}
    parts = parts_at(f"output_logs.modelled_{name}", run_with(tmp_path, rows), ALONE)
    assert (parts.table, parts.second) == ("output_logs", 77.0)
    assert f"{name} of average.1 is {round(usual * factor):,} instead of" in parts.words


@pytest.mark.parametrize(
    "excuse",
    [
        {"check_s": 7 * BUDGET_S / 10 + 0.5 * BUDGET_S},  # most of the time was spent
        {"check_s": 6 * BUDGET_S / 10},  # no check period began, since hardly any input came
        {"opens": 0, "check_s": 0.0},  # restored since
        {"records": 50_000 + 2_500 * 6},  # it replays
        {"open_windows": Q + 1},  # no time would suffice
    ],
    ids=["spent", "no period", "restored", "replaying", "unattainable"],
)
def test_who_had_no_time_is_not_blamed(tmp_path, excuse):
    assert verdict_on(tmp_path / "a", "extent", with_another(reports(extent=Q + 10_000, **excuse))) == "pass"
    assert verdict_on(tmp_path / "b", "extent", with_another(reports(extent=Q + 10_000))) == "fail"


def test_after_a_replay_one_more_report_is_left_out(tmp_path):
    rows = reports(extent=Q + 10_000)
    rows[-2]["records"] = rows[-3]["records"]
    assert verdict_on(tmp_path, "extent", with_another(rows)) == "pass"


@pytest.mark.parametrize("name", ["extent", "replay"])
def test_without_time_nothing_is_known(tmp_path, name):
    busy = [each | {"check_s": number * BUDGET_S} for number, each in enumerate(reports())]
    assert verdict_on(tmp_path / "a", name, busy) == "unknown"
    assert verdict_on(tmp_path / "b", name, []) == "unknown"


@pytest.mark.parametrize(("name", "target"), [("extent", Q), ("replay", U)])
def test_a_partition_that_never_had_time_leaves_the_target_unknown_unless_another_one_missed_it(tmp_path, name, target):
    busy = [each | {"check_s": number * BUDGET_S} for number, each in enumerate(reports())]
    assert verdict_on(tmp_path / "a", name, with_another(busy)) == "unknown"
    assert verdict_on(tmp_path / "b", name, with_another(busy, **{name: 2 * target})) == "fail"
    assert verdict_on(tmp_path / "c", name, with_another(reports())) == "pass"


@pytest.mark.parametrize("name", ["extent", "replay"])
def test_extent_and_replay_are_the_model_s(tmp_path, name):
    workload = ALONE.workload
    model = {"extent": extent, "replay": oldest_window}[name]
    usual = int(model(workload.items / 2, workload.window_records, 0.5))
    age = int(oldest_window(workload.items / 2, workload.window_records, 0.5))

    def verdict(folder, found, records=6 * age):
        return verdict_on(tmp_path / folder, f"modelled_{name}", of_two_partitions(records, **{name: found}), ALONE)

    assert verdict("a", usual) == "pass"
    assert verdict("b", 2 * usual) == "fail"
    assert verdict("c", usual // 2) == "fail"
    assert verdict("d", usual, records=age) == "unknown"


def of_two_partitions(records, **found):
    return [
        each | {"partition": f"average.{number}", "records": records, **found}
        for number in range(2)
        for each in reports()
    ]


def test_a_replay_in_entries_is_noticed(tmp_path):
    """There are fewer entries than records: 2 of a window of 10."""
    entries = int(extent(ALONE.workload.items / 2, ALONE.workload.window_records, 0.5))
    assert verdict_on(tmp_path, "modelled_replay", of_two_partitions(500_000, replay=entries), ALONE) == "fail"


def test_large_windows_settle_late(tmp_path):
    large = spec.load("cec-prices", [*NONE, "workload.window_records=1000"])
    age = int(oldest_window(5000, 1000, 0.5))
    for records, expected in ((4 * age, "unknown"), (2 * settles_after(5000, 1000), "pass")):
        rows = of_two_partitions(int(records), replay=age)
        assert verdict_on(tmp_path / expected, "modelled_replay", rows, large) == expected


def test_a_model_of_many_items_is_not_asked_about_few(tmp_path):
    spread = spec.load("cec-prices", [*NONE, "workload.items=1000", "engine.partitions=11"])
    rows = [each | {"partition": f"average.{number}"} for number in range(11) for each in reports()]
    assert verdict_on(tmp_path, "modelled_extent", rows, spread) == "unknown"


@pytest.mark.parametrize(
    ("overrides", "asked"),
    [
        ([], [True, False, False, False]),
        ([*NONE], [False, False, True, True]),
        ([*NONE, "engine.log_replay=1000"], [False, True, False, False]),
        ([*NONE, "engine.log_failure_rate=0.01"], [False, False, False, False]),
        ([*NONE, "workload.window_records=1"], [False, False, False, False]),
        ([*NONE, "workload.items=999"], [False, False, False, False]),
    ],
)
def test_who_is_asked(overrides, asked):
    names = [each.name for each in checks_for(spec.load("cec-prices", overrides))]
    assert [name in names for name in NAMES] == asked
