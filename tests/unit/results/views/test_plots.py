"""What the plots of a run draw, and what their legends name."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.container import BarContainer

from results.views import charts
from results.views.palette import FAULT, MEASURED, MODEL, PHASE_COLOURS, PHASE_NAMES
from results.views.plots import (
    MANY_FAULTS,
    latency,
    recoveries,
    timeline,
    useful_time,
    utilization_over_interval,
)
from tests.unit.results import synthetic

COMMITTED, UNKNOWN = "committed", "unknown from here"


def legend_of(figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].get_legend().get_texts()]


def colours_of(axes) -> dict[str, str]:
    """The colour of each line and bar that the legend names."""
    handles, labels = axes.get_legend_handles_labels()
    return {label: to_hex(_colour(handle)) for handle, label in zip(handles, labels, strict=True)}


def _colour(handle):
    if isinstance(handle, BarContainer):
        return handle.patches[0].get_facecolor()
    return handle.get_facecolor()[0] if isinstance(handle, PolyCollection) else handle.get_color()


def test_the_legends_name_all_that_is_drawn_on_the_time_axis(tmp_path):
    run = synthetic.make_run(tmp_path)
    events = ["fault", "checkpoint", *PHASE_NAMES.values()]
    assert legend_of(timeline(run)) == [COMMITTED, UNKNOWN, "due", *events]
    assert legend_of(latency(run)) == ["median", "p99", "p99.9", *events]
    assert legend_of(useful_time(run)) == ["measured", "replayed", "fault"]


def test_a_meaning_has_the_same_colour_in_every_plot(tmp_path):
    run = synthetic.make_run(tmp_path)
    drawn = [colours_of(figure.axes[0]) for figure in (timeline(run), latency(run), useful_time(run), recoveries(run))]
    for colours in drawn:
        phases = {phase: colours[name] for phase, name in PHASE_NAMES.items() if name in colours}
        assert phases in ({}, PHASE_COLOURS)
        assert colours.get("fault", FAULT) == FAULT
    assert [drawn[i][name] for i, name in enumerate((COMMITTED, "median", "measured"))] == [MEASURED] * 3
    assert drawn[2]["replayed"] == MODEL


@pytest.mark.parametrize("predicted", [0.59, 0.65, 0.71])
def test_a_prediction_outside_of_its_interval_is_drawn_where_it_is(tmp_path, predicted):
    """The mean of the replays lies there if fewer than a fortieth of them are wild."""

    def change(table: pd.DataFrame) -> pd.DataFrame:
        return table.assign(predicted=predicted, low=0.6, high=0.7)

    axes = utilization_over_interval(synthetic.make_run(tmp_path, changes={"predictions": change})).axes[0]
    (arms,) = (bars for _, _, bars in axes.containers)
    assert arms[0].get_segments()[0][:, 1] == pytest.approx([0.6, 0.7])
    marks = [line.get_ydata()[0] for line in axes.get_lines() if line.get_marker() == "_"]
    assert sorted(marks) == pytest.approx(sorted([0.6, 0.7, predicted])), "both ends of the interval, and the mean"


def lines_of(axes) -> dict[str, tuple]:
    return {line.get_label(): line.get_data() for line in axes.get_lines()}


def test_throughput_falls_to_zero_in_every_outage_and_ends_at_a_mark(tmp_path):
    run = synthetic.make_run(tmp_path)
    lines, recoveries = lines_of(timeline(run).axes[0]), run.table("recoveries")
    seconds, rate = (np.asarray(each) for each in lines[COMMITTED])
    for death_ns, ready_ns in zip(recoveries["death_ns"], recoveries["ready_ns"], strict=True):
        death_s, ready_s = ((at_ns - synthetic.START_NS) / 1e9 for at_ns in (death_ns, ready_ns))
        assert set(rate[(seconds >= death_s) & (seconds + 1 <= ready_s)]) == {0.0}
    last = np.flatnonzero(~np.isnan(rate))[-1]
    assert np.ravel(lines[UNKNOWN]).tolist() == [seconds[last], rate[last]]


def test_a_line_that_reaches_the_end_of_the_window_has_no_mark(tmp_path):
    def to_the_end(table: pd.DataFrame) -> pd.DataFrame:
        return table.assign(completed_ns=table["completed_ns"].where(table.index < table.index[-1], synthetic.ns(250)))

    run = synthetic.make_run(tmp_path, changes={"checkpoints": to_the_end})
    assert UNKNOWN not in legend_of(timeline(run))


def bars_of(axes) -> dict[str, list[float]]:
    return {bars.get_label(): [bar.get_width() for bar in bars.patches] for bars in axes.containers}


def test_every_recovery_is_a_bar_of_its_phases_with_its_length(tmp_path):
    run = synthetic.make_run(tmp_path)
    axes, table = recoveries(run).axes[0], run.table("recoveries")
    bars = bars_of(axes)
    for phase, name in PHASE_NAMES.items():
        assert bars[name] == pytest.approx(table[f"{phase}_s"].tolist())
    ends = [text.xy[0] for text in axes.texts]
    assert ends == pytest.approx(table[[f"{phase}_s" for phase in PHASE_NAMES]].sum(axis=1).tolist())


def without_catch_up(*rows: int):
    def change(table: pd.DataFrame) -> pd.DataFrame:
        return table.assign(**{name: table[name].mask(table.index.isin(rows)) for name in ("normal_ns", "catch_up_s")})

    return change


def test_a_catch_up_that_was_not_measured_is_marked_at_the_end_of_its_bar(tmp_path):
    run = synthetic.make_run(tmp_path, changes={"recoveries": without_catch_up(1, 4)})
    figure = recoveries(run)
    assert legend_of(figure)[-1] == "catch-up not measured"
    (marks,) = (line for line in figure.axes[0].get_lines() if line.get_label() == "catch-up not measured")
    assert marks.get_ydata().tolist() == [1, 4]


def test_a_recovery_that_the_run_did_not_see_to_its_end_is_no_short_one(tmp_path):
    """Of the last one only the detection is known, 1.1 s or so: the bar must not read as a recovery of 1.1 s.

    It began at 201.7 s, and the window ends at 240 s.
    """
    later = ("ready_ns", "restored_ns", "normal_ns", "restart_s", "restore_s", "catch_up_s", "executor_s")

    def change(table: pd.DataFrame) -> pd.DataFrame:
        return table.assign(**{name: table[name].mask(table.index == 5) for name in later})

    run = synthetic.make_run(tmp_path, changes={"recoveries": change})
    figure = recoveries(run)
    assert legend_of(figure)[-1] == "not over when the run ended"
    (marks,) = (line for line in figure.axes[0].get_lines() if line.get_label() == "not over when the run ended")
    assert marks.get_ydata().tolist() == [5]
    told = [text.get_text() for text in figure.axes[0].texts]
    assert [text.startswith("more than ") for text in told] == [False] * 5 + [True]
    assert told[-1] == "more than 38.3 s"
    assert charts.recoveries(run)["totals"] == told, "the page says the same"


def test_under_a_load_that_saturates_no_legend_promises_a_catch_up(tmp_path):
    run = synthetic.make_run(tmp_path, changes={"recoveries": without_catch_up(*range(6))})
    assert legend_of(recoveries(run)) == [
        "detect",
        "restart",
        "restore",
        "of it Spark's executors",
        "catch-up not measured",
    ]
    assert "catch-up" not in legend_of(timeline(run))


def test_texts_of_many_recoveries_do_not_overlap(tmp_path):
    kills = tuple(20.0 + 25 * i for i in range(150))
    figure = recoveries(synthetic.make_run(tmp_path, kills=kills, window_s=4000.0))
    axes = figure.axes[0]
    assert not axes.texts
    labels = axes.get_yticklabels()
    per_label_pt = 72 * figure.get_figheight() * 0.9 / len(labels)
    assert per_label_pt > labels[0].get_fontsize()


def test_many_faults_do_not_hide_the_lines(tmp_path):
    few = timeline(synthetic.make_run(tmp_path / "few")).axes[0]
    many = timeline(
        synthetic.make_run(
            tmp_path / "many", kills=tuple(20.0 + 25 * i for i in range(MANY_FAULTS + 1)), window_s=1100.0
        )
    ).axes[0]
    assert sum(to_hex(line.get_color()) == FAULT for line in few.get_lines()) == 6
    (ticks,) = (line for line in many.get_lines() if to_hex(line.get_color()) == FAULT)
    assert len(ticks.get_xdata()) == MANY_FAULTS + 1
    assert ticks.get_linestyle() == "None"


def test_a_bar_names_few_hosts_and_counts_many(tmp_path):
    targets = ["a", "a,b", "a,b,c", "d", "e", "f", "g"]
    run = synthetic.make_run(tmp_path, changes={"faults": lambda table: table.assign(targets=targets)})
    names = [text.get_text().split("  ")[1] for text in recoveries(run).axes[0].get_yticklabels()]
    assert names[:3] == ["a", "a,b", "3 hosts"]
