"""The output rates of partitions, from the reports of a run: what counts, and what is left out."""

import pytest

from journal.events.testbed import PartitionReached, PartitionsAbsent, Recovering, RunPhase, WorkerLost
from results.tables.schema import RUN_TABLES
from spark_jobs.tables.dataflow.partition_rates import partition_rates
from tests.unit.example_events import example, report

S = 10**9
WINDOW = (10 * S, 20 * S)


def told(at_s, source, sink, epoch=1, **given):
    """Partition a.0 has put out so much by then, and the sink out.0 has taken in so much."""
    tallies = {"a.0": {"records_in": 0, "records_out": source}, "out.0": {"records_in": sink, "records_out": 0}}
    return report(round(at_s * S), epoch=epoch, tallies=tallies, **given)


def rates(*journal):
    return {row["partition"]: row["rate"] for row in partition_rates(journal, WINDOW, {"out.0"})}


def test_rates_are_output_per_second_and_of_a_sink_input():
    assert rates(told(10, 0, 0), told(11, 100, 10), told(14, 400, 30)) == {"a.0": 100.0, "out.0": 7.5}


def test_the_rows_fit_the_table():
    rows = partition_rates([told(10, 0, 0), told(11, 100, 10)], WINDOW, {"out.0"})
    assert RUN_TABLES["partition_rates"].of(rows).num_rows == 2


def test_only_the_window_counts():
    assert rates(told(5, 0, 0), told(10, 9000, 0), told(12, 9200, 0), told(25, 99999, 0))["a.0"] == 100.0


@pytest.mark.parametrize(
    "disturbance",
    [
        example(WorkerLost, 12 * S),
        example(Recovering, 12 * S),
        PartitionsAbsent((), at_ns=12 * S),
        told(12, 500, 0, phase=RunPhase.RESTORING),
    ],
)
def test_the_time_in_which_something_happened_is_left_out(disturbance):
    """Otherwise there would be 1,200 records in 3 s."""
    journal = told(10, 0, 0), told(11, 100, 0), disturbance, told(13, 1200, 0), told(14, 1400, 0)
    assert rates(*journal)["a.0"] == 100.0


def test_the_time_in_which_partitions_catch_up_is_left_out():
    """2 s were lost, so twice as much as usual comes out for 2 s, and none of it counts."""
    before, lost = (told(10, 0, 0), told(11, 100, 0)), told(12, 100, 0, phase=RunPhase.WAITING)
    after = told(14, 100, 0), told(15, 300, 0), told(16, 500, 0), told(17, 600, 0)
    assert rates(*before, lost, *after) == {"a.0": 100.0, "out.0": 0.0}


def test_an_outage_lasts_until_every_restored_partition_is_as_far_as_it_had_been():
    back = example(Recovering, 11 * S, restored=("a.0", "b.0"), reached={"a.0": {}, "b.0": {}})
    one, other = (example(PartitionReached, round(at * S), partition=name) for name, at in (("a.0", 12.1), ("b.0", 13)))
    journal = told(10, 0, 0), told(11, 100, 0), back, told(12, 700, 0), one, told(12.5, 999, 0), other
    assert rates(*journal, told(13.5, 1500, 0), told(16, 4000, 0), told(17, 4100, 0))["a.0"] == 100.0


def test_the_time_in_which_others_go_on_without_some_partitions_is_left_out():
    absent, back = PartitionsAbsent(("b.0",), at_ns=11 * S), PartitionsAbsent((), at_ns=13 * S)
    journal = told(10, 0, 0), told(11, 100, 0), absent, told(12, 120, 0), told(13, 140, 0), back
    assert rates(*journal, told(13.5, 300, 0), told(17, 1000, 0), told(18, 1100, 0))["a.0"] == 100.0


def test_partitions_that_count_anew_or_in_another_epoch_are_left_out():
    anew = told(10, 1000, 0), told(11, 1100, 0), told(12, 50, 0), told(13, 150, 0)
    assert rates(*anew)["a.0"] == 100.0
    later = told(12, 900, 0, epoch=2), told(13, 1000, 0, epoch=2)
    assert rates(told(10, 0, 0), told(11, 100, 0), *later)["a.0"] == 100.0


def test_without_any_quiet_time_there_is_no_row():
    assert rates() == rates(told(10, 0, 0)) == rates(told(10, 0, 0), example(WorkerLost, 11 * S), told(12, 9, 9)) == {}


def test_a_partition_that_reported_once_only_is_not_guessed():
    lacking = report(11 * S, epoch=1, tallies={"a.0": {"records_in": 0, "records_out": 100}})
    assert rates(told(10, 0, 0), lacking) == {}
