"""The share of available queries: by hand, and of runs that belong together."""

import numpy as np
import pytest

from results.summary.availability import availability, least_ahead
from results.views import charts, plots, side_by_side, terminal
from tests.unit.results import synthetic
from tests.unit.results.test_query_recoveries import table

WINDOW_S = 60.0


def run_with(root, frame):
    run = synthetic.make_run(root, run_id=f"{root.name.replace('_', '-')[:40]}-1", changes={}, window_s=WINDOW_S)
    synthetic.write_table(run, "query_recoveries", frame)
    return run


def later(by_s):
    frame = table(by_s)
    return frame.assign(predicted_ns=None)


def test_a_query_counts_from_its_return_on(tmp_path):
    found = availability(run_with(tmp_path, table()))
    assert found.share([-1, 0, 10.9, 11, 30.9, 31]).tolist() == [1, 0, 0, 0.5, 0.5, 1]
    assert found.share([9.9, 10, 30], "planned").tolist() == [0, 0.5, 1]
    assert (found.first_back_s, found.never_back) == (11, ())


def test_what_never_comes_back_is_named(tmp_path):
    found = availability(run_with(tmp_path, table().assign(available_ns=[synthetic.ns(31), None])))
    assert found.never_back == ("q0.0",)
    assert found.share(1e9) == 0.5
    text = terminal.summary(run_with(tmp_path / "other", table().assign(available_ns=[synthetic.ns(31), None])))
    assert "Not available by the end: q0.0" in text
    assert "q1.0" in text


@pytest.mark.parametrize(("late_s", "is_behind"), [(-5, False), (0, False), (0.9, False), (2, True), (9, True)])
def test_a_run_is_behind_another_if_a_query_is_later_by_more_than_a_tenth(tmp_path, late_s, is_behind):
    better = availability(run_with(tmp_path / "better", later(late_s)))
    worse = availability(run_with(tmp_path / "worse", later(0)))
    assert (least_ahead(better, worse) < 0) is is_behind


def test_a_run_that_lost_no_query_has_no_chart(tmp_path):
    run = synthetic.make_run(tmp_path, changes={})
    assert availability(run) is None
    assert charts.available_queries(run) is None
    assert not charts.tells_queries(run)
    assert plots.availability_over_time(run) is None
    assert side_by_side.charts([run], [])["availabilities"] is None


def test_the_chart_has_planned_beside_measured_in_seconds_of_the_window(tmp_path):
    run = run_with(tmp_path, table())
    drawn = charts.available_queries(run)
    assert drawn["queries"] == 2
    assert drawn["at_s"][0] == 0
    steps = dict(zip(drawn["at_s"], drawn["available"], strict=True))
    assert steps[20] == 0
    assert steps[31] == 0.5
    assert drawn["predicted"] == drawn["planned"]
    assert np.all(np.diff(drawn["at_s"]) >= 0)
    assert len(plots.availability_over_time(run).axes[0].lines) >= 3


def test_runs_side_by_side_begin_at_their_first_loss(tmp_path):
    runs = [run_with(tmp_path / "one", table()), run_with(tmp_path / "two", later(9))]
    drawn = side_by_side.charts(runs, [])["availabilities"]
    assert [at_s[0] for at_s in drawn["at_s"]] == [0, 0]
    assert [shares[-1] for shares in drawn["shares"]] == [1, 1]
