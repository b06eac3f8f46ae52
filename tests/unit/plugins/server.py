"""Airflow's own authentication around the pages: a real auth manager, real tokens, an empty metadata database."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
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

from plugins import known_runs
from plugins.pages import create_app


@contextmanager
def airflow_in(home: Path) -> Iterator[None]:
    """An Airflow configured by environment variables, with an empty database in this folder; undone afterwards."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", f"sqlite:///{home}/airflow.db")
        patch.setenv("AIRFLOW__API__HOST", "127.0.0.1")
        patch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS", "vera:viewer")
        patch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE", str(home / "passwords.json"))
        patch.setenv("AIRFLOW__API_AUTH__JWT_SECRET", "only-for-tests-" * 6)
        _connect()
        import_all_models()
        Base.metadata.create_all(settings.engine)
        yield
    _connect()


def _connect() -> None:
    settings.dispose_orm(do_log=False)
    settings.configure_vars()
    settings.configure_orm()
    purge_cached_app()
    SimpleAuthManager._get_token_signer.cache_clear()
    SimpleAuthManager._get_token_validator.cache_clear()


def show_store(home: Path, patch: pytest.MonkeyPatch) -> None:
    """Have the pages show the run store in this folder, all of which they wait for, however busy the machine is."""
    patch.setenv("AFTERSHOCK_HOME", str(home))
    patch.setattr(known_runs, "READING_S", math.inf)


def pages_behind_airflow() -> FastAPI:
    """The pages mounted as Airflow mounts them, behind its middleware."""
    server = FastAPI(openapi_url=None)
    server.mount("/aftershock", create_app())
    init_auth_manager(server)
    server.add_middleware(JWTRefreshMiddleware)
    return server


def session_token(role: str | None = "VIEWER", expires_in_s: int = 600) -> str:
    """A session's token, as a login makes it."""
    user = SimpleAuthManagerUser(username="vera", role=role)
    return get_auth_manager().generate_jwt(user, expiration_time_in_seconds=expires_in_s)
