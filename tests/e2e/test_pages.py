"""The pages in a browser: a real Airflow API server, a real login, Chromium; and every route over bare HTTP."""

from __future__ import annotations

import http.client
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import BrowserContext, Frame, FrameLocator, Page, Route, expect

from aftershock.airflow import environment
from aftershock.airflow.greeting import greet
from experiments import spec
from plugins.compare import MOST_COMPARED
from results.checks import validate
from results.summary import index
from results.views.report import write_report
from tests.e2e.airflow_server import api_server, home_of_its_own
from tests.e2e.browser import PATIENCE_S, log_in, logged_in_browser, needs_chromium, plugin_link, screenshot
from tests.e2e.example_run import (
    DAG_RUN,
    LEVELS,
    LIVE,
    REGRESSION,
    START_NS,
    UNJUDGED,
    WIDEST,
    addresses,
    write_everything,
    write_failed_run,
    write_run,
    write_widest_run,
)
from tests.e2e.web import request


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an Airflow API server of its own, over a store with a run that was judged, and a failed one."""
    home = tmp_path_factory.mktemp("pages")
    with home_of_its_own(home):
        run = write_run("wordcount-one")
        validate(run, spec.load())
        write_report(run, spec.load())
        write_failed_run("wordcount-two", "the broker is gone; see raw/broker.log", started_ns=START_NS - 10**12)
        write_widest_run()
        write_everything()
        index.rows()
        with api_server(home) as address:
            yield address


@pytest.fixture(scope="module")
def logged_in(server: str) -> Iterator[BrowserContext]:
    """A browser in which the admin has logged in through Airflow's login page."""
    with logged_in_browser(server) as context:
        yield context


@pytest.fixture
def page(logged_in: BrowserContext) -> Iterator[Page]:
    """A window that keeps a list of every request that it makes, and one of the browser's complaints."""
    expect.set_options(timeout=PATIENCE_S * 1000)
    page = logged_in.new_page()
    page.requests, page.complaints = [], []
    page.on("request", lambda sent: page.requests.append(sent.url))
    page.on("console", lambda line: page.complaints.append(line.text) if line.type == "error" else None)
    yield page
    page.close()


def pages_frame(page: Page) -> FrameLocator:
    return page.frame_locator("iframe[title=Aftershock]")


def open_run(page: Page, server: str, run_id: str) -> FrameLocator:
    page.goto(f"{server}/plugin/aftershock/aftershock/runs/{run_id}")
    frame = pages_frame(page)
    expect(frame.get_by_role("heading", level=1)).to_contain_text(run_id)
    return frame


def assert_nothing_blocked_or_from_outside(page: Page) -> None:
    assert {urlsplit(url).hostname for url in page.requests if url.startswith("http")} == {"127.0.0.1"}
    assert not [line for line in page.complaints if "Content Security Policy" in line]


@needs_chromium
def test_from_the_navigation_to_a_run(page: Page, server: str):
    page.goto(server)
    plugin_link(page).click()
    frame = pages_frame(page)
    expect(frame.get_by_role("row")).to_have_count(4 + len(LEVELS) + UNJUDGED)
    expect(frame.get_by_role("row").nth(1)).to_contain_text("wordcount-one")
    screenshot(page, "runs")
    frame.get_by_label("Verdict").select_option("unknown")
    frame.get_by_role("button", name="Show").click()
    expect(frame.get_by_role("row")).to_have_count(2 + UNJUDGED)
    frame.get_by_role("link", name="Show all").click()
    frame.get_by_role("link", name="wordcount-one", exact=True).click()
    expect(frame.get_by_role("heading", level=1)).to_contain_text("wordcount-one")
    expect(frame.get_by_role("row", name="utilization.long_run")).to_contain_text("unknown")
    expect(page).to_have_url(f"{server}/plugin/aftershock/aftershock/runs/wordcount-one")
    expect(frame.locator("[data-drawn-ms]")).to_have_count(5)
    for image in frame.locator("img").all():
        assert image.evaluate("image => image.decode().then(() => image.naturalWidth)") > 0
    screenshot(page, "run")
    assert_nothing_blocked_or_from_outside(page)


