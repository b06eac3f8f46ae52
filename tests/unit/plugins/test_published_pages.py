"""A fresh installation shows what came with the repository, marked as published, and still says how to start."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from experiments import spec
from results.publication import publish_results
from results.runs import store
from results.runs.published import folder
from results.tables.schema import SCHEMA_VERSION
from tests.e2e.example_run import write_reproduction, write_run

MARK = '<span class="badge published">published</span>'
FIGURE = "utilization/fig-04"


@pytest.fixture
def fresh(browser: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    """The pages of an installation that has nothing of its own, but a published run and figure."""
    monkeypatch.setenv("AFTERSHOCK_PUBLISHED", str(tmp_path / "published"))
    run = write_run("shown")
    about = {"schema_version": SCHEMA_VERSION, "machine": "a machine, 2 cores", "experiment_digest": "0" * 16}
    store.write_json(run.root / "status.json", run.status().to_json() | about)
    store.write_json(run.experiment_path, spec.load().model_dump(mode="json"))
    write_reproduction()
    figure = store.home() / "reproductions" / FIGURE
    shutil.copyfile(run.tables / "ledger.parquet", figure / "utilization-fig-04.parquet")
    verdicts = figure / "utilization-fig-04.verdicts.json"
    made = {
        "command": f"aftershock reproduce {FIGURE}",
        "machine": "a machine, 2 cores",
        "versions": {"numpy": "2.4.6"},
    }
    store.write_json(verdicts, json.loads(verdicts.read_text()) | made)
    publish_results(["shown", FIGURE])
    shutil.rmtree(store.home())
    return browser


def test_the_list_of_runs_marks_it_and_says_how_to_start(fresh: TestClient):
    page = fresh.get("/aftershock/").text
    assert "No run has finished yet" in page
    assert re.search(rf'href="/aftershock/runs/shown">shown</a> {MARK}', page)
    write_run("own")
    page = fresh.get("/aftershock/").text
    assert "No run has finished yet" not in page
    assert page.count(MARK) == 1


def test_the_page_of_a_run_says_how_it_came_about_and_has_what_it_needs(fresh: TestClient):
    page = fresh.get("/aftershock/runs/shown").text
    assert MARK in page
    assert (
        "Made by <code>aftershock benchmark published/runs/shown/experiment.json</code> on a machine, 2 cores" in page
    )
    assert "/dag-runs/" not in page
    assert fresh.get("/aftershock/runs/shown/charts.json").status_code == 200
    assert fresh.get("/aftershock/runs/shown/tables/ledger.csv").status_code == 200
    for plot in re.findall(r'src="(/aftershock/runs/shown/plots/[^"]+)"', page):
        assert fresh.get(plot).status_code == 200


def test_published_runs_are_no_part_of_the_history(fresh: TestClient):
    before = fresh.get("/aftershock/history").text
    assert "a machine, 2 cores" not in before
    shutil.copytree(folder() / "runs" / "shown", store.home() / "runs" / "shown")
    assert "a machine, 2 cores" in fresh.get("/aftershock/history").text  # where it is the installation's own


def test_a_comparison_marks_a_published_run_and_does_not_pool_it_with_own_ones(fresh: TestClient):
    for name in ("own", "another"):
        run = write_run(name)
        store.write_json(run.root / "status.json", run.status().to_json() | {"experiment_digest": "0" * 16})
    mixed = fresh.get("/aftershock/compare?run=own&run=shown").text
    assert re.search(rf">shown</a> {MARK}</th>", mixed)
    assert not re.search(rf">own</a> {MARK}", mixed)
    assert "against eq. 10" not in mixed
    assert "against eq. 10" in fresh.get("/aftershock/compare?run=own&run=another").text


def test_the_gallery_marks_a_published_figure_until_it_is_computed_here(fresh: TestClient):
    page = fresh.get("/aftershock/reproductions").text
    assert MARK in page
    assert f"<code>aftershock reproduce {FIGURE}</code> on a machine, 2 cores, with numpy 2.4.6" in page
    assert fresh.get(f"/aftershock/reproductions/{FIGURE}.svg").status_code == 200
    write_reproduction()
    assert MARK not in fresh.get("/aftershock/reproductions").text


def test_the_gallery_says_when_a_table_was_judged_again(fresh: TestClient):
    assert "Judged again" not in fresh.get("/aftershock/reproductions").text
    about = folder() / "reproductions" / FIGURE / "published.json"
    store.write_json(about, json.loads(about.read_text()) | {"judged_again": "2026-11-28"})
    assert "with numpy 2.4.6. Judged again on 2026-11-28" in fresh.get("/aftershock/reproductions").text


@pytest.mark.parametrize("owner", ["runs/shown", f"reproductions/{FIGURE}"])
def test_what_this_version_does_not_read_is_said_with_the_command_that_remakes_it(fresh: TestClient, owner: str):
    about = folder() / owner / "published.json"
    store.write_json(about, json.loads(about.read_text()) | {"format": 99})
    address = "/aftershock/runs/shown" if owner.startswith("runs") else "/aftershock/reproductions"
    response = fresh.get(address)
    assert response.status_code == 200
    assert "it is of format 99" in response.text
    assert "aftershock results publish" in response.text
    assert ".parquet" not in response.text


def test_a_script_in_a_published_document_stays_text(fresh: TestClient):
    about = folder() / "runs" / "shown" / "published.json"
    store.write_json(about, json.loads(about.read_text()) | {"machine": "<script>alert(1)</script>"})
    assert "<script>alert" not in fresh.get("/aftershock/runs/shown").text
