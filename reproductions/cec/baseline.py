"""`cec`, figure 5: what an output log costs throughput if windows are saved only when they open."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from reproductions.bench import Bench, Row, benched, by_setting
from reproductions.cec.operator import CONSTANTS, STORE_KEY, Dropping, Stream, bare_rate, live
from reproductions.plants import scaled_rows
from reproductions.reproduction import holds
from results.checks.rules import between
from results.views.style import BLUE, GREY, ORANGE, new_figure
from testbed.output_log.policies import OpensOnly
from testbed.stores.store import DirectoryStore

FAST, SLOW = "fast windows", "slow windows"
SIZES = {FAST: 1, SLOW: 1000}
ITEMS, RECORDS, TURNS = 2, 350_000, 5
MEASURED_WITH = {"items": ITEMS, "records": RECORDS, "turns": TURNS} | SIZES
LEAST, APART, TWICE = 0.9, 0.02, 0.05


def measure(setting: str, replicate: int) -> Row:
    """Rates without log, with entries that are made and dropped, and with a log on disk, by turns: the medians."""
    turns = pd.DataFrame([_turn(Stream(ITEMS, SIZES[setting], RECORDS, TURNS * replicate + n)) for n in range(TURNS)])
    return dict(turns.median())


def _turn(stream: Stream) -> Row:
    with tempfile.TemporaryDirectory() as root:
        none = bare_rate(stream)
        net = live(Dropping(), stream, OpensOnly())
        disk = live(DirectoryStore(Path(root), STORE_KEY), stream, OpensOnly())
    entries, results = disk.logged.extent.entries, disk.logged.log.results
    return {
        "none_per_s": none,
        "net_share": net.rate / none,
        "disk_share": disk.rate / none,
        "entries_per_result": entries / results,
    }


def _about(setting: str) -> Row:
    return {"window_records": SIZES[setting], "printed_least_net_share": LEAST, "printed_entries_per_result": 2.0}


def _apart(table: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame({"apart": (by_setting(table, "disk_share") - by_setting(table, "net_share")).abs()})


def _plot(table: pd.DataFrame) -> Figure:
    figure, axes = new_figure(3.6)
    for place, setting in enumerate(SIZES):
        found = table[table["setting"] == setting]
        net, disk = (found[share].dropna().median() for share in ("net_share", "disk_share"))
        bars = ((1.0, GREY, "without log"), (net, BLUE, "G-open, to network"), (disk, ORANGE, "to disk"))
        for number, (height, color, label) in enumerate(bars):
            axes.bar(place + 0.25 * (number - 1), height, 0.22, color=color, label=label if place == 0 else None)
    axes.axhline(LEAST, ls="--", lw=1, color=GREY, label="to network at least (printed)")
    axes.set_xticks(range(len(SIZES)), list(SIZES))
    axes.set(ylabel="throughput / without log", ylim=(0, 1.3))
    axes.legend(ncols=4)
    return figure


REPRODUCTIONS = (
    benched(
        "cec/fig-05",
        "throughput of an operator that saves windows when they open",
        Bench("cec-baseline", tuple(SIZES), measure, CONSTANTS | MEASURED_WITH),
        _about,
        _plot,
        (
            holds(
                "opens.cost_a_tenth",
                lambda table: pd.DataFrame({"share": by_setting(table, "net_share")}),
                [between("share", LEAST, None)],
                lambda found: ", ".join(f"{share:.1%} with {name}" for name, share in found["share"].items()),
                "entries that are made and dropped leave at least 90 % of it (printed: it drops by less than 10 %)",
                scaled_rows("net_share", 0.9, setting=FAST),
            ),
            holds(
                "disk.is_like_network",
                _apart,
                [between("apart", 0, APART)],
                lambda found: f"{100 * found['apart'].max():.1f} points",
                "disk is within 2 points of network (printed: nearly identical)",
                scaled_rows("disk_share", 0.95, setting=SLOW),
            ),
            holds(
                "real.is_twice_the_results",
                lambda table: pd.DataFrame({"entries": by_setting(table, "entries_per_result")}),
                [between("entries", 2 - TWICE, 2 + TWICE)],
                lambda found: f"{found['entries'].min():.2f} to {found['entries'].max():.2f}",
                "with control records twice as many records go out as results (printed)",
                scaled_rows("entries_per_result", 0.5, setting=SLOW),
            ),
        ),
    ),
)
