"""Who may see the pages, and what a browser may do with them."""

import hashlib
import hmac
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag
from airflow.configuration import conf
from fastapi import HTTPException, Request, Response

from plugins.bodies import form_field

BENCHMARK_DAG = "benchmark"

# What the pages show are results of this DAG's runs, so the permission to read those is the one that is asked for.
# The request carries the user as for Airflow's own API: the session cookie, or a bearer token.
may_read_results = requires_access_dag("GET", DagAccessEntity.RUN, param_dag_id=BENCHMARK_DAG)

# To abort a run is to change its DAG run.
may_abort = requires_access_dag("PUT", DagAccessEntity.RUN, param_dag_id=BENCHMARK_DAG)


def can_abort(user: BaseUser) -> bool:
    """Whether to offer the abort switch; `may_abort` is what guards it."""
    details = DagDetails(id=BENCHMARK_DAG)
    manager = get_auth_manager()
    return manager.is_authorized_dag(method="PUT", access_entity=DagAccessEntity.RUN, details=details, user=user)


def form_token(user: BaseUser, run_id: str) -> str:
    """What only a page of ours, shown to this user, can put into the form that aborts this run."""
    text = f"abort {user.get_id()} {run_id}".encode()
    return hmac.new(conf.get_mandatory_value("api", "secret_key").encode(), text, hashlib.sha256).hexdigest()


async def from_our_form(request: Request, user: GetUserDep, run_id: str) -> None:
    """Refuse a form that another site sent, or made the browser send.

    It reads the form itself: FastAPI would read what a parameter asks for before any other dependency has its say.
    """
    token = await form_field(request, "token")
    origin = request.headers.get("Origin")
    foreign = origin is not None and urlsplit(origin).netloc != request.headers.get("Host")
    if foreign or not hmac.compare_digest(token.encode(), form_token(user, run_id).encode()):
        raise HTTPException(403, "This form did not come from the page of the run. Open that page and try again.")


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
