"""The pages as a browser meets them: behind Airflow's login, over an empty store or one with an example of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from tests.e2e.example_run import (
    write_failed_run,
    write_live_run,
    write_protections,
    write_regression,
    write_reproduction,
    write_run,
)
from tests.unit.plugins.server import airflow_in, pages_behind_airflow, session_token, show_store


@pytest.fixture(scope="module")
def airflow_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An Airflow configured by environment variables, with an empty database; undone afterwards."""
    home = tmp_path_factory.mktemp("airflow")
    with airflow_in(home):
        yield home


@pytest.fixture(scope="module")
def pages(airflow_home: Path) -> FastAPI:
    """The server of the pages, which has no state; it is shared, since making one takes longer than most tests."""
    return pages_behind_airflow()


@pytest.fixture
def api_server(pages: FastAPI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FastAPI:
    """The pages mounted as Airflow mounts them, behind its middleware, over an empty run store."""
    show_store(tmp_path / "home", monkeypatch)
    return pages


@pytest.fixture(scope="module")
def example_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with something to show for every route: runs `one` and `two`, which failed, a live one, and the rest."""
    home = tmp_path_factory.mktemp("examples")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AFTERSHOCK_HOME", str(home))
        write_run("one")
        write_failed_run("two", "the broker is gone")
        write_regression()
        write_protections()
        write_reproduction()
        write_live_run()
    return home


@pytest.fixture
def one_of_each(api_server: FastAPI, example_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the pages show the store of examples, to tests that change nothing there."""
    show_store(example_store, monkeypatch)


@pytest.fixture
def token(api_server: FastAPI) -> Callable[..., str]:
    """Makes session tokens as a login does: `token(role, expires_in_s=...)`."""
    return session_token


@pytest.fixture
def browser(api_server: FastAPI, token: Callable[..., str]) -> Iterator[TestClient]:
    """A client with the session cookie of a viewer."""
    with TestClient(api_server, cookies={"_token": token()}, follow_redirects=False) as client:
        yield client


@pytest.fixture
def anonymous(api_server: FastAPI) -> Iterator[TestClient]:
    with TestClient(api_server, follow_redirects=False) as client:
        yield client
