"""Airflow's own authentication around the pages: a real auth manager, real tokens, an empty metadata database."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from airflow import settings
from airflow.api_fastapi.app import get_auth_manager, init_auth_manager, purge_cached_app
from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from airflow.api_fastapi.auth.middlewares.refresh_token import JWTRefreshMiddleware
from airflow.models import import_all_models
from airflow.models.base import Base
from fastapi import FastAPI
from fastapi.testclient import TestClient

from plugins import known_runs
from plugins.pages import create_app


@pytest.fixture(scope="module")
def airflow_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An Airflow configured by environment variables, with an empty database; undone afterwards."""
    home = tmp_path_factory.mktemp("airflow")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", f"sqlite:///{home}/airflow.db")
        patch.setenv("AIRFLOW__API__HOST", "127.0.0.1")
        patch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS", "vera:viewer")
        patch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE", str(home / "passwords.json"))
        patch.setenv("AIRFLOW__API_AUTH__JWT_SECRET", "only-for-tests-" * 6)
        _connect()
        import_all_models()
        Base.metadata.create_all(settings.engine)
        yield home
    _connect()


def _connect() -> None:
    settings.dispose_orm(do_log=False)
    settings.configure_vars()
    settings.configure_orm()
    purge_cached_app()
    SimpleAuthManager._get_token_signer.cache_clear()
    SimpleAuthManager._get_token_validator.cache_clear()


@pytest.fixture
def api_server(airflow_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FastAPI:
    """The pages mounted as Airflow mounts them, behind its middleware, over an empty run store."""
    monkeypatch.setenv("AFTERSHOCK_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(known_runs, "READING_S", math.inf)  # how busy the machine is must not matter
    server = FastAPI(openapi_url=None)
    server.mount("/aftershock", create_app())
    init_auth_manager(server)
    server.add_middleware(JWTRefreshMiddleware)
    return server


@pytest.fixture
def token(api_server: FastAPI) -> Callable[..., str]:
    """Makes session tokens as a login does: `token(role, expires_in_s=...)`."""

    def make(role: str | None = "VIEWER", expires_in_s: int = 600) -> str:
        user = SimpleAuthManagerUser(username="vera", role=role)
        return get_auth_manager().generate_jwt(user, expiration_time_in_seconds=expires_in_s)

    return make


@pytest.fixture
def browser(api_server: FastAPI, token: Callable[..., str]) -> TestClient:
    """A client with the session cookie of a viewer."""
    return TestClient(api_server, cookies={"_token": token()}, follow_redirects=False)


@pytest.fixture
def anonymous(api_server: FastAPI) -> TestClient:
    return TestClient(api_server, follow_redirects=False)
