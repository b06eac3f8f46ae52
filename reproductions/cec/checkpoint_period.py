"""`cec`, figures 8 and 9: what the checkpoint period does to the response time of windows and to the extent.

The operator is busy all the time, and checks get CI in every CP of it. Response time is how long a window is open. It
goes by how fast records come, so the paper's and ours are compared relative to those without checks.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from reproductions.bench import ANYTHING, Bench, Row, benched, by_setting, falling, rising, steps
from reproductions.cec.operator import CONSTANTS, STORE_KEY, Stream, live, recover, while_busy
from reproductions.cec.recovery_time import ITEMS, OPEN, RECORDS, SIZE, load_grows
from reproductions.claims import Ratio, at_least, paired_ratio
from reproductions.plants import scaled_rows
from reproductions.reproduction import holds
from results.checks.rules import between
from results.views.style import BLUE, GREY, ORANGE, new_figure
from testbed.output_log.policies import NO_TARGET, CheckPacing, OpensOnly, Targets
from testbed.stores.store import DirectoryStore

NONE = "without checks"
CI_S = 0.01
CP_S = {"25 ms": 0.025, "50 ms": 0.05, "100 ms": 0.1, "250 ms": 0.25}
MEASURED_WITH = {"items": ITEMS, "size": SIZE, "records": RECORDS, "open": OPEN, "interval_s": CI_S} | CP_S
PRINTED_S = {NONE: 16.5, "100 ms": 18.5, "50 ms": 21.5, "25 ms": 32.5}  # the text has ms for two of them: a slip
BOUNDED = ("25 ms", "50 ms")  # with longer periods the bound is closer to 1 than measurements are to each other
NEARLY = 1.1
SHORTEST, *_, LONGEST = CP_S


def measure(setting: str, replicate: int) -> Row:
    """A run, with what its windows' response times were, and a recovery at its end."""
    stream = Stream(ITEMS, SIZE, RECORDS, replicate)
    checked = setting != NONE
    policy = Targets(OPEN, NO_TARGET) if checked else OpensOnly()
    pace = CheckPacing(CI_S, CP_S[setting]) if checked else None
    with tempfile.TemporaryDirectory() as root:
        lived = live(DirectoryStore(Path(root), STORE_KEY), stream, policy, pace, while_busy)
        found = recover(Path(root), lived, SIZE)
    return {
        "response_s": float(lived.response_s.mean()),
        "rate": lived.rate,
        "checks": lived.checks,
        "check_share": lived.check_s / lived.busy_s,
        "longest_check_s": lived.longest_s,
        "extent": found.extent,
        "load_s": found.load_s,
    }


def least_ratio(setting: str) -> float:
    """How much longer responses must take at least than without checks, since so much of the time is left."""
    return 1.0 if setting == NONE else 1 / (1 - CI_S / CP_S[setting])


def _about(setting: str) -> Row:
    printed = PRINTED_S.get(setting)
    return {
        "period_s": CP_S.get(setting),
        "least_ratio": least_ratio(setting),
        "printed_response_s": printed,
        "printed_ratio": printed and printed / PRINTED_S[NONE],
    }


def _ratios(table: pd.DataFrame) -> pd.Series:
    """By period, the median response time over that without checks; nan where one of both was not measured."""
    medians = table.groupby("setting", sort=False)["response_s"].median()
    return (medians / medians[NONE]).drop(NONE)


def _over_least(table: pd.DataFrame) -> list[Ratio]:
    """By period, how much longer responses take than without checks, over how much longer they must take at least."""
    by_setting(table, "response_s")
    scaled = table.assign(response_s=table["response_s"].astype(float) / table["setting"].map(least_ratio))
    return [paired_ratio(f"CP = {each}", scaled, "response_s", "setting", each, NONE) for each in BOUNDED]


def _none_by_longest(table: pd.DataFrame) -> list[Ratio]:
    by_setting(table, "response_s")
    return [paired_ratio(f"without checks by {LONGEST}", table, "response_s", "setting", NONE, LONGEST)]


def _shares(table: pd.DataFrame) -> pd.DataFrame:
    found = by_setting(table, "check_share")[list(CP_S)]
    return pd.DataFrame({"over": [found[each] / (CI_S / period_s) for each, period_s in CP_S.items()]})


