"""`cec`, figures 6 and 7: what the targets Q and U do to checks, extent, load time and replay."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from reproductions.bench import ANYTHING, Bench, Row, benched, by_setting, falling, steps
from reproductions.cec.operator import CONSTANTS, STORE_KEY, Stream, live, recover
from reproductions.claims import Ratio, at_least, paired_ratio
from reproductions.plants import scaled_rows
from reproductions.reproduction import Reproduction, ReproductionCheck, holds
from results.checks.rules import NotEnough, between
from results.views.style import BLUE, GREY, WIDTH_IN
from testbed.output_log.policies import NO_TARGET, CheckPacing, Policy, Targets
from testbed.stores.store import DirectoryStore

ITEMS, SIZE, RECORDS = 100_000, 10, 3_000_000
OPEN = ITEMS * (SIZE - 1) // SIZE
PACE = CheckPacing(0.005, 0.1)
BY_Q = {f"Q = {times} x open": times for times in (1, 2, 4, 8)}
BY_U = {f"U = {records:,}": records for records in (125_000, 250_000, 500_000, 1_000_000)}
PACED = {"interval_s": PACE.interval_s, "period_s": PACE.period_s}
MEASURED_WITH = {"items": ITEMS, "size": SIZE, "records": RECORDS, "open": OPEN} | PACED | BY_Q | BY_U
PRINTED_Q = {1: (120_000, 3.5, 25.0), 2: (180_000, 5.0, 50.0), 4: (None, 14.0, None), 8: (500_000, 27.0, 200.0)}
PRINTED_U = {125_000: (120_000, 2.5, 20.0), 1_000_000: (230_000, 6.7, 90.0)}
PANELS = {"checks": "G-checks", "extent": "extent [entries]", "load_s": "load time [s]", "replay_mb": "replay [MB]"}
SHARPLY, HUNDREDTH = 0.25, 0.01
NEARLY = 1.1  # two targets that checks have no time to keep end about equal, so the looser one may have so much less


def _policy(setting: str) -> Policy:
    if setting in BY_Q:
        return Targets(BY_Q[setting] * OPEN, NO_TARGET)
    return Targets(NO_TARGET, BY_U[setting])


def measure(setting: str, replicate: int) -> Row:
    """A run, and a recovery at its end."""
    stream = Stream(ITEMS, SIZE, RECORDS, replicate)
    with tempfile.TemporaryDirectory() as root:
        lived = live(DirectoryStore(Path(root), STORE_KEY), stream, _policy(setting), PACE)
        found = recover(Path(root), lived, SIZE)
    return {"checks": lived.checks, "longest_check_s": lived.longest_s, "open_windows": found.windows} | {
        name: getattr(found, name) for name in ("extent", "load_s", "replay_mb")
    }


def _about(setting: str) -> Row:
    target = BY_Q.get(setting) or BY_U[setting]
    printed = (PRINTED_Q if setting in BY_Q else PRINTED_U).get(target, (None, None, None))
    named = zip(("printed_extent", "printed_load_s", "printed_replay_mb"), printed, strict=True)
    return {"target": target * OPEN if setting in BY_Q else target} | {
        name: None if value is None else float(value) for name, value in named
    }


def _growth(column: str, table: pd.DataFrame) -> pd.DataFrame:
    """The medians of the first and of the last setting, and the least that one has over the one before."""
    medians = by_setting(table, column)
    low, high = medians.iloc[0], medians.iloc[-1]
    least = (medians / medians.shift()).min()
    return pd.DataFrame({"low": [low], "high": [high], "ratio": [high / low], "least_step": [least]})


def _grows(what: str, column: str, middle: str) -> ReproductionCheck:
    return holds(
        f"{what}.grows",
        partial(_growth, column),
        [between("ratio", 1.0 + ANYTHING, None), between("least_step", 1 / NEARLY, None)],
        lambda found: (
            f"{found['low'].iat[0]:,.4g} to {found['high'].iat[0]:,.4g}, at each step at least"
            f" {found['least_step'].iat[0]:.2f} times"
        ),
        "with the loosest target more than with the tightest; between neighbours the looser one has at least"
        f" {1 / NEARLY:.2f} times as much",
        scaled_rows(column, 0.05, setting=middle),
    )


def _times(last: str, first: str, table: pd.DataFrame) -> list[Ratio]:
    """The load time of one setting over that of another, in pairs that had the same stream."""
    by_setting(table, "load_s")
    return [paired_ratio(f"{last} by {first}", table, "load_s", "setting", last, first)]


def load_grows(first: str, last: str) -> ReproductionCheck:
    """A recovery loads at least as long with the last setting as with the first."""
    return at_least(
        "load.grows",
        partial(_times, last, first),
        1.0,
        f"with {last} at least as long as with {first}",
        scaled_rows("load_s", 0.05, setting=last),
    )


def _fall(first: str) -> ReproductionCheck:
    return holds(
        "checks.fall",
        lambda table: steps(table, "checks"),
        falling(),
        lambda found: f"{(found['step'] < 0).sum()} of {len(found)} steps fall",
        "a looser target leads to no more G-checks, and the loosest to fewer than the tightest",
        scaled_rows("checks", 0.0, setting=first),
    )


def _drop(table: pd.DataFrame) -> pd.DataFrame:
    medians = by_setting(table, "checks")
    if not medians[Q2] > 0:
        raise NotEnough("there are no G-checks with Q = 2 x open that could become fewer")
    return pd.DataFrame({"ratio": [medians[Q4] / medians[Q2]]})


def _kept(table: pd.DataFrame) -> pd.DataFrame:
    found = by_setting(table, "extent") / by_setting(table, "target")
    return pd.DataFrame({"tightest": [found[Q1]], "usual": [found[[Q2, Q4]].max()], "loosest": [found[Q8]]})


def _open(table: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame({"off": (by_setting(table, "open_windows") / OPEN - 1).abs()})


Q1, Q2, Q4, Q8 = BY_Q
OF_Q = (
    holds(
        "windows.as_many_open_as_the_model_says",
        _open,
        [between("off", 0, HUNDREDTH)],
        lambda found: f"at most {found['off'].max():.2%} off",
        f"within 1 % of K (W - 1) / W = {OPEN:,} (printed: around 90,000)",
        scaled_rows("open_windows", 1.02, setting=Q4),
    ),
    holds(
        "checks.fall_sharply_above_twice",
        _drop,
        [between("ratio", 0, SHARPLY)],
        lambda found: f"{found['ratio'].iat[0]:.3f} times",
        "with Q = 4 x open at most a quarter of the G-checks of 2 x open (printed: they drop sharply)",
        scaled_rows("checks", 200.0, setting=Q4),
    ),
    holds(
        "extent.keeps_to_targets_that_can_be_met",
        _kept,
        [between("tightest", 1.0, None), between("usual", 0, 1.01), between("loosest", 0, 1.0)],
        lambda found: ", ".join(f"{found[name].iat[0]:.2f}" for name in ("tightest", "usual", "loosest")),
        "extent by Q: above 1 for 1 x open, at most 1.01 for 2 and 4, and below 1 for 8 x open, which is never reached",
        scaled_rows("extent", 1.1, setting=Q2),
    ),
)


def _plot(table: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(WIDTH_IN, 5.2), layout="constrained")
    labels = list(dict.fromkeys(table["setting"]))
    for axes, (column, label) in zip(figure.subplots(2, 2).ravel(), PANELS.items(), strict=True):
        at = [labels.index(setting) for setting in table["setting"]]
        axes.plot(at, table[column].astype(float), "o", color=BLUE, label="measured")
        if (printed := f"printed_{column}") in table:
            axes.plot(at, table[printed].astype(float), "x", color=GREY, label="printed")
        axes.set(ylabel=label, ylim=(0, None))
        axes.set_xticks(range(len(labels)), [each.removeprefix("Q = ").removeprefix("U = ") for each in labels])
    for axes in figure.axes[2:]:
        axes.set_xlabel("target Q for the extent" if labels[0] in BY_Q else "target U for the replay [records]")
    figure.axes[1].legend()
    return figure


def _figure(id: str, what: str, settings: tuple[str, ...], more: tuple[ReproductionCheck, ...] = ()) -> Reproduction:
    first, *_, middle, last = settings
    grow = (_grows("extent", "extent", middle), load_grows(first, last), _grows("replay", "replay_mb", middle))
    bench = Bench(id.replace("/", "-"), settings, measure, CONSTANTS | MEASURED_WITH)
    return benched(id, what, bench, _about, _plot, (_fall(first), *grow, *more))


REPRODUCTIONS = (
    _figure("cec/fig-06", "G-checks, extent, load time and replay by target Q for the extent", tuple(BY_Q), OF_Q),
    _figure("cec/fig-07", "G-checks, extent, load time and replay by target U for the replay", tuple(BY_U)),
)
