"""A matrix of protections as text, as a table, and as a plot."""

from __future__ import annotations

import csv
import io

import pandas as pd
import pytest

from results.protection.contest import Contestant, Win
from results.protection.estimates import mean
from results.protection.matrix import LeftOut, Matrix, matrices
from results.summary import index
from results.tables.schema import TABLES
from results.views.protection import COLUMNS, STARVED, WHY_LEFT_OUT, as_csv, cell, sentences, shown
from results.views.protection_plot import as_svg, plot, write
from tests.unit.results.protection.runs import KILLS, QUERY, write_protections, write_run
from tests.unit.results.synthetic import write_table

pytestmark = pytest.mark.usefixtures("home")


def written(**options) -> list[Matrix]:
    write_protections(**options)
    return matrices(index.rows())


@pytest.fixture(scope="module")
def two_protections(tmp_path_factory) -> list[Matrix]:
    """Those of most tests, which change nothing in them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AFTERSHOCK_HOME", str(tmp_path_factory.mktemp("home")))
        return written()


def test_cells_have_three_digits_and_a_unit_and_say_why_there_is_no_interval():
    by_name = {column.name: column for column in COLUMNS}
    assert cell(by_name["cost_s"], mean([1.23456] * 3, "a")) == ("1.23 s", "1.23 to 1.23")
    assert cell(by_name["rate"], mean([4409.6, 4409.6], "a")) == ("4,410 records/s", "of 2 only")
    assert cell(by_name["checkpoint_share"], mean([0.1239], "a")) == ("12.4 %", "of 1 only")
    assert cell(by_name["accuracy"], None).value == "\N{EN DASH}"


def test_a_winner_of_nearly_all_draws_is_not_told_to_win_all(two_protections):
    (one,) = two_protections
    drawn = Matrix(one.setting, one.failures, one.load, one.protections, {})
    vars(drawn)["wins"] = [Win("fast", 0.0, 0.01, 0.9965, None, True)]
    assert "fast gets the most done, in 99.7 % of the draws." in " ".join(sentences(drawn))


def test_a_lead_that_may_be_chance_is_not_told_as_a_win(two_protections):
    (one,) = two_protections
    drawn = Matrix(one.setting, one.failures, one.load, one.protections, {})
    vars(drawn)["wins"] = [Win("fast", 0.0, 0.01, 0.62, None, True)]
    text = " ".join(sentences(drawn))
    assert "fast is ahead, but in 62 % of the draws only: the runs do not show which is best." in text
    assert "gets the most done" not in text


def test_a_protection_that_cannot_win_is_named_beside_the_winners():
    """It has the highest rate of all, and two runs."""
    for number in range(2):
        write_run(f"few-{number}", engine=QUERY | {"partitions": 3}, useful_s=99.0, checkpoint_s=1.0, costs_s=(1.0,))
    (one,) = written()
    (few,) = one.outsiders
    assert "partitions 3" in few
    assert f"Cannot win (too few runs that count, or too few faults): {few}." in sentences(one)
    assert [row["can_win"] for row in csv.DictReader(io.StringIO(as_csv([one])))].count("False") == 1
    assert one.to_json()["outsiders"] == [few]


def test_a_protection_of_which_all_runs_failed_is_named():
    engine = {"name": "dataflow", "protocol": "uncoordinated"}
    bids = {"workload": {"name": "nexmark", "query": "q12"}, "faults": KILLS}
    write_run("good", engine=QUERY, useful_s=90.0, checkpoint_s=10.0, costs_s=(9.0,), fields=bids)
    failed = write_run("failed", engine=engine, useful_s=90.0, checkpoint_s=10.0, fields=bids, state="failed")
    for table in failed.tables.iterdir():
        table.unlink()
    (one,) = matrices(index.rows())
    assert [label.partition(",")[0] for label in one.absent] == ["dataflow (protocol uncoordinated)"]
    assert "No run counts of: dataflow (protocol uncoordinated), T = " in " ".join(shown([one]).split())
    assert one.to_json()["absent"] == list(one.absent)


def test_runs_with_a_failed_check_are_told_of_their_protection():
    doubtful = write_run("doubtful", engine=QUERY, useful_s=90.0, checkpoint_s=10.0, costs_s=(10.0,))
    verdict = dict.fromkeys(TABLES["verdicts"].names, "late") | {"verdict": "fail"}
    write_table(doubtful, "verdicts", pd.DataFrame([verdict]))
    (one,) = written()
    label = one.protections[0].label
    assert f"Runs that count although a check failed: 1 of {label}." in sentences(one)
    assert [row["failed_checks"] for row in csv.DictReader(io.StringIO(as_csv([one])))] == ["1", "0"]


def test_runs_that_waited_for_input_are_told_of_their_protection():
    write_run("idle", engine=QUERY, useful_s=90.0, checkpoint_s=10.0, costs_s=(10.0,), idle_s=20.0)
    (one,) = written()
    assert f"{STARVED}: 1 of {one.protections[0].label}." in sentences(one)


def test_the_text_names_the_setting_the_figures_and_the_winners(two_protections):
    lines = shown(two_protections).splitlines()
    assert lines[0] == "wordcount depth 1, 3 workers (local), load saturating, failures: kill of host, healed after"
    assert lines[1] == "2 s"
    assert lines[2] == "on a machine, 2 cores"
    (rates,) = [line for line in lines if line.startswith("  Rate without failures")]
    assert rates.split()[3:] == ["900", "records/s", "800", "records/s"]
    text = " ".join(" ".join(lines).split())
    assert (
        "From 0 to 81.8 failures per hour (81.8 to 81.8) structured-streaming (micro-batch, recovery by query)" in text
    )
    assert "From 81.8 to 360 failures per hour (the end of what is compared) structured-streaming" in text
    assert max(map(len, lines)) <= 92


def test_of_many_protections_a_few_stand_side_by_side():
    """Each of the repository's matrices has four or more."""
    for number in range(1, 5):
        engine = QUERY | {"partitions": 2 + number}
        write_run(f"run-{number}", engine=engine, useful_s=90.0, checkpoint_s=10.0, service_rate=1000.0 * number)
    lines = shown(matrices(index.rows())).splitlines()
    heads = [line.split() for line in lines if line.split() and set(line.split()) <= set("1234")]
    assert heads == [["1", "2", "3"], ["4"]]
    rates = [line.split()[3::2] for line in lines if line.startswith("  Rate without failures")]
    assert rates == [["900", "1,800", "2,700"], ["3,600"]]
    assert max(map(len, lines)) <= 92


