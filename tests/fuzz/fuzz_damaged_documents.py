"""The documents of a store, damaged: a run's status and experiment, and the index of the runs, which is only a copy."""

from __future__ import annotations

import json
import os
from pathlib import Path

from plugins.present import time_text
from results.damage import Damaged
from results.runs import store
from results.runs.retention import removable
from results.summary import index
from results.views.listing import entry, listing
from results.views.selection import SORTS, Selection, select
from tests.fuzz.damaging import Stored, feed_damaged, in_one_line, written
from tests.fuzz.session import Fuzzer

INDEX = "runs-index.json"
LARGEST = 10**6  # bytes of an index of two runs, and more


def status(stored: Stored) -> list[Path]:
    return [stored.victim.root / "status.json"]


def experiment(stored: Stored) -> list[Path]:
    return [stored.victim.experiment_path]


def indexed(_: Stored) -> list[Path]:
    index.rows()
    return [store.home() / INDEX]


def is_as_it_is_described(stored: Stored, _: Path) -> str:
    """What is read of a status or experiment, and whether the other run is known as ever."""
    found = stored.victim.known_status()  # which says what is damaged, and raises nothing
    try:
        written(found.to_json())
        known = len(store.all_finished())
        if known != (2 if os.path.lexists(stored.victim.root / "status.json") else 1):
            raise AssertionError(f"{known} runs are known")
        if stored.whole.known_status().state != "done":
            raise AssertionError("the other run is not done")
        row = index.IndexRow("victim", found.state, found.experiment, found.started_ns)
        written([entry(row), time_text(found.ended_ns), listing([row], 80)])
        removable([found], 0, 1.0, (), 2**62)
        stored.victim.experiment().get("load", {}).get("mode", "").upper()
    except FileNotFoundError:
        return "missing"
    except Damaged as damage:
        return in_one_line(damage)
    return "read" if found.state == "done" else found.state


def costs_no_run(stored: Stored, path: Path) -> str:
    """Both runs are listed, with any content of the index."""
    answer = "listed without it" if _is_no_document(path) else "listed"
    rows = index.rows()
    if {row.run_id for row in rows} != {stored.victim.run_id, stored.whole.run_id}:
        raise AssertionError(f"listed: {[row.run_id for row in rows]}")
    listing(rows, 100)
    for sort in SORTS:
        select(rows, Selection(), sort)
    return answer


def _is_no_document(path: Path) -> bool:
    """Whether there is no JSON to read, be it of any shape."""
    if not path.is_file() or path.stat().st_size > LARGEST:
        return True
    try:
        json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return True
    return False


FUZZERS = [
    Fuzzer("damaged status", feed_damaged(status, is_as_it_is_described), weight=0.3),
    Fuzzer("damaged experiment", feed_damaged(experiment, is_as_it_is_described), weight=0.3),
    Fuzzer("damaged index", feed_damaged(indexed, costs_no_run), weight=0.05),
]
