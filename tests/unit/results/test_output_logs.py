"""The table of output logs from reports, and its check: as many windows are open as the model says."""

import pandas as pd
import pytest

from experiments import spec
from journal.events.testbed import Report, RunPhase
from models.open_windows import open_windows
from results.checks.catalogue import checks_for
from results.tables.schema import TABLES
from spark_jobs.tables.dataflow.output_logs import output_logs
from tests.unit.results import synthetic
from tests.unit.results.judging import verdict_of

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


def verdict(root, rows):
    run = synthetic.make_run(root, changes={})
    synthetic.write_table(run, "output_logs", pd.DataFrame(rows, columns=TABLES["output_logs"].names))
    return verdict_of(NAME, run, root, EXPERIMENT)["verdict"]


def test_what_the_model_says_passes_and_more_than_a_hundredth_off_fails(tmp_path):
    whole = open_windows(10_000, 10, 120_000)
    assert verdict(tmp_path / "a", rows_of(int(whole / 2), int(whole / 2))) == "pass"
    assert verdict(tmp_path / "b", rows_of(int(whole / 2), int(whole / 2 - 0.012 * whole))) == "fail"
    assert verdict(tmp_path / "c", rows_of(int(whole / 2), int(whole / 2))[:0]) == "unknown"


@pytest.mark.parametrize("override", ["engine.protocol=batch-aligned", "workload.items=4000"])
def test_who_has_no_such_windows_is_not_asked(override):
    others = ["engine.log_extent=null", "engine.check_interval_s=null", "engine.check_period_s=null"]
    other = spec.load("cec-prices", [*others, override])
    assert NAME not in [each.name for each in checks_for(other)]
    assert NAME in [each.name for each in checks_for(EXPERIMENT)]