def test_what_is_left_out_is_told():
    write_run("bad", engine=QUERY, useful_s=90.0, checkpoint_s=10.0, costs_s=(10.0,), wrong=3)
    (one,) = written()
    assert "Left out: 1 inexact (results were lost or wrong)." in sentences(one)


def test_a_single_protection_is_counted_and_not_compared():
    write_run("alone", engine=QUERY, useful_s=90.0, checkpoint_s=10.0)
    assert shown(matrices(index.rows())) == "1 more with fewer than two protections: --json has them"
    assert shown([]) == "no finished run tells what it ran"
    write_run("old", engine=QUERY, useful_s=90.0, checkpoint_s=10.0, schema_version=1)
    assert shown(matrices(index.rows())).endswith("outdated runs: 1, see `aftershock results recompute`")


def test_the_table_has_a_row_for_each_protection_with_plain_numbers(two_protections):
    rows = list(csv.DictReader(io.StringIO(as_csv(two_protections))))
    assert [float(row["rate"]) for row in rows] == pytest.approx([900.0, 800.0])
    assert [float(row["cost_s_high"]) for row in rows] == pytest.approx([10.0, 4.0])
    assert [float(row["wins_until_per_hour"]) for row in rows] == pytest.approx([3600 / 44, 360.0])
    assert [row["wins_share"] for row in rows] == ["1.0", "1.0"]
    assert [row["wins_until_low"] for row in rows][1] == ""
    assert as_csv([]) == ""


def test_the_plot_draws_each_rate_as_it_is_and_where_the_winner_changes(two_protections):
    (axes,) = plot(two_protections).axes
    ends = {line.get_label(): line.get_ydata()[[0, -1]] for line in axes.lines if "recovery" in line.get_label()}
    assert [pytest.approx(each) for each in ends.values()] == [[900.0, 450.0], [800.0, 800 / 1.4]]
    (change,) = [line for line in axes.lines if "recovery" not in line.get_label()]
    assert change.get_xdata()[0] == pytest.approx(3600 / 44)


def test_more_protections_than_there_are_colours_are_told_apart_by_their_lines(two_protections):
    (one,) = two_protections
    estimates = {"quiet": mean([900.0] * 3, "quiet"), "cost_s": mean([9.0] * 3, "cost")}
    many = [Contestant(f"protection {number}", **estimates, tried_at=0.01) for number in range(9)]
    drawn = Matrix(one.setting, one.failures, one.load, one.protections, {})
    vars(drawn)["contestants"] = many
    (axes,) = plot([drawn]).axes
    looks = {(line.get_color(), line.get_linestyle()) for line in axes.lines if "protection" in line.get_label()}
    assert len(looks) == 9


def test_under_a_set_rate_the_best_has_the_highest_utilization():
    (one,) = written(fields={"load": {"mode": "rate", "rate": 3000}, "faults": KILLS})
    text = " ".join(shown([one]).split())
    assert "has the highest utilization, in" in text
    assert "gets the most done" not in text
    (cells,) = [line for line in shown([one]).splitlines() if line.startswith("  Utilization, no failures")]
    assert cells.split()[-2:] == ["0.9", "0.8"]
    (axes,) = plot([one]).axes
    assert axes.get_ylabel() == "utilization"


def test_the_plot_of_too_few_runs_has_the_costs():
    (axes,) = plot(written(runs=2)).axes
    assert [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "D"] == pytest.approx([10.0, 4.0])


def test_every_reason_to_leave_a_run_out_has_its_words():
    assert set(WHY_LEFT_OUT) == set(LeftOut)


def test_the_plot_of_one_setting_is_the_same_each_time_and_none_of_nothing(two_protections):
    (one,) = two_protections
    assert as_svg(one).startswith(b"<?xml")
    assert as_svg(one) == as_svg(one)
    write_run("quiet", engine=QUERY, useful_s=9.0, checkpoint_s=1.0)
    (quiet,) = matrices(index.rows())
    assert not quiet.can_be_drawn
    assert as_svg(quiet) is None


def test_table_and_plot_are_written_and_nothing_is_drawn_of_nothing(tmp_path, two_protections):
    names = [path.name for path in write(tmp_path / "out", two_protections)]
    assert names == ["matrix.csv", "matrix.png", "matrix.svg"]
    assert (tmp_path / "out" / "matrix.png").read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in write(tmp_path / "empty", [])] == ["matrix.csv"]
