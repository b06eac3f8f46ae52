"""How long the list of a thousand runs and the timeline of a ten-minute run take, from navigation to what is seen.

A real API server of Airflow, a login, headless Chromium, whose own clock is read: it starts with the navigation. What
Airflow's own frame takes around a page is not in it. Lists while the runs are read for the first time share the
server with their reading; they are told, and held to nothing.

python -m pytest benchmarks/speed/test_pages_speed.py -s
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import BrowserContext, Page

from benchmarks.machine_load import load_of_others
from results.runs import store
from results.summary import index
from tests.e2e.airflow_server import api_server, home_of_its_own
from tests.e2e.browser import logged_in_browser, needs_chromium
from tests.e2e.example_run import START_NS, write_run, write_table

RUNS, LONGEST_S, READ_LIMIT_S = 1000, 1.0, 300.0
WINDOW_S, INTERVAL_S, FAULTS, HOSTS, SEED = 600, 5, 20, 4, 1
FILTERED = "?verdict=fail&engine=structured-streaming&sort=run"
LONG = "long"
NOTE_WHEN_DRAWN = """
new MutationObserver(() => {
  const drawn = document.querySelector("[data-chart=timeline][data-drawn-ms]");
  if (drawn) window.drawnAt ??= performance.now();
}).observe(document, { subtree: true, attributeFilter: ["data-drawn-ms"] });
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A store with a run of ten minutes, and a thousand runs of four, which share the files of their tables."""
    home = tmp_path_factory.mktemp("speed")
    with home_of_its_own(home):
        first = write_run("run-000")
        for number in range(1, RUNS):
            copy = store.Run(f"run-{number:03d}", first.root.with_name(f"run-{number:03d}"))
            copy.tables.mkdir(parents=True)
            for table in first.tables.iterdir():
                os.link(table, copy.tables / table.name)
            store.write_json(copy.root / "status.json", first.status().to_json() | {"run_id": copy.run_id})
        write_long_run()
        yield home


def write_long_run() -> None:
    """Ten minutes, a checkpoint every five seconds, twenty faults; every table of the size that such a run has."""
    run, dice = write_run(LONG), np.random.default_rng(SEED)
    at = [START_NS + round(second * 1e9) for second in np.sort(dice.uniform(5, WINDOW_S - 20, FAULTS))]
    facts = run.table("runs").to_dict("records")[0]
    end_ns = START_NS + WINDOW_S * 10**9
    write_table(run, "runs", [facts | {"window_s": float(WINDOW_S), "window_end_ns": end_ns, "faults": FAULTS}])
    seconds = range(WINDOW_S)
    load = [{"second": s, "due_records": 21_000.0, "committed_records": dice.uniform(0, 4e4)} for s in seconds]
    write_table(run, "throughput", [row | {"lag_records": dice.uniform(0, 9e4)} for row in load])
    waits = [sorted(dice.gamma(2, 1, 3)) for _ in seconds]
    names = ("p50_s", "p99_s", "p999_s")
    rows = [{"second": s, "records": 5000} | dict(zip(names, waits[s], strict=True)) for s in seconds]
    write_table(run, "latency", rows)
    used = [
        {"second": s, "host": f"worker-{h}", "cpu_s": s * 0.7, "rss_bytes": 9**9} for s in seconds for h in range(HOSTS)
    ]
    write_table(run, "hosts", used)
    _repeat(run, "faults", [{"fault": i, "planned_ns": at[i], "actual_ns": at[i] + 10**6} for i in range(FAULTS)])
    moments = (("death_ns", 0.0), ("notice_ns", 1.5), ("ready_ns", 6.0), ("restored_ns", 11.0))
    outages = [{name: each + round(late_s * 1e9) for name, late_s in moments} for each in at]
    _repeat(run, "recoveries", [outage | {"recovery": i, "fault": i} for i, outage in enumerate(outages)])
    starts = [START_NS + second * 10**9 for second in range(0, WINDOW_S, INTERVAL_S)]
    done = [{"batch": i, "started_ns": start, "completed_ns": start + 4 * 10**9} for i, start in enumerate(starts)]
    _repeat(run, "checkpoints", done)
    spans = [{"start_ns": start, "end_ns": start + 10**9, "seconds": 1.0} for start in range(START_NS, end_ns, 10**9)]
    _repeat(run, "ledger", spans)
    quality = dict.fromkeys(("exact", "emitted", "lost", "duplicated", "wrong"), 0)
    windows = [{"window_start_ns": start, "window_end_ns": start + 10**10} | quality for start in starts]
    write_table(run, "quality", windows)


def _repeat(run: store.Run, name: str, changes: Sequence[Mapping[str, object]]) -> None:
    """As many rows of a table as there are changes, each the first one of it with those."""
    first = {key: None if value != value else value for key, value in run.table(name).to_dict("records")[0].items()}
    write_table(run, name, [{**first, **change} for change in changes])


@pytest.fixture(scope="module")
def server(home: Path) -> Iterator[str]:
    """The address of Airflow's API server with the pages."""
    with api_server(home) as address:
        yield address


