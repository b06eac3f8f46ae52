"""A headless Chromium, logged in to an Airflow through its login page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, sync_playwright

from aftershock.airflow import environment

CHROMIUM = shutil.which("chromium")
ARTIFACTS = Path(__file__).parents[2] / "artifacts"
PATIENCE_S = 90
OPTIONS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine: apt install chromium")


@contextmanager
def logged_in_browser(server: str) -> Iterator[BrowserContext]:
    """A browser in which the admin of the Airflow at this address has logged in."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=OPTIONS)
        context = browser.new_context(viewport={"width": 1440, "height": 1000}, accept_downloads=True)
        context.set_default_timeout(PATIENCE_S * 1000)
        page = context.new_page()
        page.goto(server)
        log_in(page)
        plugin_link(page).wait_for()
        page.close()
        yield context
        browser.close()


def log_in(page: Page) -> None:
    """Fill in Airflow's login page as the admin."""
    page.locator("input[name=username]").fill(environment.ADMIN)
    page.locator("input[name=password]").fill(environment.admin_password())
    page.get_by_role("button", name="Sign in").click()


def plugin_link(page: Page) -> Locator:
    """Our entry in Airflow's side bar. Its home also links to the tables' assets, whose names hold ours."""
    return page.get_by_role("link", name="Aftershock", exact=True)


def screenshot(page: Page, name: str, *, full_page: bool = False) -> None:
    ARTIFACTS.mkdir(exist_ok=True)
    page.screenshot(path=ARTIFACTS / f"{name}.png", full_page=full_page)
