"""The list of runs: a table for a terminal of any width, and JSON for a program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from experiments.wording import counted, on_one_line, significant
from results.runs import store
from results.runs.state import RunState
from results.summary.index import IndexRow

GAP = "  "


def entry(row: IndexRow) -> dict[str, Any]:
    """What is known of a run without its tables (`Run.status`), and what lists show of it besides."""
    status = store.located(row.run_id).known_status().to_json()
    used = asdict(row.utilization)
    return status | {
        "state": row.state,
        "started_ns": row.started_ns,
        "error": row.error,
        "engine": row.engine,
        "protocol": row.protocol,
        "recovery": row.recovery,
        "utilization": {name: used[name] for name in ("measured", "predicted", "low", "high")},
        "verdict": row.verdict.value,
        "published": row.is_published,
    }


def own_runs(rows: list[IndexRow], width: int, published: int) -> str:
    """The runs of this installation, and a line that says how many published runs there are besides."""
    listed = listing(rows, width) if rows else "no run yet: start one with `aftershock benchmark`"
    if not published:
        return listed
    told = f"{counted(published, 'published run')} came with the repository: see `aftershock results --published`"
    return f"{listed}\n\n{told}"


def published_runs(rows: list[IndexRow], width: int) -> str:
    """The runs that came with the repository."""
    return listing(rows, width) if rows else "no run is published"


def listing(rows: list[IndexRow], width: int) -> str:
    """One line per run, in their order. The run's id stays whole; why it failed goes beyond the width, if it must."""
    columns = {title: [on_one_line(text(row)) for row in rows] for title, text in COLUMNS.items()}
    for title in LEAST_WANTED_FIRST:
        if _width(columns) > width:
            del columns[title]
    lines = zip(*([title, *texts] for title, texts in columns.items()), strict=True)
    widths = [_widest(title, texts) for title, texts in columns.items()]
    reasons = ["", *(f"{GAP}{on_one_line(row.error)}" if row.error else "" for row in rows)]
    return "\n".join(_line(texts, widths) + why for texts, why in zip(lines, reasons, strict=True))


def _line(texts: tuple[str, ...], widths: list[int]) -> str:
    return GAP.join(f"{text:{width}}" for text, width in zip(texts, widths, strict=True)).rstrip()


def _width(columns: dict[str, list[str]]) -> int:
    return sum(_widest(title, texts) + len(GAP) for title, texts in columns.items()) - len(GAP)


def _widest(title: str, texts: list[str]) -> int:
    return max(map(len, (title, *texts)))


def _started(row: IndexRow) -> str:
    return "-" if row.started_ns is None else f"{datetime.fromtimestamp(row.started_ns / 1e9, UTC):%Y-%m-%d %H:%M}"


def _utilization(row: IndexRow) -> str:
    used = row.utilization
    return "-" if used.measured is None else f"{significant(used.measured)} ({_share(used.predicted)})"


def _share(value: float | None) -> str:
    return "-" if value is None else significant(value)


COLUMNS: dict[str, Callable[[IndexRow], str]] = {
    "started (UTC)": _started,
    "state": lambda row: row.state,
    "verdict": lambda row: row.verdict.value if row.state == RunState.DONE else "-",
    "U (predicted)": _utilization,
    "experiment": lambda row: row.experiment or "-",
    "engine": lambda row: row.engine or "-",
    "protocol": lambda row: row.protocol or "-",
    "recovery": lambda row: row.recovery or "-",
    "run": lambda row: row.run_id,
}
LEAST_WANTED_FIRST = (
    "engine",
    "experiment",
    "recovery",
    "protocol",
    "U (predicted)",
    "state",
    "verdict",
    "started (UTC)",
)