@needs_chromium
def test_who_opens_the_address_of_the_greeting_and_logs_in_arrives_at_the_results(
    logged_in: BrowserContext, server: str, capsys: pytest.CaptureFixture[str]
):
    greet(server)
    address = capsys.readouterr().out.split()[1]
    expect.set_options(timeout=PATIENCE_S * 1000)
    with logged_in.browser.new_context() as without_login:
        without_login.set_default_timeout(PATIENCE_S * 1000)
        page = without_login.new_page()
        page.goto(address)
        log_in(page)
        expect(pages_frame(page).get_by_role("heading", level=1)).to_have_text("Runs")
        expect(page).to_have_url(address)


@needs_chromium
def test_tables_open_by_keyboard_and_download(page: Page, server: str):
    frame = open_run(page, server, "wordcount-one")
    frame.locator("#table-faults summary").press("Enter")
    expect(frame.get_by_role("cell", name="worker-3")).to_be_visible()
    with page.expect_download() as download:
        frame.locator("#table-faults").get_by_role("link", name="CSV").click()
    assert download.value.suggested_filename == "wordcount-one-faults.csv"
    assert Path(download.value.path()).read_text().startswith("fault,kind,targets,cause,planned_ns")
    frame.locator("#table-faults").scroll_into_view_if_needed()
    screenshot(page, "run-table")


@needs_chromium
def test_report_and_data_docs_open_in_the_frame(page: Page, server: str):
    frame = open_run(page, server, "wordcount-one")
    frame.get_by_role("link", name="Report", exact=True).click()
    expect(frame.get_by_role("img", name="Latency")).to_be_visible()
    screenshot(page, "report")
    page.go_back()
    frame.get_by_role("link", name="Data Docs", exact=True).click()
    screenshot(page, "data-docs")
    frame.get_by_role("link", name="faults.on_time").first.click()
    expect(frame.get_by_text("values must never be null.").first).to_be_visible()
    assert_nothing_blocked_or_from_outside(page)


@needs_chromium
def test_dag_run_opens_in_airflow_itself(page: Page, server: str):
    frame = open_run(page, server, "wordcount-one")
    frame.get_by_role("link", name="DAG run", exact=True).click()
    page.wait_for_url(lambda url: url.startswith(f"{server}/dags/benchmark/runs/"))
    assert DAG_RUN in page.url.replace("%3A", ":").replace("%2B", "+")
    expect(page.locator("iframe[title=Aftershock]")).to_have_count(0)


@needs_chromium
def test_a_failed_run_shows_its_error(page: Page, server: str):
    frame = open_run(page, server, "wordcount-two")
    expect(frame.get_by_role("alert")).to_contain_text("the broker is gone")
    screenshot(page, "run-failed")


@needs_chromium
@pytest.mark.parametrize(("theme", "brightness"), [("light", 255), ("dark", 11)])
def test_pages_follow_airflows_theme(page: Page, server: str, theme: str, brightness: int):
    page.goto(server)
    page.evaluate("theme => localStorage.setItem('theme', theme)", theme)
    frame = open_run(page, server, "wordcount-one")
    colour = frame.locator("body").evaluate("body => getComputedStyle(body).backgroundColor")
    assert colour.startswith(f"rgb({brightness}, ")
    screenshot(page, f"run-{theme}")
    page.evaluate("localStorage.removeItem('theme')")


PAGES = {
    "runs": "",
    "run": "runs/wordcount-one",
    "run-failed": "runs/wordcount-two",
    "compare": "compare?run=night-00&run=night-15",
    "matrix": "matrix",
    "history": "history",
    "regressions": "regressions",
    "regression": f"regressions/{REGRESSION}",
    "reproductions": "reproductions",
    "live": "live",
    "live-run": f"live/{LIVE}",
    "abort": f"live/{LIVE}/abort",
}
WITH_CHARTS = {"run", "compare", "matrix", "history"}
NIGHTS = [f"night-{number:02d}" for number in range(MOST_COMPARED - 1)]
AXE = next((Path(__file__).parent / "vendor").glob("axe-*.min.js"))


