"""The table of output logs from reports, and its check: as many windows are open as the model says."""

import numpy as np
import pandas as pd
import pytest

from experiments import spec
from journal.events.testbed import Report, RunPhase
from models.open_windows import open_windows
from results.checks.catalogue import checks_for
from results.tables.schema import TABLES
from spark_jobs.tables.dataflow.output_logs import output_logs
from tests.unit.results import synthetic
from tests.unit.results.judging import parts_at, verdict_of

EXPERIMENT = spec.load("cec-prices", [])
NAME, S = "output_logs.open_windows", 10**9


def counts(open_windows, records, **others):
    names = ("opens", "checks", "results", "extent", "replay", "bytes")
    return {"records": records, "open_windows": open_windows, **dict.fromkeys(names, 1), "check_s": 0.25, **others}


def report(at_ns, **logs):
    named = {name.replace("_", "."): each for name, each in logs.items()}
    return Report(1, RunPhase.RUNNING, {}, {}, 2, 0, 0.0, 0.0, 0.0, named, at_ns=at_ns)


def rows_of(first, second, records=60_000):
    """Two partitions in one report, one of them alone in the last."""
    journal = [
        report(1 * S, average_0=counts(7, 7)),
        report(11 * S, average_0=counts(first, records), average_1=counts(second, records)),
        report(12 * S, average_1=counts(9, 9)),
    ]
    return output_logs(journal, (10 * S, 70 * S))


def test_one_row_for_each_report_in_the_window_and_each_partition():
    found = rows_of(4000, 4100)
    assert [(each["at_ns"] // S, each["partition"]) for each in found] == [
        (11, "average.0"),
        (11, "average.1"),
        (12, "average.1"),
    ]
    assert (found[0]["open_windows"], found[0]["check_s"]) == (4000, 0.25)


def verdict(root, rows, items=10_000, size=10):
    run = synthetic.make_run(root, changes={})
    synthetic.write_table(run, "output_logs", pd.DataFrame(rows, columns=TABLES["output_logs"].names))
    experiment = spec.load("cec-prices", [f"workload.items={items}", f"workload.window_records={size}"])
    return verdict_of(NAME, run, root, experiment)["verdict"]


@pytest.mark.parametrize(
    ("items", "size", "allowed"),
    [
        (10_000, 10, 120),  # 4 sqrt(10,000 x .9 x .1)
        (10_000, 2, 200),  # 4 sqrt(10,000 x .5 x .5)
        (50_000, 100, 495),  # 1 % of 49,500, for which 4 sqrt(50,000 x .99 x .01) = 89 is less
    ],
)
def test_what_the_model_says_passes_and_more_than_the_tolerance_off_fails(tmp_path, items, size, allowed):
    records = 40 * size * items  # by then, the share of open windows is (size - 1) / size
    half = int(open_windows(items, size, records) / 2)

    def found(off):
        return verdict(tmp_path / str(off), rows_of(half, half + off, records // 2), items, size)

    assert [found(off) for off in (0, allowed - 3, 3 - allowed)] == ["pass"] * 3
    assert [found(off) for off in (allowed + 3, -allowed - 3)] == ["fail"] * 2


def test_without_a_report_nothing_is_known(tmp_path):
    assert verdict(tmp_path, []) == "unknown"


def test_a_partition_that_never_reported_leaves_it_unknown(tmp_path):
    """With a tenth of a record an item, half of the items have nearly as many open windows as all of them would."""
    alone = output_logs([report(11 * S, average_0=counts(906, 1000))], (10 * S, 70 * S))
    assert verdict(tmp_path / "alone", alone) == "unknown"
    assert verdict(tmp_path / "both", rows_of(453, 453, 500)) == "pass"


def test_a_run_parts_from_the_model_in_its_last_whole_report(tmp_path):
    run = synthetic.make_run(tmp_path, changes={})
    rows = [each | {"at_ns": each["at_ns"] + synthetic.START_NS} for each in rows_of(4000, 4100)]
    synthetic.write_table(run, "output_logs", pd.DataFrame(rows, columns=TABLES["output_logs"].names))
    found = parts_at(NAME, run, spec.load("cec-prices", ["workload.items=10000", "workload.window_records=10"]))
    assert (found.table, found.second) == ("output_logs", 11.0)
    assert "8,100 windows were open instead of" in found.words


@pytest.mark.parametrize(("items", "size"), [(1000, 2), (1000, 3), (1000, 100), (10_000, 2)])
def test_chance_alone_does_not_fail(tmp_path, items, size):
    """Of 300 drawings the one that is the farthest off."""
    draw, records = np.random.default_rng(items + size), 4 * size * items
    of_items = draw.multinomial(records, np.full(items, 1 / items), 300)
    found, usual = np.count_nonzero(of_items % size, axis=1), open_windows(items, size, records)
    farthest = int(found[np.abs(found - usual).argmax()])
    rows = rows_of(farthest // 2, farthest - farthest // 2, records // 2)
    assert verdict(tmp_path, rows, items, size) == "pass"


@pytest.mark.parametrize("override", ["engine.protocol=batch-aligned", "workload.items=999"])
def test_who_has_no_such_windows_is_not_asked(override):
    others = ["engine.log_extent=null", "engine.check_interval_s=null", "engine.check_period_s=null"]
    other = spec.load("cec-prices", [*others, override])
    assert NAME not in [each.name for each in checks_for(other)]
    assert NAME in [each.name for each in checks_for(EXPERIMENT)]
