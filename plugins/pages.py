"""The app behind the pages: every route but that of styles, scripts and the icon asks Airflow's auth manager first."""

from __future__ import annotations

from fastapi import APIRouter, Depends, FastAPI, HTTPException
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException as StarletteHTTPException

from experiments.errors import AftershockError
from plugins import compare, gallery, live, matrix, rendering, runs, trends
from plugins.access import add_security_headers, may_read_results
from plugins.bodies import SmallBodies
from plugins.files import STATIC, send_static

router = APIRouter(dependencies=[Depends(may_read_results)], include_in_schema=False)
for part in (runs, compare, matrix, trends, gallery, live):
    router.include_router(part.router)
without_login = APIRouter(include_in_schema=False)  # what the page that asks for a login needs


def create_app() -> FastAPI:
    """The app that Airflow mounts; it publishes no schema and no interactive docs."""
    app = FastAPI(title="Aftershock", openapi_url=None, docs_url=None, redoc_url=None)
    app.include_router(without_login)
    app.include_router(router)
    app.add_middleware(SmallBodies)
    app.middleware("http")(add_security_headers)
    app.exception_handler(StarletteHTTPException)(rendering.refused)
    app.exception_handler(RequestValidationError)(rendering.malformed)
    app.exception_handler(AftershockError)(rendering.failed)
    return app


@without_login.get("/static/{version}/{name:path}")
def static(version: str, name: str) -> Response:
    """A file of the pages' own, the same for everybody: style, script or icon; 404 for any other name."""
    if name not in STATIC:
        raise HTTPException(404, "There is no such file.")
    return send_static(name, version)


@router.get("/{rest:path}")
def nothing_here(rest: str) -> None:
    """Last: so that an address that does not exist asks for a login too."""
    raise HTTPException(404, "There is no such page.")
