"""Links lead somewhere: within a page to a place that it has, from a comparison to what is still there."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from plugins import trends
from results.runs import store
from tests.e2e.example_run import REGRESSION, write_night, write_regression, write_run
from tests.unit.plugins.test_pages import Page, get

COMPARISON = f"/aftershock/regressions/{REGRESSION}"


def places(page: Page) -> set[str]:
    """The places of its own page that links lead to."""
    return {link.removeprefix("#") for link in page.all("href") if link.startswith("#")}


def test_links_within_a_run_lead_to_a_place_of_its_page(browser: TestClient):
    """One check is unknown since its table is missing: there is no table to look at."""
    run = write_run("one")
    assert not run.has("quality")
    (run.tables / "latency.parquet").unlink()
    page = get(browser, "/aftershock/runs/one?table=faults&second=31")
    assert {"table-runs", "table-faults", "charts"} <= places(page)
    assert places(page) <= set(page.all("id"))
    assert "from throughput , latency, faults" in " ".join(page.words.split())


def test_rows_of_a_run_that_cannot_be_read_lead_to_no_charts(browser: TestClient):
    run = write_run("one")
    store.write_json(run.root / "status.json", {})
    page = get(browser, "/aftershock/runs/one?table=faults&second=31")
    assert "unreadable" in page.words
    assert "around" in page.all("id")
    assert places(page) <= set(page.all("id"))


def test_a_comparison_has_links_to_those_runs_that_are_still_there(browser: TestClient):
    write_regression()
    write_night(15, 0.718)
    page = get(browser, COMPARISON)
    own = {link for link in page.all("href") if link.startswith("/aftershock/")}
    assert "/aftershock/runs/night-15" in own
    assert "night-00" in page.words
    assert {link: browser.get(link).status_code for link in own} == dict.fromkeys(own, 200)


def test_a_metric_of_another_version_has_no_link_to_a_history(browser: TestClient, monkeypatch: pytest.MonkeyPatch):
    write_regression()
    metric = "metric=utilization"
    assert any(metric in link for link in get(browser, COMPARISON).all("href"))
    monkeypatch.setattr(trends, "METRICS", {})
    page = get(browser, COMPARISON)
    assert "worse utilization" in " ".join(page.words.split())
    assert not any(metric in link for link in page.all("href"))
