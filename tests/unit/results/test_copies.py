"""The table of copies from reports, the shares of CPU, and the check: a copy costs no more than its primary."""

from dataclasses import replace

import pytest

from experiments import spec
from experiments.wording import significant
from journal.events.testbed import Costs, PartitionCost, WorkerJoined
from results.checks.catalogue import checks_for
from results.tables.schema import RUN_TABLES
from results.views.copies import copies_of
from spark_jobs.tables.dataflow.copies import copies, cpu_shares
from tests.unit.results import synthetic
from tests.unit.results.judging import parts_at, verdict_of

EXPERIMENT = spec.load("ppa-partially-active", [])
NAME, S, WINDOW = "copies.cpu", 10**9, (10 * 10**9, 70 * 10**9)
JOINED = WorkerJoined("slot-3", 2, 0, "127.0.1.5", at_ns=S)


def cost(worker, processing_s, records, checkpoint_s=0.0, input_bytes=0, retained_bytes=0):
    return PartitionCost(worker, processing_s, checkpoint_s, records, input_bytes, retained_bytes)


def second(number, copy_us=8, worker="slot-3", at="slot-1"):
    """In each second both the primary and its copy process 100,000 records."""
    records = 100_000 * number
    primary = cost(at, records * 10e-6, records, checkpoint_s=0.05 * number)
    copy = cost(worker, records * copy_us * 1e-6, records, input_bytes=9000 * number, retained_bytes=500 + number)
    return Costs({"count.0": primary, "other.0": cost("slot-2", 0.5 * number, 1)}, {"count.0": copy}, at_ns=number * S)


def rows_of(journal):
    return copies(journal, WINDOW, {"127.0.1.5": "worker-3"})


def test_a_row_has_what_a_copy_and_its_primary_took_since_the_report_before():
    first, last = rows_of([JOINED, *map(second, range(9, 13))])
    assert (first["at_ns"], last["at_ns"]) == (11 * S, 12 * S)
    assert (last["partition"], last["host"], last["seconds"]) == ("count.0", "worker-3", 1.0)
    assert (last["records"], last["primary_records"], last["input_bytes"], last["retained_bytes"]) == (
        100_000,
        100_000,
        9000,
        512,
    )
    assert (last["cpu_s"], last["primary_cpu_s"]) == (pytest.approx(0.8), pytest.approx(1.0))


def test_a_copy_that_was_made_anew_begins_anew():
    assert len(rows_of([second(11), second(12), again(second(2), 13)])) == 1
    assert len(rows_of([second(11), second(12, worker="slot-4"), second(13, worker="slot-4")])) == 1


def again(report, number):
    """The report of an earlier second, as if counts had started from 0."""
    return Costs(report.primaries, report.copies, at_ns=number * S)


def test_a_primary_that_moved_is_not_known_for_a_second():
    before, after = rows_of([second(11), second(12, at="slot-5"), second(13, at="slot-5")])
    assert (before["primary_cpu_s"], before["cpu_s"]) == (None, pytest.approx(0.8))
    assert after["primary_cpu_s"] == pytest.approx(1.0)


def test_shares_are_of_what_all_primaries_processed_in_the_window():
    shares = cpu_shares([second(each) for each in range(5, 90)], WINDOW)
    assert shares.copies_cpu_share == pytest.approx(0.8 / 1.5)
    assert shares.checkpoint_cpu_share == pytest.approx(0.05 / 1.5)
    assert cpu_shares([], WINDOW).checkpoint_cpu_share is None


def test_a_page_has_means_by_copy(tmp_path):
    (row,) = copies_of(run_with(tmp_path, [JOINED, *map(second, range(10, 20))]))
    assert (row.partition, row.host, row.seconds, row.most_retained_bytes) == ("count.0", "worker-3", 9.0, 519)
    assert (row.cpu_cores, row.primary_cores) == (pytest.approx(0.8), pytest.approx(1.0))
    assert row.input_rate_bytes == 9000


def test_a_damaged_table_shows_no_copies(tmp_path):
    run = run_with(tmp_path, [JOINED, *map(second, range(10, 20))])
    (run.tables / "copies.parquet").write_bytes(b"no table")
    assert copies_of(run) == []


def run_with(root, journal):
    run = synthetic.make_run(root, changes={})
    run.write_table("copies", RUN_TABLES["copies"].of(rows_of(journal)))
    return run


def verdict(root, journal):
    return verdict_of(NAME, run_with(root, journal), root, EXPERIMENT)["verdict"]


def test_a_copy_that_costs_more_than_its_primary_fails(tmp_path):
    assert verdict(tmp_path / "a", [second(each, copy_us=11.9) for each in range(10, 20)]) == "pass"
    assert verdict(tmp_path / "b", [second(each, copy_us=12.1) for each in range(10, 20)]) == "fail"
    assert verdict(tmp_path / "c", [second(10)]) == "unknown"


def with_dearer(number, turn):
    """Both copies cost less than their primaries until a second, and from then on that of `count.0` costs 3 s more."""
    late_s = 3.0 * max(number - turn, 0)
    report = second(number, copy_us=8 + 10 * late_s / number)
    return replace(report, copies={**report.copies, "other.0": cost("slot-3", 0.4 * number, 1)})


@pytest.mark.parametrize("turn", [14, 9], ids=["later", "at once"])
def test_a_failed_check_leads_to_the_second_from_which_on_copies_cost_too_much(tmp_path, turn):
    run = synthetic.make_run(tmp_path, changes={})
    rows = rows_of([with_dearer(number, turn) for number in range(10, 20)])
    moved = [row | {"at_ns": row["at_ns"] + synthetic.START_NS} for row in rows]
    run.write_table("copies", RUN_TABLES["copies"].of(moved))
    assert verdict_of(NAME, run, tmp_path, EXPERIMENT)["verdict"] == "fail"
    found = parts_at(NAME, run, EXPERIMENT)
    seconds = 19 - max(turn, 10)
    assert (found.table, found.second) == ("copies", 20.0 - seconds)
    copy_s, primary_s = significant(3.8 * seconds), significant(1.0 * seconds)
    assert f"the copy of count.0 differs most: {copy_s} s, and its primary {primary_s} s" in found.words


@pytest.mark.parametrize("override", ["engine.replication_ratio=0", "engine.recovery=passive"])
def test_who_has_no_copies_is_not_asked(override):
    others = ["engine.replication_ratio=null"] if "passive" in override else []
    asked = {"copies.cpu", "copies.schema", "copies.values"}
    assert not asked & {each.name for each in checks_for(spec.load("ppa-partially-active", [*others, override]))}
    assert asked <= {each.name for each in checks_for(EXPERIMENT)}
