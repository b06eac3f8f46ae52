"""The list of runs for a terminal."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any


def listing(runs: list[dict[str, Any]]) -> str:
    """One line per run (as `Run.status` describes it), newest first."""
    if not runs:
        return "no run yet: start one with `aftershock benchmark`"
    lines = [f"{'started (UTC)':16}  {'state':8} run"]
    for run in runs:
        started = datetime.fromtimestamp(run["started_ns"] / 1e9, UTC)
        lines.append(f"{started:%Y-%m-%d %H:%M}  {run['state']:8} {run['run_id']}{_why(run)}")
    return "\n".join(lines)


def _why(run: dict[str, Any]) -> str:
    return f"   {run['error']}" if run["error"] else ""
