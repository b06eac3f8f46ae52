"""A matrix of protections in readable form: its cells, lines for a terminal, and a table for a spreadsheet."""

from __future__ import annotations

import csv
import io
import math
import textwrap
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from experiments.wording import on_one_line, percent, significant
from results.protection.contest import Win
from results.protection.estimates import LEVEL, Estimate
from results.protection.matrix import MOST_RUNS, Group, LeftOut, Matrix, Protection

WIDTH, NAMES, CELL = 92, 30, 19
BESIDE = (WIDTH - NAMES) // CELL  # protections whose cells fit in one line
HOUR_S = 3600.0
MISSING = "\N{EN DASH}"
STARVED = "Runs that the load did not keep busy (use load mode rate)"


class Column(NamedTuple):
    """One quantity of a protection, and how it is shown: its values times `times` have this unit."""

    name: str
    heading: str
    unit: str
    times: float
    meaning: str


COLUMNS = (
    Column("rate", "Rate without failures", "records/s", 1.0, "what it does, or sustains, while nothing fails"),
    Column("utilization", "Utilization, no failures", "", 1.0, "the time not lost to failures, without checkpoints"),
    Column("checkpoint_share", "Time in checkpoints", "%", 100.0, "of the time at work, without failures"),
    Column("cost_s", "A failure costs", "s", 1.0, "work undone, detection, restart and warm-up, by fault"),
    Column("quiet_p99_s", "p99 latency, no failures", "s", 1.0, "mean over the runs without faults"),
    Column("struck_p99_s", "p99 latency, failures", "s", 1.0, "mean over the runs with faults"),
    Column("accuracy", "Tentative accuracy", "%", 100.0, "share of exact results between fault and full recovery"),
)


WHY_LEFT_OUT = {
    LeftOut.FAILED: "",
    LeftOut.INEXACT: " (results were lost or wrong)",
    LeftOut.UNREADABLE: " (a table is damaged or missing)",
    LeftOut.OUTDATED: " (tables of another version, to be recomputed)",
    LeftOut.OLDER: f" (each protection has its {MOST_RUNS} newest runs)",
}


class Compared(NamedTuple):
    """The quantity in which protections are compared over the failure rate, and what is said of the best."""

    axis: str
    unit: str
    best: str


COMPARED = {
    "rate": Compared("records per second", "records/s", "gets the most done"),
    "utilization": Compared("utilization", "", "has the highest utilization"),
}


class Cell(NamedTuple):
    """A mean and its interval, to three digits; `likely` says why there is no interval."""

    value: str
    likely: str


def cell(column: Column, estimate: Estimate | None) -> Cell:
    """One estimate with the unit of its column."""
    if estimate is None:
        return Cell(MISSING, "")
    value = f"{significant(column.times * estimate.value)} {column.unit}".rstrip()
    if estimate.limits is None:
        return Cell(value, f"of {estimate.count} only")
    low, high = (significant(column.times * each) for each in estimate.limits)
    return Cell(value, f"{low} to {high}")


def title(matrix: Matrix | Group) -> str:
    """What the protections have in common."""
    at = matrix.setting
    return f"{at.workload}, {at.cluster}, load {at.load}, failures: {matrix.failures or 'none'}"


def sentences(matrix: Matrix) -> list[str]:
    """Which protection wins at which rates, or why none does, and which runs do not count."""
    told = [_win(win, COMPARED[matrix.compared].best) for win in matrix.wins]
    told += [f"No winner: {matrix.why_no_winner}."] if matrix.why_no_winner else []
    outsiders = matrix.outsiders if matrix.wins else []
    too_few = "too few runs that count, or too few faults"
    told += [f"Cannot win ({too_few}): {'; '.join(outsiders)}."] if outsiders else []
    left_out = [f"{count} {word}{WHY_LEFT_OUT[word]}" for word, count in matrix.left_out.items() if count]
    told += [f"Left out: {', '.join(left_out)}."] if left_out else []
    told += [f"No run counts of: {'; '.join(matrix.absent)}."] if matrix.absent else []
    return [*told, *_doubts(matrix)]


def _doubts(matrix: Matrix) -> list[str]:
    """What speaks against the runs that count."""
    uncompared = sum(each.uncompared for each in matrix.protections)
    told = [f"The output of {uncompared} of the runs was compared with nothing."] if uncompared else []
    failed = [f"{each.failed_checks} of {each.label}" for each in matrix.protections if each.failed_checks]
    told += [f"Runs that count although a check failed: {'; '.join(failed)}."] if failed else []
    starved = [f"{each.starved} of {each.label}" for each in matrix.protections if each.starved]
    told += [f"{STARVED}: {'; '.join(starved)}."] if starved else []
    return told