@needs_chromium
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_accessible_in_both_themes(page: Page, server: str, name: str, theme: str):
    page.emulate_media(color_scheme=theme)
    page.goto(f"{server}/aftershock/{PAGES[name]}")
    expect(page.locator("[data-chart]:not([data-drawn-ms])")).to_have_count(0)
    screenshot(page, f"{name}-{theme}", full_page=True)
    page.evaluate(AXE.read_text(encoding="utf-8"))  # by the debugger, which the policy of the page does not bind
    violations = page.evaluate("axe.run().then((found) => found.violations)")
    assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in violations] == []
    assert_nothing_blocked_or_from_outside(page)


@needs_chromium
def test_the_script_of_a_live_run_writes_its_steps_as_the_server_did(page: Page, server: str):
    def steps() -> list[str]:
        return [re.sub(r"\d+", "N", text) for text in page.locator("#steps li").all_inner_texts()]

    problem = page.locator("[data-live=problem]")
    page.route("**/state.json", lambda route: route.abort())
    page.goto(f"{server}/aftershock/live/{LIVE}")
    expect(problem).not_to_be_empty()
    written = steps()
    assert "observe: measure while hosts fail (N s of about N s)" in written
    page.unroute("**/state.json")
    expect(problem).to_be_empty()
    assert steps() == written


@needs_chromium
def test_a_chart_is_read_by_keyboard(page: Page, server: str):
    page.goto(f"{server}/aftershock/history")
    chart = page.locator("[data-chart=history][data-drawn-ms]")
    chart.press("ArrowRight")
    spoken = page.locator("figure [aria-live]")
    expect(spoken).to_contain_text("night-00")
    chart.press("End")
    expect(spoken).to_contain_text("night-15")
    chart.press("Enter")
    expect(page).to_have_url(f"{server}/aftershock/runs/night-15")


@needs_chromium
@pytest.mark.parametrize("chart", ["timeline", "useful_time"])
def test_only_a_fault_that_took_effect_has_a_line(page: Page, server: str, chart: str):
    def with_a_withheld_fault(route: Route) -> None:
        drawn = route.fetch().json()
        drawn[chart]["faults"][1]["outcome"] = "withheld"
        route.fulfill(json=drawn)

    page.route("**/charts.json", with_a_withheld_fault)
    page.goto(f"{server}/aftershock/runs/wordcount-one")
    lines = page.locator(f"[data-chart={chart}][data-drawn-ms]").evaluate(
        "(element) => echarts.getInstanceByDom(element).getOption().series[0].markLine.data.map(({ xAxis }) => xAxis)"
    )
    assert lines == pytest.approx([31.004, 170.254])


# The font sizes of the labels and names of every axis of every chart, in pixels.
FONT_SIZES = """() => [...document.querySelectorAll("[data-drawn-ms]")].flatMap((element) => {
    const { xAxis, yAxis } = echarts.getInstanceByDom(element).getOption();
    const shown = [...xAxis, ...yAxis].filter(({ show }) => show);
    return shown.flatMap(({ axisLabel, nameTextStyle }) => [axisLabel.fontSize, nameTextStyle.fontSize]);
})"""
SMALLEST_PX = 11


@needs_chromium
@pytest.mark.parametrize("name", PAGES)
def test_a_narrow_screen_needs_no_sideways_scrolling_and_can_be_read(page: Page, server: str, name: str):
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto(f"{server}/aftershock/{PAGES[name]}")
    expect(page.locator("[data-chart]:not([data-drawn-ms])")).to_have_count(0)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    screenshot(page, f"narrow-{name}")
    sizes = page.evaluate(FONT_SIZES)
    assert bool(sizes) == (name in WITH_CHARTS)
    assert [size for size in sizes if size < SMALLEST_PX] == []


