"""Files of a run are served by name only: nothing outside the run's own folders can be reached."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pandas as pd
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from plugins import runs
from plugins.files import OpenedFile, OwnFile, opened, send
from results.damage import Damaged
from results.runs.store import Run
from results.tables.schema import RUN_TABLES
from tests.e2e.example_run import write_run

SECRET = "do not show"
FOLDERS = ("plots", "checks", "tables")


@pytest.fixture
def run(api_server: FastAPI, tmp_path: Path) -> Run:
    """A run with secrets beside and above it, and one in a folder of its own that is not served."""
    run = write_run("one")
    for place in (run.root, run.root.parent, tmp_path):
        (place / "secret.html").write_text(SECRET)
    (run.root / "raw").mkdir()
    (run.root / "raw" / "secret.html").write_text(SECRET)
    return run


@pytest.mark.extended
@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize(
    "name",
    [
        "%2e%2e/secret.html",
        "%2e%2e%2fsecret.html",
        "..%2f..%2fsecret.html",
        "%252e%252e%252fsecret.html",
        "..%5csecret.html",
        "data_docs/%2e%2e/%2e%2e/secret.html",
        "%00secret.html",
        "timeline.svg%00.html",
        "x" * 5000,
        "{absolute}",
        "/{absolute}",
        "%2f{absolute}",
        "file:%2f%2f{absolute}",
        "~root",
        "",
    ],
)
def test_nothing_outside_is_served(browser: TestClient, run: Run, tmp_path: Path, folder: str, name: str):
    name = name.format(absolute=tmp_path / "secret.html")
    response = browser.get(f"/aftershock/runs/one/{folder}/{name}")
    assert response.status_code == 404
    assert SECRET not in response.text


@pytest.mark.parametrize("folder", ["plots", "checks"])
def test_links_are_not_followed(browser: TestClient, run: Run, tmp_path: Path, folder: str):
    base = run.root / folder
    (base / "file.html").symlink_to(tmp_path / "secret.html")
    (base / "folder").symlink_to(tmp_path)
    (base / "loop.html").symlink_to(base / "loop.html")
    for name in ("file.html", "folder/secret.html", "loop.html"):
        assert browser.get(f"/aftershock/runs/one/{folder}/{name}").status_code == 404


@pytest.mark.parametrize("folder", ["plots", "checks"])
def test_a_folder_that_is_a_link_is_not_followed(browser: TestClient, run: Run, tmp_path: Path, folder: str):
    (run.root / folder).rename(tmp_path / folder)
    (run.root / folder).symlink_to(tmp_path / folder)
    name = {"plots": "timeline.svg", "checks": "data_docs/index.html"}[folder]
    assert browser.get(f"/aftershock/runs/one/{folder}/{name}").status_code == 404


def test_a_report_that_is_a_link_is_not_followed(browser: TestClient, run: Run, tmp_path: Path):
    run.report.unlink()
    run.report.symlink_to(tmp_path / "secret.html")
    assert browser.get("/aftershock/runs/one/report.html").status_code == 404


def to_a_link(run: Run, secret: Path) -> None:
    (run.root / "plots" / "timeline.svg").unlink()
    (run.root / "plots" / "timeline.svg").symlink_to(secret)


def to_a_folder_that_is_a_link(run: Run, secret: Path) -> None:
    (run.root / "plots").rename(run.root / "plots-before")
    (secret.parent / "timeline.svg").write_text(SECRET)
    (run.root / "plots").symlink_to(secret.parent)


def to_a_pipe(run: Run, secret: Path) -> None:
    """A FIFO without a writer: a process that opens it by its name waits for ever."""
    (run.root / "plots" / "timeline.svg").unlink()
    os.mkfifo(run.root / "plots" / "timeline.svg")


def to_nothing(run: Run, secret: Path) -> None:
    (run.root / "plots" / "timeline.svg").unlink()


SWAPS = pytest.mark.parametrize("swap", [to_a_link, to_a_folder_that_is_a_link, to_a_pipe, to_nothing])


@SWAPS
def test_a_file_that_is_swapped_after_it_was_looked_up_is_not_served(
    browser: TestClient, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swap: Callable[[Run, Path], None]
):
    def swapped(file: OwnFile | None) -> OpenedFile:
        swap(run, tmp_path / "secret.html")
        return send(file)

    monkeypatch.setattr(runs, "send", swapped)
    response = browser.get("/aftershock/runs/one/plots/timeline.svg")
    assert response.status_code == 404
    assert SECRET not in response.text


@SWAPS
def test_a_file_that_is_swapped_after_it_was_opened_is_served_as_it_was(
    browser: TestClient, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swap: Callable[[Run, Path], None]
):
    before = (run.root / "plots" / "timeline.svg").read_bytes()

    def swapped(file: OwnFile | None) -> OpenedFile:
        opened = send(file)
        swap(run, tmp_path / "secret.html")
        return opened

    monkeypatch.setattr(runs, "send", swapped)
    assert browser.get("/aftershock/runs/one/plots/timeline.svg").content == before
    still_open = [os.path.realpath(descriptor) for descriptor in Path("/proc/self/fd").iterdir()]
    assert not [path for path in still_open if "timeline.svg" in path]


def test_a_part_of_a_file_can_be_asked_for(browser: TestClient, run: Run):
    whole = (run.root / "plots" / "timeline.svg").read_bytes()
    response = browser.get("/aftershock/runs/one/plots/timeline.svg", headers={"Range": "bytes=2-5"})
    assert (response.status_code, response.content) == (206, whole[2:6])


def test_a_run_store_on_another_disk_works(browser: TestClient, run: Run, tmp_path: Path):
    run.root.parent.rename(tmp_path / "elsewhere")
    run.root.parent.symlink_to(tmp_path / "elsewhere")
    assert browser.get("/aftershock/runs/one/plots/timeline.svg").status_code == 200


def test_files_of_unknown_types_are_not_served(browser: TestClient, run: Run):
    (run.checks / "script.js").write_text("alert(1)")
    assert browser.get("/aftershock/runs/one/checks/script.js").status_code == 404


@pytest.mark.extended
@pytest.mark.parametrize("run_id", ["absent", "%2e%2e", "ONE", "one%2f..%2fone", "one%00", "a" * 300])
def test_unknown_runs_are_not_found(browser: TestClient, run: Run, run_id: str):
    for rest in ("", "/report.html", "/plots/timeline.svg", "/checks/data_docs/index.html", "/tables/faults.csv"):
        assert browser.get(f"/aftershock/runs/{run_id}{rest}").status_code == 404


def test_plots_report_and_data_docs_are_served_without_scripts(browser: TestClient, run: Run):
    kinds = {
        "plots/timeline.svg": "image/svg+xml",
        "report.html": "text/html; charset=utf-8",
        "checks/data_docs/index.html": "text/html; charset=utf-8",
        "checks/data_docs/suites/faults.html": "text/html; charset=utf-8",
    }
    for name, kind in kinds.items():
        response = browser.get(f"/aftershock/runs/one/{name}")
        assert response.content == (run.root / name).read_bytes()
        assert response.headers["Content-Type"] == kind
        assert "script-src" not in response.headers["Content-Security-Policy"]


def test_tables_download_as_csv_and_parquet(browser: TestClient, run: Run, tmp_path: Path):
    csv = browser.get("/aftershock/runs/one/tables/checkpoints.csv")
    assert csv.headers["Content-Disposition"] == 'attachment; filename="one-checkpoints.csv"'
    (tmp_path / "checkpoints.csv").write_bytes(csv.content)
    back = pd.read_csv(tmp_path / "checkpoints.csv")
    stored = run.table("checkpoints")
    assert list(back.columns) == [column.name for column in RUN_TABLES["checkpoints"].columns]
    assert list(back["completed_ns"]) == list(stored["completed_ns"])
    assert back["wal_s"].isna().all()
    parquet = browser.get("/aftershock/runs/one/tables/checkpoints.parquet")
    assert parquet.headers["Content-Disposition"] == 'attachment; filename="one-checkpoints.parquet"'
    assert parquet.content == (run.tables / "checkpoints.parquet").read_bytes()


def test_a_table_is_read_once_to_be_sent_as_csv(browser: TestClient, run: Run, monkeypatch: pytest.MonkeyPatch):
    read, read_pieces = [], runs.read_pieces
    monkeypatch.setattr(runs, "read_pieces", lambda path, file: read.append(path.name) or read_pieces(path, file))
    assert browser.get("/aftershock/runs/one/tables/checkpoints.csv").status_code == 200
    assert read == ["checkpoints.parquet"]


def test_a_table_that_is_damaged_after_its_first_piece_is_refused_as_a_whole(
    browser: TestClient, run: Run, monkeypatch: pytest.MonkeyPatch
):
    def torn(path: Path, file: int):
        yield from [*read_pieces(path, file)][:1]
        raise Damaged("one", path.name, "it ends early")

    read_pieces = runs.read_pieces
    monkeypatch.setattr(runs, "read_pieces", torn)
    response = browser.get("/aftershock/runs/one/tables/checkpoints.csv")
    assert response.status_code == 500
    assert "it ends early" in response.text


@pytest.mark.parametrize("folder", ["tables", "tables/checkpoints.parquet"])
def test_a_table_that_is_swapped_for_a_link_is_not_read_as_csv(
    browser: TestClient, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
):
    """After the file was looked up: the link leads to another table that could be read."""

    def swapped(file: OwnFile) -> BinaryIO:
        (run.root / folder).rename(tmp_path / "elsewhere")
        (run.root / folder).symlink_to(tmp_path / "elsewhere")
        return opened(file)

    monkeypatch.setattr(runs, "opened", swapped)
    assert browser.get("/aftershock/runs/one/tables/checkpoints.csv").status_code == 404


@pytest.mark.parametrize("name", ["hosts", "nonsense"])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_missing_tables_are_not_found(browser: TestClient, run: Run, name: str, kind: str):
    assert browser.get(f"/aftershock/runs/one/tables/{name}.{kind}").status_code == 404
