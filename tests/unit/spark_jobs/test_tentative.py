"""What tentative output was worth, on hand-made results and journals."""

import pandas as pd
import pytest

from experiments import spec
from journal.events.testbed import PartitionsAbsent
from results.tables.schema import RUN_TABLES
from spark_jobs.tables.dataflow.tentative import output_before_outage, partition_outages, tentative, totals
from testbed.experiment_layout import layout_of
from tests.unit.example_events import report

S = 1_000_000_000
SETTINGS = ["engine.recovery=passive", "engine.tentative=true", "workload.parallelism=[4, 2, 2]", "engine.partitions=4"]
TOP_100 = spec.load("ppa-top100", SETTINGS)


def results(window_s, keys, arrived_s=None, value="1", length_s=10):
    rows = {"start_ms": window_s * 1000, "end_ms": (window_s + length_s) * 1000, "key": list(keys), "value": value}
    return pd.DataFrame(rows if arrived_s is None else rows | {"arrived_ms": round(arrived_s * 1000)})


def journal(*spans):
    """Who is absent from when [s] on."""
    counted = {"records_in": 100, "records_out": 100}
    names = [each.name for each in layout_of(TOP_100).partitions]
    before = report(tallies=dict.fromkeys(names, counted))
    return [before, *(PartitionsAbsent(partitions, at_ns=round(at_s * S)) for at_s, *partitions in spans)]


def judged(told, found, oracle, sink, experiment=TOP_100):
    rows = tentative(experiment, told, found, oracle, sink)
    RUN_TABLES["tentative"].of(rows)
    return rows


def test_a_window_that_lacked_a_quarter_of_its_input_throughout():
    told = journal((9, "requests.0"), (30,))
    oracle = results(10, "abcd")
    (row,) = judged(told, results(10, "abc", 20.5), oracle, results(10, "abcd", 41))
    assert (row["exact"], row["emitted"], row["both"], row["leaked"]) == (4, 3, 3, 0)
    assert row["accuracy"] == row["output_fidelity"] == pytest.approx(0.75)
    assert row["throughout"]
    assert row["absent"] == "requests.0"
    assert (row["first_ns"], row["corrected_ns"]) == (20.5 * S, 41 * S)
    assert totals([row]) == {"tentative_accuracy": pytest.approx(0.75), "tentative_fidelity": pytest.approx(0.75)}


@pytest.mark.parametrize("spans", [[(11, "requests.0"), (30,)], [(9, "requests.0"), (15, "requests.0", "requests.1")]])
def test_a_window_of_which_the_missing_input_changed(spans):
    (row,) = judged(journal(*spans), results(10, "abc", 20.5), results(10, "abcd"), results(10, "abcd", 41))
    assert not row["throughout"]


def test_what_comes_out_when_all_are_back_lacks_what_was_absent_last():
    told = journal((9, "requests.0"), (19,))
    (row,) = judged(told, results(10, "abc", 20.5), results(10, "abcd"), results(10, "abcd", 41))
    assert row["absent"] == "requests.0"
    assert not row["throughout"]


LATER = [
    [(9, "requests.0"), (30,), (50, "requests.0", "requests.1"), (70,)],  # a second fault, before it was corrected
    [(9, "requests.0"), (30, "requests.0", "requests.1"), (70,)],
]


@pytest.mark.parametrize("spans", LATER, ids=["again", "meanwhile"])
def test_a_window_of_which_some_results_came_out_when_something_else_was_missing(spans):
    found = pd.concat([results(10, "abc", 20.5), results(10, "d", 60)])
    (row,) = judged(journal(*spans), found, results(10, "abcd"), results(10, "abcd", 81))
    assert (row["absent"], row["first_ns"], row["emitted"]) == ("requests.0", 20.5 * S, 4)
    assert not row["throughout"]


def test_a_window_that_was_never_corrected():
    told = journal((9, "requests.0"), (30,))
    (row,) = judged(told, results(10, "abc", 20.5), results(10, "abcd"), results(10, "abc", 41))
    assert row["corrected_ns"] is None


def test_a_tentative_result_in_the_exact_output():
    told = journal((9, "requests.0"), (30,))
    found = pd.concat([results(10, "abc", 20.5), results(10, "d", 20.6, value="0")])
    sink = pd.concat([results(10, "abcd", 41), results(10, "d", 42, value="0")])
    (row,) = judged(told, found, results(10, "abcd"), sink)
    assert row["leaked"] == 1


def test_a_window_without_exact_results_has_no_accuracy():
    (row,) = judged(journal((9, "requests.0")), results(10, "a", 20.5), results(0, "a"), results(0, "a", 12))
    assert (row["exact"], row["accuracy"], row["corrected_ns"]) == (0, None, None)
    assert totals([row]) == totals([]) == {"tentative_accuracy": None, "tentative_fidelity": None}


def test_a_window_without_exact_results_does_not_weigh_in_the_predicted_fidelity():
    """Of what came before anybody was absent nothing is predicted."""
    found = pd.concat([results(0, "a", 8), results(10, "abc", 20.5)])
    rows = judged(journal((9, "requests.0")), found, results(10, "abcd"), results(10, "abcd", 41))
    assert [(row["exact"], row.get("output_fidelity")) for row in rows] == [(0, None), (4, pytest.approx(0.75))]
    assert totals(rows)["tentative_fidelity"] == pytest.approx(0.75)


def test_results_of_single_records_are_judged_by_the_second():
    q1 = spec.load("dataflow-q12", ["workload.query=q1", *SETTINGS[:2], "engine.protocol=batch-aligned"])
    found = pd.concat([results(at, [f"0:{at}"], at + 1, length_s=0) for at in (10.1, 10.2, 11.1)])
    oracle = pd.concat([results(at, [f"0:{at}"], length_s=0) for at in (10.1, 10.2, 10.3, 11.1)])
    told = [PartitionsAbsent(("bids.1",), at_ns=9 * S)]
    rows = judged(told, found, oracle, oracle.assign(arrived_ms=20_000), q1)
    assert [(row["window_start_ns"], row["exact"], row["both"]) for row in rows] == [(10 * S, 3, 2), (11 * S, 1, 1)]


def test_outages_follow_each_other():
    told = [PartitionsAbsent(("a.0",), at_ns=1), PartitionsAbsent((), at_ns=5), PartitionsAbsent(("b.0",), at_ns=8)]
    assert [(each.start_ns, each.end_ns, each.partitions) for each in partition_outages(told)] == [
        (1, 5, ("a.0",)),
        (8, float("inf"), ("b.0",)),
    ]


def test_where_nobody_was_absent_there_is_no_outage():
    assert partition_outages([]) == []


def test_rates_are_those_from_before_the_first_outage():
    layout = layout_of(TOP_100)
    early = report(
        tallies={"requests.0": {"records_in": 1, "records_out": 7}, "out.0": {"records_in": 3, "records_out": 0}}
    )
    late = report(tallies={"requests.0": {"records_in": 1, "records_out": 99}})
    told = [early, PartitionsAbsent(("requests.1",)), late]
    assert output_before_outage(told, layout) == {"requests.0": 7.0, "out.0": 3.0}
    assert output_before_outage([PartitionsAbsent(("requests.1",))], layout) == {}
