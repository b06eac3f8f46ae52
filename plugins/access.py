"""Who may see the pages, and what a browser may do with them."""

from collections.abc import Awaitable, Callable

from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.core_api.security import requires_access_dag
from fastapi import Request, Response

BENCHMARK_DAG = "benchmark"

# What the pages show are results of this DAG's runs, so the permission to read those is the one that is asked for.
# The request carries the user as for Airflow's own API: the session cookie, or a bearer token.
may_read_results = requires_access_dag("GET", DagAccessEntity.RUN, param_dag_id=BENCHMARK_DAG)

_SAME_SITE_FRAME = "frame-ancestors 'self'; base-uri 'none'"
PAGE_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    + _SAME_SITE_FRAME
)
# Reports, Data Docs and plots are written by other programs: they may style themselves, but run nothing.
DOCUMENT_POLICY = (
    "default-src 'none'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; "
    "form-action 'none'; " + _SAME_SITE_FRAME
)


async def add_security_headers(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
    """Give every response the headers that keep it in this origin, unsniffed and out of caches."""
    response = await call_next(request)
    response.headers.setdefault("Content-Security-Policy", PAGE_POLICY)
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "same-origin"
    response.headers.setdefault("Cache-Control", "private, no-store")
    return response
