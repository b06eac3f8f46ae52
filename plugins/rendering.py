"""Turns templates into pages, and errors into pages that say what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

from airflow.api_fastapi.app import get_auth_manager
from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.exceptions import HTTPException

from experiments.errors import AftershockError, BadInput
from experiments.wording import counted, percent
from plugins import present
from plugins.access import BENCHMARK_DAG
from plugins.files import ECHARTS, STATIC_VERSION
from results.views import cells

SECTIONS = {
    "": "Runs",
    "matrix": "Protections",
    "history": "History",
    "regressions": "Regressions",
    "reproductions": "Reproductions",
    "live": "Live",
}  # by the address of their first page

templates = Environment(
    loader=FileSystemLoader([Path(__file__).parent / "templates", cells.SHARED_TEMPLATES]),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
templates.globals.update(
    column=cells.head,
    whole=present.whole_text,
    figure=present.figure_text,
    percent=percent,
    counted=counted,
    time=cells.time_text,
    missing=cells.MISSING,
    sections=SECTIONS,
    echarts=ECHARTS,
)
for name in templates.list_templates():
    templates.get_template(name)  # compiled now, so that no first visitor waits for it


def render(
    request: Request, template: str, status: int = 200, section: str | None = None, **values: Any
) -> HTMLResponse:
    """A page from a template of this package; `section` is the one of `SECTIONS` that it is the first page of."""
    airflow = request.scope["app_root_path"]
    addresses = {
        "base": request.scope["root_path"],
        "static": f"{request.scope['root_path']}/static/{STATIC_VERSION}",
        "airflow": airflow,
        "benchmark": f"{airflow}/dags/{BENCHMARK_DAG}",
    }
    return HTMLResponse(templates.get_template(template).render(section=section, **addresses, **values), status)


def refused(request: Request, error: HTTPException) -> HTMLResponse:
    """The page of an HTTP error; who is not logged in gets a link to do so, which leads back here."""
    here = quote(request.scope["path"]) + (f"?{request.url.query}" if request.url.query else "")
    login = get_auth_manager().get_url_login(next_url=here) if error.status_code == 401 else None
    return _error_page(request, error.status_code, error.detail, login)


def malformed(request: Request, error: RequestValidationError) -> HTMLResponse:
    """The page of an address whose parameters do not fit."""
    return _error_page(request, 400, "The address is not well formed.")


def failed(request: Request, error: AftershockError) -> HTMLResponse:
    """The page of an error of ours: 404 for what the user asked for, 500 for what is wrong here."""
    return _error_page(request, 404 if isinstance(error, BadInput) else 500, str(error))


def _error_page(request: Request, status: int, reason: str, login: str | None = None) -> HTMLResponse:
    return render(request, "error.html", status, status_code=status, reason=reason, login=login, links={})
