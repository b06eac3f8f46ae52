"""The table of the errors that a check notices."""

from __future__ import annotations

from benchmarks.regressions.check_power import SOUND, table
from tests.unit.results.simulated_runs import FORMULAS, TABLES_WITH

JUDGED = {"unknown": False, SOUND: False, **dict.fromkeys([*TABLES_WITH, *FORMULAS], True)}


def test_shares_are_of_the_runs_that_were_judged() -> None:
    shares = table({6: [{"unknown": True}, JUDGED, JUDGED | {"c doubled": False}]})["6 faults"]
    assert (shares[SOUND], shares["c doubled"], shares["T doubled"]) == (0.0, 0.5, 1.0)
    assert shares["unknown"] == 1 / 3


def test_runs_of_which_none_was_judged_have_no_shares() -> None:
    shares = table({6: [{"unknown": True}] * 2})["6 faults"]
    assert shares["unknown"] == 1.0
    assert shares.drop("unknown").isna().all()