def _win(win: Win, best: str) -> str:
    since, until = (f"{significant(HOUR_S * each)}" for each in (win.since, win.until))
    ends = "the end of what is compared"
    if win.until_between is not None:
        low, high = win.until_between
        ends = f"{significant(HOUR_S * low)} to {significant(HOUR_S * high)}"
        ends = f"{significant(HOUR_S * low)} or never" if math.isinf(high) else ends
    beyond = "" if win.tried else ", beyond what was run"
    span, share = f"From {since} to {until} failures per hour ({ends}) {win.winner}", percent(win.share)
    if win.share < LEVEL:
        return f"{span} is ahead, but in {share} of the draws only{beyond}: the runs do not show which is best."
    return f"{span} {best}, in {share} of the draws{beyond}."


def shown(matrices: Sequence[Matrix]) -> str:
    """For a terminal; settings with one protection only are counted, since there is nothing to compare."""
    several = [each for each in matrices if len(each.protections) + len(each.absent) > 1]
    parts = ["\n".join(_lines(each)) for each in several]
    alone = len(matrices) - len(several)
    if alone:
        outdated = sum(each.left_out.get(LeftOut.OUTDATED, 0) for each in matrices)
        parts.append(f"{alone} more with fewer than two protections: --json has them")
        parts += [f"outdated runs: {outdated}, see `aftershock results recompute`"] if outdated else []
    return "\n\n".join(parts) or "no finished run tells what it ran"


def _lines(matrix: Matrix) -> list[str]:
    found = [*textwrap.wrap(on_one_line(title(matrix)), WIDTH), f"on {on_one_line(matrix.setting.machine)}"]
    numbered = list(enumerate(matrix.protections, 1))
    for number, each in numbered:
        struck = f"{significant(HOUR_S * each.failure_rate)} failures per hour"
        text = f"{number:>3}  {each.label}: {len(each.runs)} runs, {each.faults} faults, {struck}"
        found += textwrap.wrap(text, WIDTH, subsequent_indent=" " * 5)
    for start in range(0, len(numbered), BESIDE):
        found += _side_by_side(numbered[start : start + BESIDE])
    return [*found, *(line for each in sentences(matrix) for line in textwrap.wrap(each, WIDTH))]


def _side_by_side(numbered: Sequence[tuple[int, Protection]]) -> list[str]:
    """The quantities of some protections, a column for each, below its number."""
    found = [" " * NAMES + "".join(f"{number:>{CELL}}" for number, _ in numbered)]
    for column in COLUMNS:
        cells = [cell(column, each.estimates[column.name]) for _, each in numbered]
        if any(each.value != MISSING for each in cells):
            found.append(f"  {column.heading:{NAMES - 2}}" + "".join(f"{each.value:>{CELL}}" for each in cells))
            found.append(" " * NAMES + "".join(f"{each.likely:>{CELL}}" for each in cells))
    return found


def as_csv(matrices: Iterable[Matrix]) -> str:
    """One table: a row for each protection of each setting, quantities with their limits in the units of their names.

    A protection is best in one span of failure rates at most.
    """
    written = io.StringIO()
    rows = [_csv_row(matrix, each) for matrix in matrices for each in matrix.protections]
    if rows:
        writer = csv.DictWriter(written, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return written.getvalue()


def _csv_row(matrix: Matrix, of: Protection) -> dict[str, object]:
    at = matrix.setting
    row: dict[str, object] = {"workload": at.workload, "cluster": at.cluster, "load": at.load, "machine": at.machine}
    row |= {"failures": matrix.failures, "protection": of.label, "runs": len(of.runs), "faults": of.faults}
    row |= {"failed_checks": of.failed_checks, "starved": of.starved, "can_win": of.contestant is not None}
    row |= {"failures_per_hour": HOUR_S * of.failure_rate}
    for column in COLUMNS:
        known = of.estimates[column.name]
        low, high = (None if known is None else known.limits) or (None, None)
        values = (None if known is None else known.value, low, high)
        row |= dict(zip((column.name, f"{column.name}_low", f"{column.name}_high"), values, strict=True))
    win = next((each for each in matrix.wins if each.winner == of.label), None)
    limits = (None if win is None else win.until_between) or (None, None)
    row |= {"wins_from_per_hour": None if win is None else HOUR_S * win.since}
    row |= {"wins_until_per_hour": None if win is None else HOUR_S * win.until}
    row |= {"wins_until_low": None if limits[0] is None else HOUR_S * limits[0]}
    row |= {"wins_until_high": None if limits[1] is None else HOUR_S * limits[1]}
    return row | {"wins_share": None if win is None else win.share}
