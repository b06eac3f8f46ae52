"""How long the list of a thousand runs and the timeline of a ten-minute run take on the server.

python -m pytest benchmarks/test_pages_speed.py -s
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from plugins.access import may_read_results
from plugins.pages import create_app
from results import charts, index, store
from tests.e2e.example_run import START_NS, write_run, write_table

RUNS, LONGEST_S = 1000, 1.0


def test_a_thousand_runs_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AFTERSHOCK_HOME", str(tmp_path))
    first = write_run("run-000")
    for number in range(1, RUNS):
        copy = store.Run(f"run-{number:03d}", first.root.with_name(f"run-{number:03d}"))
        (copy.root / "tables").mkdir(parents=True)
        for table in first.tables.iterdir():
            os.link(table, copy.tables / table.name)
        store.write_json(copy.root / "status.json", first.status() | {"run_id": copy.run_id})
    app = create_app()
    app.dependency_overrides[may_read_results] = lambda: None
    server = FastAPI()
    server.mount("/aftershock", app)
    browser = TestClient(server)
    addresses = ("", "?sort=-utilization&page=7", "?verdict=fail&engine=structured-streaming&sort=run")
    first_s = _seconds(lambda: browser.get("/aftershock/"))
    index.rows()  # what a thread of the first list does meanwhile
    took_s = [_seconds(lambda address=address: browser.get(f"/aftershock/{address}")) for address in addresses]
    print(
        f"first list, without an index, in {first_s:.3f} s; others in {', '.join(f'{each:.3f}' for each in took_s)} s"
    )
    assert max(first_s, *took_s) < LONGEST_S


def test_the_timeline_of_ten_minutes_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AFTERSHOCK_HOME", str(tmp_path))
    run = write_run("long")
    seconds = range(600)
    load = {"due_records": 21_000.0, "committed_records": 20_000.0, "lag_records": 500.0}
    write_table(run, "throughput", [{"second": second, **load} for second in seconds])
    waits = {"records": 5000, "p50_s": 0.4, "p99_s": 1.25, "p999_s": 2.125}
    write_table(run, "latency", [{"second": second, **waits} for second in seconds])
    facts = run.table("runs").to_dict("records")[0]
    write_table(run, "runs", [facts | {"window_s": 600.0, "window_end_ns": START_NS + 600 * 10**9}])
    took_s = _seconds(lambda: charts.charts(run))
    print(f"charts of ten minutes in {took_s:.3f} s")
    assert took_s < LONGEST_S


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