def _plot_responses(table: pd.DataFrame) -> Figure:
    figure, axes = new_figure(3.6)
    ratios = _ratios(table)
    axes.plot(range(len(ratios)), ratios, "o", color=BLUE, label="measured")
    axes.plot(
        range(len(ratios)), [least_ratio(each) for each in ratios.index], "_", ms=18, color=ORANGE, label="at least"
    )
    axes.plot(range(len(ratios)), [PRINTED_S.get(each, float("nan")) / PRINTED_S[NONE] for each in ratios.index], "x",
              color=GREY, label="printed")  # fmt: skip
    axes.set_xticks(range(len(ratios)), list(ratios.index))
    axes.set(xlabel="checkpoint period", ylabel="response time / without G-checks", ylim=(0.9, None))
    axes.legend()
    return figure


def _plot_extents(table: pd.DataFrame) -> Figure:
    figure, axes = new_figure(3.6)
    settings = list(dict.fromkeys(table["setting"]))
    axes.plot([settings.index(each) for each in table["setting"]], table["extent"].astype(float), "o", color=BLUE)
    axes.axhline(OPEN, ls="--", lw=1, color=GREY, label="open windows, which is Q")
    axes.set_xticks(range(len(settings)), settings)
    axes.set(xlabel="checkpoint period", ylabel="extent [entries]", ylim=(0, None))
    axes.legend()
    return figure


BENCH = Bench("cec-checkpoint-period", (NONE, *CP_S), measure, CONSTANTS | MEASURED_WITH)
REPRODUCTIONS = (
    benched(
        "cec/fig-08",
        "response time of windows by checkpoint period",
        BENCH,
        _about,
        _plot_responses,
        (
            at_least(
                "response.takes_what_checks_leave",
                _over_least,
                1.0,
                f"at least R0 / (1 - CI / CP) for {' and '.join(BOUNDED)}, here over that",
                scaled_rows("response_s", 0.5, setting=SHORTEST),
            ),
            holds(
                "checks.keep_their_pace",
                _shares,
                [between("over", None, NEARLY)],
                lambda found: f"at most {found['over'].max():.2f} times CI / CP",
                f"G-checks take at most {NEARLY:g} times CI in every CP",
                scaled_rows("check_share", 1.3, setting=LONGEST),
            ),
            holds(
                "response.falls_with_the_period",
                lambda table: steps(table, "response_s", list(CP_S)),
                falling(),
                lambda found: f"{(found['step'] < 0).sum()} of {len(found)} steps fall",
                "a longer period makes no response longer, and the longest makes it shorter than the shortest",
                scaled_rows("response_s", 0.3, setting=SHORTEST),
            ),
            at_least(
                "response.is_nearly_the_same_with_the_longest_period",
                _none_by_longest,
                1 / NEARLY,
                f"at most {NEARLY:g} times that without G-checks at {LONGEST} (printed: approximates it)",
                scaled_rows("response_s", 2.0, setting=LONGEST),
            ),
        ),
    ),
    benched(
        "cec/fig-09",
        "extent by checkpoint period",
        BENCH,
        _about,
        _plot_extents,
        (
            holds(
                "extent.grows_with_the_period",
                lambda table: steps(table, "extent", list(CP_S)),
                rising(),
                lambda found: f"{(found['step'] > 0).sum()} of {len(found)} steps grow",
                "a longer period makes no extent shorter, and the longest makes it longer than the shortest",
                scaled_rows("extent", 0.3, setting=LONGEST),
            ),
            holds(
                "checks.shorten_the_extent",
                lambda table: pd.DataFrame(
                    {"ratio": [(by_setting(table, "extent")[LONGEST] / by_setting(table, "extent")[NONE])]}
                ),
                [between("ratio", None, 1.0 - ANYTHING)],
                lambda found: f"{found['ratio'].iat[0]:.2f} times that without G-checks",
                f"even with {LONGEST} it is shorter than without G-checks",
                scaled_rows("extent", 0.1, setting=NONE),
            ),
            load_grows(SHORTEST, LONGEST),
        ),
    ),
)
