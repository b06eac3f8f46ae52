"""The search for the sustainable rate closed its bracket, and the rate that was run was sustained."""

from __future__ import annotations

import pandas as pd

from experiments.wording import percent, significant
from models.sustainable.lag import MOST_GROWTH, STUCK, grows, growth, limit_s
from models.sustainable.search import End
from results.checks.check import ASKED_OF, Check, has_faults, searches
from results.checks.evidence import Evidence
from results.checks.rules import NotEnough, between, in_set

OPEN_ENDS = {
    End.PROBES: "load.probes were used up",
    End.GENERATOR: "the generator did not deliver the next rate",
    End.COMMITS: "at the next rate there were too few samples of lag to judge the query by",
}


def bracket(evidence: Evidence) -> pd.DataFrame:
    """Return one row: the highest rate that was sustained, the lowest that was not, and by how much they differ."""
    run = evidence.the_run()
    low, high, end = run["sustainable_rate"], run["unsustainable_rate"], run["search_end"]
    if pd.isna(low):
        raise NotEnough("no rate was sustained")
    if pd.isna(end) or end != End.CLOSED:
        ended = OPEN_ENDS.get(end, "the reason why the search ended is not recorded")
        raise NotEnough(f"{'no rate failed' if pd.isna(high) else 'the bracket is not closed'}: {ended}")
    return pd.DataFrame({"low": [float(low)], "high": [float(high)], "gap": [float(high / low - 1)]})


def growth_of_lag(evidence: Evidence) -> pd.DataFrame:
    """Return one row: whether lag grows over the window, by how much as a share of the load, and its median [s].

    Growth is judged as in a probe, at the end of each second with a commit and of the last one. Between two commits lag
    rises as fast as the load: in a window of few checkpoint intervals, this would pass for growth.
    """
    seconds, load_rate = evidence.rows("throughput", "the window has no whole second"), evidence.the_run()["load_rate"]
    is_last = seconds["second"] == seconds["second"].max()
    sampled = seconds[(seconds["committed_records"] > 0) | is_last]
    samples = list(zip(sampled["second"].astype(float), sampled["lag_records"].astype(float), strict=True))
    slope = growth(samples)
    if slope is None or pd.isna(load_rate):
        raise NotEnough("the window is too short to tell whether lag grows")
    rate = float(load_rate)
    level_s = float(seconds["lag_records"].median()) / rate
    return pd.DataFrame({"grows": [grows(samples, rate)], "growth": [slope / rate], "level_s": [level_s]})


def _level_limit_s(evidence: Evidence) -> float:
    """The limit of lag in a window.

    There lag is sampled every second, so also in the middle of batches. A probe samples it after batches only.
    """
    return STUCK * limit_s(evidence.experiment.engine.checkpoint_interval_s)


CHECKS: tuple[Check, ...] = (
    Check(
        name="sustainable.bracketed",
        table="runs",
        subject=bracket,
        rules=lambda evidence: [between("gap", 0, evidence.experiment.load.precision)],
        observed=lambda frame: (
            f"{significant(frame['low'].iat[0])} records/s sustained, {significant(frame['high'].iat[0])} not, "
            f"{percent(frame['gap'].iat[0])} apart"
        ),
        expected=lambda evidence: f"at most {percent(evidence.experiment.load.precision)} apart",
        asks="the highest rate that was sustained and the lowest that was not differ by at most `load.precision`",
        asked_of=ASKED_OF[searches],
        applies=searches,
    ),
    Check(
        name="sustainable.sustained",
        table="throughput",
        subject=growth_of_lag,
        rules=lambda evidence: [in_set("grows", False), between("level_s", None, _level_limit_s(evidence))],
        observed=lambda frame: (
            f"lag grows by {percent(frame['growth'].iat[0])} of the load in the window, "
            f"and its median is {significant(frame['level_s'].iat[0])} s of load"
        ),
        expected=lambda evidence: (
            f"at most {percent(MOST_GROWTH)} and {significant(_level_limit_s(evidence))} s, "
            f"at {percent(evidence.experiment.load.share)} of the rate found"
        ),
        asks="lag in the window does not grow, and stays within twice a probe's limit",
        asked_of="`load.mode` `sustainable`, no faults",
        applies=lambda experiment: searches(experiment) and not has_faults(experiment),
    ),
)