@pytest.fixture(scope="module")
def logged_in(server: str) -> Iterator[BrowserContext]:
    """A browser that is logged in there."""
    with logged_in_browser(server) as context:
        yield context


@pytest.fixture
def page(logged_in: BrowserContext) -> Iterator[Page]:
    """A page that notes when its chart was drawn."""
    page = logged_in.new_page()
    page.add_init_script(NOTE_WHEN_DRAWN)
    yield page
    page.close()


def loaded_s(page: Page, address: str) -> float:
    """From the request until the browser says that the page is loaded [s]."""
    page.goto(address, wait_until="load")
    while not (took_ms := float(page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd"))):
        page.wait_for_timeout(10)
    return took_ms / 1000


def drawn_s(page: Page, address: str) -> float:
    """From the request until the timeline was drawn [s]."""
    page.goto(address)
    page.locator("[data-chart=timeline][data-drawn-ms]").wait_for()
    return float(page.evaluate("window.drawnAt")) / 1000


@needs_chromium
def test_the_timeline_of_ten_minutes_is_drawn(page: Page, server: str) -> None:
    load = load_of_others()
    took_s = [drawn_s(page, f"{server}/aftershock/runs/{LONG}") for _ in range(6)]
    _tell("timeline of ten minutes", took_s, load)
    assert max(took_s) < LONGEST_S


@needs_chromium
def test_a_thousand_runs_are_listed(page: Page, server: str, home: Path) -> None:
    load = load_of_others()
    took_s = [loaded_s(page, f"{server}/aftershock/")]
    assert page.locator("table.runs tbody tr").count() == 50
    assert "1,001 runs" in page.locator("nav[aria-label='Pages of runs']").inner_text()
    deadline_s = time.monotonic() + READ_LIMIT_S
    while "not read yet" in page.content():
        assert time.monotonic() < deadline_s
        page.wait_for_timeout(500)
        took_s.append(loaded_s(page, f"{server}/aftershock/"))
    _tell("lists without an index, and while runs are read", took_s, load)
    assert {row.state for row in index.rows(limit_s=0.0)} == {"done"}
    addresses = ("", "?sort=-utilization&page=7", FILTERED)
    indexed_s = [loaded_s(page, f"{server}/aftershock/{which}") for which in addresses]
    _tell("lists with the index", indexed_s, load)
    assert max(indexed_s) < LONGEST_S


def _tell(what: str, took_s: list[float], load: float) -> None:
    shown = ", ".join(f"{each:.2f}" for each in took_s[:12])
    print(
        f"\n{what}: {shown} s; median {np.median(took_s):.2f}, longest {max(took_s):.2f} s (machine's load {load:.0f})"
    )
