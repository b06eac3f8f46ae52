"""Airflow's own authentication around the pages: a real auth manager, real tokens, an empty metadata database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from tests.e2e.example_run import (
    write_failed_run,
    write_live_run,
    write_regression,
    write_reproduction,
    write_run,
)
from tests.unit.plugins.server import airflow_in, api_server_over, session_token


@pytest.fixture(scope="module")
def airflow_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An Airflow configured by environment variables, with an empty database; undone afterwards."""
    home = tmp_path_factory.mktemp("airflow")
    with airflow_in(home):
        yield home


@pytest.fixture
def api_server(airflow_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FastAPI:
    """The pages mounted as Airflow mounts them, behind its middleware, over an empty run store."""
    return api_server_over(tmp_path / "home", monkeypatch)


@pytest.fixture
def one_of_each(api_server: FastAPI) -> None:
    """What every route has something to show of: the runs `one` and `two`, which failed, a live one, and the rest."""
    write_run("one")
    write_failed_run("two", "the broker is gone")
    write_regression()
    write_reproduction()
    write_live_run()


@pytest.fixture
def token(api_server: FastAPI) -> Callable[..., str]:
    """Makes session tokens as a login does: `token(role, expires_in_s=...)`."""
    return session_token


@pytest.fixture
def browser(api_server: FastAPI, token: Callable[..., str]) -> TestClient:
    """A client with the session cookie of a viewer."""
    return TestClient(api_server, cookies={"_token": token()}, follow_redirects=False)


@pytest.fixture
def anonymous(api_server: FastAPI) -> TestClient:
    return TestClient(api_server, follow_redirects=False)
