"""Every route, method and role: what it answers is written down here, and a route without its row fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from airflow.plugins_manager import AirflowPlugin
from fastapi import FastAPI
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from starlette.routing import BaseRoute

from plugins.aftershock_plugin import AftershockPlugin
from plugins.pages import create_app
from tests.e2e.example_run import addresses
from tests.unit.testbed.campaigns import first_and_rest

METHODS = ("GET", "POST", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE")
ROLES = ("anonymous", None, "VIEWER", "USER", "OP", "ADMIN")  # None is a user with no role
OPEN = (200,) * len(ROLES)
READ = (401, 403, 200, 200, 200, 200)
MOVED = (401, 403, 303, 303, 303, 303)
NOT_FOUND = (401, 403, 404, 404, 404, 404)
CHANGE = (401, 403, 403, 200, 200, 200)
NO_FORM = (401, 403, 403, 403, 403, 403)  # a form that is not from the page is refused for every role
NOT_ALLOWED = (405,) * len(ROLES)

# What each route answers to each role, by method; every other method is NOT_ALLOWED.
TABLE: dict[str, dict[str, tuple[int, ...]]] = {
    "/": {"GET": READ},
    "/runs/{run_id}": {"GET": READ},
    "/runs/{run_id}/charts.json": {"GET": READ},
    "/runs/{run_id}/report.html": {"GET": READ},
    "/runs/{run_id}/plots/{name:path}": {"GET": READ},
    "/runs/{run_id}/checks/{name:path}": {"GET": READ},
    "/runs/{run_id}/tables/{name}.csv": {"GET": READ},
    "/runs/{run_id}/tables/{name}.parquet": {"GET": READ},
    "/compare": {"GET": READ},
    "/compare.json": {"GET": READ},
    "/matrix": {"GET": READ},
    "/matrix.json": {"GET": READ},
    "/matrix.csv": {"GET": READ},
    "/matrix.svg": {"GET": READ},
    "/history": {"GET": READ},
    "/history.json": {"GET": READ},
    "/regressions": {"GET": READ},
    "/regressions/{regression_id}": {"GET": READ},
    "/reproductions": {"GET": READ},
    "/reproductions/{paper}/{figure}.{kind}": {"GET": READ},
    "/live": {"GET": READ},
    "/live/{run_id}": {"GET": READ},
    "/live/{run_id}/state.json": {"GET": READ},
    "/live/{run_id}/abort": {"GET": CHANGE, "POST": NO_FORM},
    "/dag-runs/{dag_run}": {"GET": MOVED},
    "/static/{version}/{name:path}": {"GET": OPEN},
    "/{rest:path}": {"GET": NOT_FOUND},
}


def _all(routes: list[BaseRoute]) -> Iterator[BaseRoute]:
    for route in routes:
        yield route
        yield from _all(getattr(route, "routes", None) or [])


def _without_a_row(app: FastAPI) -> list[str]:
    return [
        getattr(route, "path", repr(route))
        for route in _all(app.routes)
        if not isinstance(route, APIRoute)
        or route.path not in TABLE
        or not set(route.methods) <= set(TABLE[route.path])
    ]


def test_every_route_of_the_app_has_its_row():
    app = create_app()
    assert _without_a_row(app) == []
    assert {route.path for route in _all(app.routes)} == set(TABLE)


@pytest.mark.parametrize("methods", [["GET"], ["DELETE"]])
def test_a_route_that_is_added_is_noticed(methods: list[str]):
    app = create_app()
    app.add_api_route("/new" if methods == ["GET"] else "/live", lambda: "", methods=methods)
    assert _without_a_row(app) != []
    app = create_app()
    app.mount("/more", FastAPI(openapi_url=None, docs_url=None, redoc_url=None))
    assert _without_a_row(app) == ["/more"]


def test_no_route_has_fastapi_read_a_body_before_the_user_is_let_in():
    assert [route.path for route in create_app().routes if route.body_field is not None] == []


def test_the_plugin_adds_the_app_two_links_and_a_listener_and_nothing_else():
    plugin = AftershockPlugin()
    assert [each["url_prefix"] for each in plugin.fastapi_apps] == ["/aftershock"]
    assert all(each["href"].startswith("aftershock/") for each in plugin.external_views)
    told = {name for name in vars(AftershockPlugin) if not name.startswith("_")}
    assert told == {"name", "external_views", "listeners", "fastapi_apps"}
    assert told <= set(dir(AirflowPlugin))


@pytest.mark.usefixtures("one_of_each")
@pytest.mark.parametrize("methods", first_and_rest(METHODS, 3))
@pytest.mark.parametrize("path", TABLE)
def test_each_role_gets_what_the_table_says(
    api_server: FastAPI, token: Callable[..., str], path: str, methods: tuple[str, ...]
):
    address = addresses("one", "two")[path]
    for at, role in enumerate(ROLES):
        cookies = {} if role == "anonymous" else {"_token": token(role=role)}
        with TestClient(api_server, cookies=cookies, follow_redirects=False) as client:
            answers = {method: client.request(method, address) for method in methods}
        found = {method: answer.status_code for method, answer in answers.items()}
        assert found == {method: TABLE[path].get(method, NOT_ALLOWED)[at] for method in methods}, role
        refused = [answer.text for answer in answers.values() if answer.status_code in (401, 403)]
        assert not any("worker-1" in text for text in refused), f"{role} is told of a host"
