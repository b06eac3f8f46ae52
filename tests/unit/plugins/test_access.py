"""Logins and tokens; every response has security headers. What each role gets is in `test_routes_by_role`."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from fastapi.testclient import TestClient

from plugins.files import ECHARTS, STATIC_VERSION
from tests.e2e.example_run import addresses

pytestmark = pytest.mark.usefixtures("one_of_each")
ADDRESS = "/aftershock/runs/one"  # one dependency of the router guards all pages; to abort a run takes another one, too
ADDRESSES = addresses("one", "two")


def test_no_schema_and_no_interactive_docs(browser: TestClient):
    for name in ("docs", "redoc", "openapi.json"):
        assert browser.get(f"/aftershock/{name}").status_code == 404


def test_the_page_that_asks_for_a_login_has_its_style_and_script(anonymous: TestClient):
    page = anonymous.get("/aftershock/")
    assert page.status_code == 401
    needed = re.findall(r'(?:href|src)="([^"]*/static/[^"]*)"', page.text)
    assert {address.rsplit("/", 1)[-1] for address in needed} == {"aftershock.css", "frame.js"}
    assert {anonymous.get(address).status_code for address in needed} == {200}


@pytest.mark.parametrize("address", ["/aftershock/compare?run=one&run=two", "/aftershock/dag-runs/a+b%3A%20c"])
def test_who_logs_in_comes_back_to_the_same_address(anonymous: TestClient, address: str):
    (link,) = re.findall('href="([^"]*/login[^"]*)"', anonymous.get(address).text)
    (back,) = parse_qs(urlsplit(unescape(link)).query)["next"]
    assert unquote(back) == unquote(address)
    assert " " not in back


def test_a_made_up_token_is_refused(anonymous: TestClient):
    assert anonymous.get(ADDRESS, headers={"Authorization": "Bearer made-up"}).status_code == 403
    assert anonymous.get(ADDRESS, headers={"Cookie": "_token=made-up"}).status_code in (401, 403)


def test_an_expired_token_is_refused(anonymous: TestClient, token: Callable[..., str]):
    expired = token(expires_in_s=-3600)
    assert anonymous.get(ADDRESS, headers={"Authorization": f"Bearer {expired}"}).status_code == 401
    assert anonymous.get(ADDRESS, headers={"Cookie": f"_token={expired}"}).status_code == 401


def test_a_bearer_token_works_as_for_airflows_api(anonymous: TestClient, token: Callable[..., str]):
    response = anonymous.get(ADDRESS, headers={"Authorization": f"Bearer {token()}"})
    assert response.status_code == 200
    response = anonymous.get(ADDRESS, headers={"Authorization": f"Bearer {token(role=None)}"})
    assert response.status_code == 403


@pytest.mark.extended
@pytest.mark.parametrize("address", ADDRESSES.values(), ids=ADDRESSES)
def test_security_headers(browser: TestClient, anonymous: TestClient, address: str):
    for client in (browser, anonymous):
        headers = client.get(address).headers
        policy = headers["Content-Security-Policy"].split("; ")
        assert policy[0] == "default-src 'none'"
        assert "frame-ancestors 'self'" in policy
        assert not any("script-src" in rule and "unsafe" in rule for rule in policy)
        assert "http" not in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "private, no-store"


@pytest.mark.parametrize("name", [f"vendor/{ECHARTS}", "chart.js"])
def test_only_what_has_its_version_in_its_address_is_kept_by_browsers(browser: TestClient, name: str):
    assert f"/static/{STATIC_VERSION}/aftershock.css" in browser.get("/aftershock/").text
    kept, other = (browser.get(f"/aftershock/static/{version}/{name}") for version in (STATIC_VERSION, "older"))
    assert "immutable" in kept.headers["Cache-Control"]
    assert other.headers["Cache-Control"] == "private, no-store"
    assert other.content == kept.content
