"""How fast lag grows in figure 11 of `incremental`: every run counts, and by enough seconds."""

from __future__ import annotations

import pandas as pd
import pytest

from reproductions.catalogue import CATALOGUE
from reproductions.judging import judge
from reproductions.reproduction import Computed

FIGURE, LOAD = "incremental/fig-11", 4000.0
CHECKS = {check.name: check for check in CATALOGUE[FIGURE].checks}
LOST = {"too_small.grows": 1, "enough.bounded": 0}


def lags(lost: int, replicate: int, seconds: int) -> list[dict[str, object]]:
    """So many seconds of a run; with a host lost, lag grows by a third of the load from second 20 on."""
    about = {"kills": lost, "replicate": replicate, "load": LOAD}
    return [about | {"second": at, "waiting_s": 0.5 + lost * max(0, at - 20) / 3} for at in range(seconds)]


def judged(name: str, *seconds: int) -> dict[str, str | None]:
    """The verdict on a run for each of these numbers of seconds; one host alone sustains half of the load."""
    runs = list(enumerate(seconds, 1))
    rows = [row for replicate, count in runs for row in lags(LOST[name], replicate, count)]
    alone = [{"kills": None, "replicate": replicate, "not_sustained": LOAD / 2} for replicate, _ in runs]
    return judge(CHECKS[name], Computed(FIGURE, pd.DataFrame([*rows, *alone])))


@pytest.mark.parametrize("name", LOST)
def test_runs_of_enough_seconds_are_judged(name):
    assert judged(name, 80, 60)["verdict"] == "pass"


@pytest.mark.parametrize("name", LOST)
@pytest.mark.parametrize(("seconds", "settled"), [(41, 1), (50, 10), (59, 19)])
def test_a_line_through_a_few_seconds_is_no_growth(name, seconds, settled):
    found = judged(name, seconds)
    assert found["verdict"] == "unknown"
    assert f"only {settled} seconds from second 40 on" in str(found["detail"])


@pytest.mark.parametrize("name", LOST)
def test_a_run_that_ended_before_lag_had_its_course_is_not_left_out(name):
    found = judged(name, 80, 30)
    assert (found["verdict"], "#2; at least 20 are needed" in str(found["detail"])) == ("unknown", True)
