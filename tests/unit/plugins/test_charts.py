"""The charts, drawn without a browser: what is said of a point by keyboard is what the tooltip shows."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from playwright._impl._driver import compute_driver_executable

from plugins.files import STATIC_FOLDER

NODE = compute_driver_executable()[0]  # comes with the package that drives browsers
PATIENCE_S = 60
MANY = 27  # more recoveries than are shown at once
RUN: dict[str, dict[str, Any]] = {
    "ledger": {"window_s": 100, "seconds": {"useful": 60, "checkpoint": 10, "lost": 0, "idle": 30}},
    "utilization": {
        "intervals_s": [1, 5, 20, 50],
        "expected": [0.5, 0.8, 0.9, 0.7],
        "run": {"interval_s": 10, "measured": 0.85, "predicted": 0.88, "low": 0.8, "high": 0.9},
        "optimum": {"interval_s": 20, "expected": 0.9},
    },
    "useful_time": {"second": [0, 1, 2], "measured_s": [0, 1, 1], "replayed_s": [0, 1, 2], "faults": []},
    "timeline": {
        "window_s": 3,
        "second": [0, 1, 2],
        "committed": [5, None, 7],
        "due": [6, 6, 6],
        "lag": [0, 1, 2],
        "latency": {"second": [0, 2], "p50_s": [0.1, 0.2], "p99_s": [1, 1], "p999_s": [2, 2]},
        "faults": [{"at_s": 1.5, "kind": "kill", "targets": "worker-1", "outcome": "injected"}],
        "outages": [],
        "phases": [],
        "checkpoints": {"at_s": [2], "took_s": [0.5]},
        "tentative": None,
    },
    "availability": {
        "queries": 4,
        "at_s": [0, 10, 20],
        "never_back": [],
        "available": [0, 0.5, 1],
        "predicted": [0, 1, None],
    },
    "recoveries": {
        "names": [f"{number} s  worker-1" for number in range(MANY)],
        "phases": {name: [1.0] * MANY for name in ("detect", "restart", "restore", "catch_up")},
        "executor": [None] * MANY,
        "totals": ["4 s"] * MANY,
    },
}
COMPARED: dict[str, dict[str, Any]] = {
    "ledgers": {"names": ["one", "two"], "shares": {"useful": [50, 60], "lost": [50, 40]}},
    "utilizations": {
        "names": ["one", "two", "three"],
        "measured": [None, 0.5, 0.6],
        "predicted": [0.3, 0.4, None],
        "low": [0.2, 0.3, None],
        "high": [0.4, 0.5, None],
    },
    "availabilities": {"names": ["one", "two"], "at_s": [[0, 1], [0, 2]], "shares": [[0.1, 1], [0, 0.5]]},
}
HISTORY: dict[str, dict[str, Any]] = {
    "history": {
        "metric": "U",
        "unit": "",
        "names": ["one", "two"],
        "started": ["2026-11-20 10:00", "2026-11-21 10:00"],
        "values": [0.7, 0.8],
        "changes": [],
        "levels": [],
    }
}
MATRIX: dict[str, dict[str, Any]] = {
    "costs": {"names": ["one", "two"], "value": [1, 2], "low": [0.5, None], "high": [2, None]},
    "rates": {
        "names": ["one"],
        "per_hour": [0, 1],
        "curves": [{"value": [3, 2], "low": [2, 1], "high": [4, 3]}],
        "changes_per_hour": [],
    },
}
SCRIPTS = {
    "run-charts.js": RUN,
    "compare-charts.js": COMPARED,
    "history-chart.js": HISTORY,
    "matrix-chart.js": MATRIX,
}


def read(script: str, document: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What each chart of a page draws, and what it says and shows step by step, read by keyboard."""
    command = [NODE, str(Path(__file__).parent / "read_charts.mjs"), str(STATIC_FOLDER), script]
    done = subprocess.run(
        command, input=json.dumps(document), capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("script", SCRIPTS)
def test_read_by_keyboard_each_point_has_its_own_tooltip(script: str):
    for kind, chart in read(script, SCRIPTS[script]).items():
        assert len(chart["steps"]) > 1
        assert [(kind, step["shown"]) for step in chart["steps"]] == [(kind, step["said"]) for step in chart["steps"]]


def test_the_axes_of_a_history_have_names():
    """One point for each run: what stands below is when the run started."""
    assert read("history-chart.js", HISTORY)["history"]["axes"] == ["start of the run (UTC)", "U"]