WIDE_PAGES = PAGES | {
    "run-widest": f"runs/{WIDEST}",
    "run-around": f"runs/{WIDEST}?table=faults&second=100",
    "compare-most": "compare?" + "&".join(f"run={name}" for name in (WIDEST, *NIGHTS)),
    "report": "runs/wordcount-one/report.html",
    "error": "nothing/here",
}
# Unfolds what is folded, and names everything with a horizontal scroll bar: the document, or a box within it.
SIDEWAYS = """() => {
    document.querySelectorAll("details").forEach((folded) => { folded.open = true; });
    const scrolls = (box) => box === document.documentElement || /auto|scroll/.test(getComputedStyle(box).overflowX);
    return [...document.querySelectorAll("*")]
        .filter((box) => box.scrollWidth > box.clientWidth && scrolls(box))
        .map((box) => `${box.ariaLabel ?? box.tagName}: ${box.scrollWidth} > ${box.clientWidth} pixels`);
}"""


@pytest.fixture(scope="module")
def framed(logged_in: BrowserContext, server: str) -> Iterator[Frame]:
    """The frame of the pages in Airflow's window, on a screen of 1,440 by 900 pixels."""
    page = logged_in.new_page()
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"{server}/plugin/aftershock")
    expect(pages_frame(page).get_by_role("heading", level=1)).to_have_text("Runs")
    frame = page.locator("iframe[title=Aftershock]").element_handle().content_frame()
    assert frame is not None
    yield frame
    page.close()


@needs_chromium
@pytest.mark.parametrize("name", WIDE_PAGES)
def test_nothing_scrolls_sideways_in_airflows_frame(framed: Frame, server: str, name: str):
    framed.goto(f"{server}/aftershock/{WIDE_PAGES[name]}")
    expect(framed.locator("[data-chart]:not([data-drawn-ms])")).to_have_count(0)
    sideways = framed.evaluate(SIDEWAYS)
    screenshot(framed.page, f"wide-{name}")
    assert sideways == []
    assert framed.page.evaluate(SIDEWAYS) == []


ADDRESSES = list(addresses("wordcount-one", "wordcount-two").values())


@pytest.mark.parametrize("address", [each for each in ADDRESSES if "/static/" not in each])
def test_every_route_refuses_whoever_is_not_logged_in(server: str, address: str):
    status, text = request(server, address)
    assert status == 401
    assert "Log in to Airflow" in text
    assert "worker-1" not in text
    assert request(server, address, token="made-up")[0] == 403


@pytest.fixture(scope="module")
def token(server: str) -> str:
    """A bearer token for the password of the admin, from Airflow's own API."""
    connection = http.client.HTTPConnection(urlsplit(server).netloc, timeout=PATIENCE_S)
    form = f"username={environment.ADMIN}&password={environment.admin_password()}"
    connection.request("POST", "/auth/token", form, {"Content-Type": "application/x-www-form-urlencoded"})
    with connection.getresponse() as response:
        assert response.status == 201
        return response.read().decode().split('"access_token":"')[1].split('"')[0]


def test_a_token_opens_every_route(server: str, token: str):
    *existing, missing = [request(server, address, token)[0] for address in ADDRESSES]
    assert set(existing) <= {200, 303}
    assert missing == 404


@pytest.mark.parametrize("folder", ["plots", "checks", "tables"])
@pytest.mark.parametrize("name", ["../{}", "../../{}", "%2e%2e/{}", "..%2f{}", "/{}", "a/../../{}"])
def test_no_path_leads_out_of_a_run(server: str, token: str, folder: str, name: str):
    for file in ("status.json", "../wordcount-two/status.json", "../../../../../../../../etc/passwd"):
        status, text = request(server, f"/aftershock/runs/wordcount-one/{folder}/{name.format(file)}", token)
        assert status == 404
        assert "exit_code" not in text
        assert "root:" not in text
