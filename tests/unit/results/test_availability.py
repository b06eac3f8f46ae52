"""The share of available queries: by hand, and of runs that belong together."""

import numpy as np
import pandas as pd
import pytest

from results.summary.availability import Availability, _least_ahead_in, availability, least_ahead
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


def test_which_query_a_burst_takes_first_does_not_count(tmp_path):
    early, late = ([synthetic.ns(20), synthetic.ns(20 + wait_s)] for wait_s in (0.2, 1.5))
    one = availability(run_with(tmp_path / "one", later(0).assign(death_ns=early)))
    other = availability(run_with(tmp_path / "other", later(0).assign(death_ns=late)))
    assert one.share(1) < other.share(1)
    assert (least_ahead(one, other), least_ahead(other, one)) == (0, 0)


def in_bursts(*bursts):
    """Availability of queries lost and back at these seconds."""
    lost_s, back_s = (np.array(column, dtype=float) for column in zip(*bursts, strict=True))
    return Availability(("q0.0", "q1.0") * (len(bursts) // 2), lost_s, {"available": back_s}, 0)


SECOND = ((100, 105), (100, 105))  # a burst in which no run is late


def test_a_run_that_is_late_in_its_first_burst_is_behind_although_another_follows():
    late, prompt = in_bursts((0, 10), (0, 95), *SECOND), in_bursts((0, 10), (0, 10), *SECOND)
    assert least_ahead(late, prompt) == -0.5
    assert least_ahead(prompt, late) == 0


def test_a_run_that_still_misses_queries_when_the_next_burst_strikes_is_behind():
    late, prompt = in_bursts((0, 10), (0, 110), *SECOND), in_bursts((0, 10), (0, 10), *SECOND)
    assert least_ahead(late, prompt) == -0.5


def test_what_is_late_in_a_later_burst_is_held_against_that_burst():
    """Six seconds late is less than a tenth of the time since the first burst, and more than one since the second."""
    first = ((0, 10), (0, 10))
    late, prompt = in_bursts(*first, (100, 105), (100, 111)), in_bursts(*first, *SECOND)
    assert least_ahead(late, prompt) == -0.5


def test_a_query_that_is_lost_again_before_it_was_back_is_away_once_and_back_with_its_next_recovery():
    again = in_bursts((0, np.inf), (0, 2), (0.5, 3), (200, 202))
    assert again.share([0, 1, 2.5, 4, 201, 203]).tolist() == [0, 0, 0.5, 1, 0.5, 1]
    assert (again.first_back_s, again.never_back) == (2, ())
    prompt = in_bursts((0, 2), (0, 2), (0.5, 3), (200, 202))
    assert (least_ahead(again, prompt), least_ahead(prompt, again)) == (0, 0)
    assert in_bursts((0, 2), (0, 2), (0.5, np.inf), (0.5, 1)).never_back == ("q0.0",)


def test_where_nothing_was_compared_the_page_says_nothing(tmp_path, monkeypatch):
    """The second run's losses are all nearest to the start of one burst, and the first run's to that of another."""
    one, other = in_bursts((0, 10), (0, 10)), in_bursts((80, 85), (80, 85), (200, 205), (200, 205))
    assert _least_ahead_in(one, other, 0, [0.0, 80.0, 200.0]) is None
    monkeypatch.setattr(side_by_side, "least_ahead", lambda better, worse: None)
    runs = [run_with(tmp_path / name, later(0)) for name in ("one", "other")]
    assert side_by_side.never_behind(runs) == []


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


def test_what_was_lost_before_the_window_opened_is_away_from_the_start_of_the_chart(tmp_path):
    """Such as of a slot that died by itself while the query was warming up."""
    moments = [name for name in table() if name.endswith("_ns")]
    early = table().assign(**{name: table()[name] - 45 * 10**9 for name in moments})
    lost_s, back_s = (((early[name] - synthetic.START_NS) / 1e9).tolist() for name in ("death_ns", "available_ns"))
    assert max(lost_s) < 0 < max(back_s)
    drawn = charts.available_queries(run_with(tmp_path, early))
    assert drawn["at_s"][0] == 0
    assert np.all(np.diff(drawn["at_s"]) >= 0)
    steps = dict(zip(drawn["at_s"], drawn["available"], strict=True))
    assert [steps[at_s] for at_s in (0, max(back_s), WINDOW_S)] == [0.5, 1, 1]


def test_what_the_model_does_not_tell_is_a_gap_and_no_loss_for_good(tmp_path):
    """Such as of a query that survivors took before the last host of a burst died."""
    frame = table().assign(predicted_ns=[pd.NA, table()["predicted_ns"][1]])
    run = run_with(tmp_path, frame)
    found = availability(run)
    assert found.share([-1, 0, 10.9], "predicted").tolist() == pytest.approx([1, np.nan, np.nan], nan_ok=True)
    assert found.share([11, 29.9, 30, 1e9], "predicted").tolist() == [0.5, 0.5, 1, 1]
    drawn = charts.available_queries(run)
    steps = dict(zip(drawn["at_s"], drawn["predicted"], strict=True))
    assert [steps[at_s] for at_s in (0, 20, 31, 50)] == [1, None, 0.5, 1]
    lines = {line.get_label(): line.get_ydata() for line in plots.availability_over_time(run).axes[0].lines}
    assert np.isnan(lines[plots.AVAILABILITY["predicted"][0]]).any()


def test_runs_side_by_side_begin_at_their_first_loss(tmp_path):
    runs = [run_with(tmp_path / "one", table()), run_with(tmp_path / "two", later(9))]
    drawn = side_by_side.charts(runs, [])["availabilities"]
    assert [at_s[0] for at_s in drawn["at_s"]] == [0, 0]
    assert [shares[-1] for shares in drawn["shares"]] == [1, 1]


def test_of_two_runs_the_page_tells_whether_the_first_is_ever_behind(tmp_path):
    early, late = run_with(tmp_path / "early", later(0)), run_with(tmp_path / "late", later(9))
    none = synthetic.make_run(tmp_path, changes={})
    assert side_by_side.never_behind([early, none, late]) == [(early.run_id, late.run_id, 0)]
    assert side_by_side.never_behind([late, early]) == [(late.run_id, early.run_id, 0.5)]


def test_a_damaged_table_of_one_run_takes_the_comparison_from_no_other(tmp_path):
    late, early = (run_with(tmp_path / name, table()) for name in ("late", "early"))
    (late.tables / "query_recoveries.parquet").write_bytes(b"no table")
    assert side_by_side.never_behind([late, early]) == []
    found = side_by_side.charts([late, early], [])
    assert found["availabilities"]["names"] == [early.run_id]
