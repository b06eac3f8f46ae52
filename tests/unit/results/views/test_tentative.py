"""Tentative output on the time axis of a run: the spans, the windows, and what pages and reports draw of them."""

import math

import pandas as pd
import pytest

from results.tables.schema import RUN_TABLES
from results.views import charts
from results.views.plots import timeline
from results.views.tentative import tentative_spans, tentative_windows
from tests.unit.results import synthetic

PREDICTED = {"output_fidelity": 0.25, "internal_completeness": 0.3, "absent": "a.1", "throughout": True}


def row(end_s, first_s, corrected_s, accuracy=0.25, **changed):
    """A window of 10 s; `accuracy` None if it has no exact results."""
    exact = 0 if accuracy is None else 100
    both = 0 if accuracy is None else round(100 * accuracy)
    counts = {"exact": exact, "emitted": 100, "both": both, "accuracy": accuracy, "leaked": 0}
    corrected_ns = None if corrected_s is None else synthetic.ns(corrected_s)
    moments = {"first_ns": synthetic.ns(first_s), "corrected_ns": corrected_ns}
    spanned = {"window_start_ns": synthetic.ns(end_s - 10), "window_end_ns": synthetic.ns(end_s)}
    return spanned | counts | moments | PREDICTED | changed


def run_with(folder, *rows):
    run = synthetic.make_run(folder, kills=(8.3,), window_s=60.0)
    run.write_table("tentative", RUN_TABLES["tentative"].of(list(rows)))
    return run


def test_windows_are_by_their_ends_in_seconds_of_the_measurement(tmp_path):
    windows = tentative_windows(run_with(tmp_path, row(21, 21.4, 40), row(20, 20.5, None, throughout=False)))
    assert windows["end_s"].tolist() == [20, 21]
    assert windows["first_s"].tolist() == pytest.approx([20.5, 21.4])
    assert math.isnan(windows["corrected_s"].iloc[0])
    assert windows["throughout"].tolist() == [False, True]


def spans_of(*pairs):
    return tentative_spans(pd.DataFrame(pairs, columns=["first_s", "corrected_s"]), 60.0)


def test_a_span_lasts_until_all_that_began_in_it_is_corrected():
    assert spans_of((21, 40), (20, 30), (22, 25)) == [(20, 40)]
    assert spans_of((20, 30), (31, 40)) == [(20, 30), (31, 40)]
    assert spans_of((20, None)) == [(20, 60)]
    assert spans_of() == []


def test_the_timeline_has_accuracy_and_prediction_of_every_window(tmp_path):
    rows = row(20, 20.5, 40), row(21, 21.5, 41, accuracy=0.5, absent="a.0,a.1"), row(22, 22.5, None, accuracy=None)
    found = charts.timeline(run_with(tmp_path, *rows))["tentative"]
    assert found["spans"] == [[20.5, 60.0]]
    windows = found["windows"]
    assert (windows["accuracy"], windows["predicted"]) == ([0.25, 0.5, None], [0.25, 0.25, 0.25])
    assert (windows["end_s"], windows["corrected_s"]) == ([20.0, 21.0, 22.0], [40.0, 41.0, None])
    assert (windows["exact"], windows["absent"]) == ([100.0, 100.0, 0.0], ["a.1", "a.0,a.1", "a.1"])


def test_without_results_to_compare_with_there_is_nothing_to_draw(tmp_path):
    run = run_with(tmp_path, row(20, 20.5, None, accuracy=None))
    assert charts.timeline(run)["tentative"] is None
    assert len(timeline(run).axes) == 2


def test_the_plot_has_a_panel_of_its_own_for_accuracy(tmp_path):
    figure = timeline(run_with(tmp_path, row(20, 20.5, 40), row(21, 21.5, 41, accuracy=0.5, throughout=False)))
    accuracy = figure.axes[-1]
    assert accuracy.get_ylabel() == "accuracy"
    drawn = {line.get_label(): list(line.get_ydata()) for line in accuracy.get_lines()}
    assert drawn["output fidelity predicted"] == [0.25, 0.25]
    assert drawn["accuracy of a window"] == [0.25]
    assert drawn["accuracy of a window that lacked the same only in part"] == [0.5]
    assert [patch.get_label() for patch in accuracy.patches] == ["tentative, not yet corrected"]


def test_runs_without_tentative_output_are_drawn_as_ever(tmp_path):
    run = synthetic.make_run(tmp_path, kills=(8.3,), window_s=60.0)
    assert charts.timeline(run)["tentative"] is None
    assert len(timeline(run).axes) == 2
