"""A fresh installation in a browser: it shows the results that come with the repository. Draws pictures of the tour."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from results.runs import published
from results.views import gallery
from tests.e2e.airflow_server import api_server, home_of_its_own
from tests.e2e.browser import ARTIFACTS, PATIENCE_S, logged_in_browser, needs_chromium, screenshot

pytestmark = [needs_chromium, pytest.mark.extended]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an Airflow API server over a home without any result."""
    home = tmp_path_factory.mktemp("fresh")
    with home_of_its_own(home), pytest.MonkeyPatch.context() as patch:
        patch.delenv("AFTERSHOCK_PUBLISHED", raising=False)  # other tests see nothing that is published
        with api_server(home) as address:
            yield address


@pytest.fixture(scope="module")
def logged_in(server: str) -> Iterator[BrowserContext]:
    with logged_in_browser(server) as context:
        yield context


@pytest.fixture
def page(logged_in: BrowserContext) -> Iterator[Page]:
    expect.set_options(timeout=PATIENCE_S * 1000)
    page = logged_in.new_page()
    page.emulate_media(color_scheme="light")
    yield page
    page.close()


def run_ids() -> list[str]:
    """Of the published runs."""
    return sorted(about.parent.name for about in (published.folder() / "runs").glob(f"*/{published.ABOUT}"))


def open_page(page: Page, server: str, path: str) -> None:
    """Open one of our pages, and wait for its charts."""
    page.goto(f"{server}/aftershock/{path}")
    expect(page.locator("[data-chart]:not([data-drawn-ms])")).to_have_count(0)


def test_the_list_has_every_published_run(page: Page, server: str):
    """A busy machine does not read all of them at the first look."""
    open_page(page, server, "")
    for _ in run_ids():
        if (again := page.get_by_role("link", name="Look again")).count():
            again.click()
    expect(page.get_by_text("not read yet")).to_have_count(0)
    for run_id in run_ids():
        expect(page.get_by_role("row", name=run_id)).to_contain_text("published")
    screenshot(page, "published-runs-light", full_page=True)


def run_of(example: str) -> str:
    """The published run of an example."""
    folder = published.folder() / "runs"
    return next(id for id in run_ids() if published.read(folder / id, id).example == example)


def test_a_published_run_has_its_charts_and_tables(page: Page, server: str):
    run_id = run_of("wordcount")
    open_page(page, server, f"runs/{run_id}")
    for image in page.locator("img").all():
        assert image.evaluate("image => image.decode().then(() => image.naturalWidth)") > 0
    expect(page.get_by_role("heading", level=1)).to_contain_text(run_id)
    assert page.locator("[data-chart]").count() >= 3
    screenshot(page, "published-run-light", full_page=True)
    page.locator("section[aria-labelledby=charts]").screenshot(path=ARTIFACTS / "published-run-charts-light.png")


def test_published_runs_are_compared(page: Page, server: str):
    """A pair of the first paper's measured table: the same faults, at the default checkpoint interval and at T*."""
    pair = [f"utilization-every54s-depth3-{interval}-" for interval in ("default", "best")]
    runs = [next(run_id for run_id in run_ids() if run_id.startswith(begin)) for begin in pair]
    open_page(page, server, "compare?" + "&".join(f"run={each}" for each in runs))
    for each in runs:
        expect(page.get_by_role("link", name=each).first).to_be_visible()
    screenshot(page, "published-compare-light", full_page=True)


def test_the_gallery_has_every_published_figure(page: Page, server: str):
    open_page(page, server, "reproductions")
    figures = [each for each in gallery.all_reproduced() if each.is_published]
    assert figures
    for each in figures:
        paper = page.locator(f"section[aria-labelledby=paper-{each.paper}]")
        expect(paper.get_by_role("heading", name=each.figure, exact=True)).to_be_visible()
