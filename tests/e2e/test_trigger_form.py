"""The trigger form of the DAG `benchmark` in a browser: what it offers, what it shows, and what it sends."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from experiments import spec
from results.runs import store
from tests.e2e.airflow_server import served_airflow, wait
from tests.e2e.browser import PATIENCE_S, logged_in_browser, needs_chromium, screenshot

pytestmark = [pytest.mark.e2e, needs_chromium]


@pytest.mark.extended
def test_a_run_starts_from_a_chosen_experiment_with_what_was_filled_in(home):
    """The run itself is refused by its first step, before anything starts: its machines are not there."""
    mine = home / "experiments" / "rain.yaml"
    mine.parent.mkdir()
    mine.write_text("# Giants under rain.\nname: rain\ncluster: {workers: 200, worker_memory_mb: 262144}\n")
    with served_airflow(home) as served, logged_in_browser(served.address) as browser:
        served.switch_on("benchmark")
        page = browser.new_page()
        page.goto(f"{served.address}/dags/benchmark")
        page.get_by_role("button", name="Trigger").first.click()
        choice = page.locator("#element_experiment")
        choice.wait_for()
        screenshot(page, "trigger-form")
        choice.click()
        for name in (*spec.available(), "rain.yaml, own"):
            label = re.compile(rf"^{re.escape(name)} \(about \d+ min, \d+ s of them measured\): ")
            expect(page.get_by_role("option", name=label), name).to_have_count(1, timeout=PATIENCE_S * 1000)
        screenshot(page, "trigger-form-choice")
        page.get_by_role("option", name=re.compile("^rain.yaml, own .*: Giants under rain")).click()
        page.locator("input[name='element_host_fault_rate']").fill("0.02")
        dialog = page.get_by_role("dialog")
        shown = []
        for section, field in (("engine", "chaining"), ("workload", "corpus")):
            page.get_by_role("button", name=section, exact=True).click()  # which closes the one that is open
            page.locator(f"[id='element_{section}.{field}']").wait_for()
            boxes = dialog.locator("input, textarea").all()
            shown += [*dialog.inner_text().split("\n"), *(box.input_value() for box in boxes)]
        screenshot(page, "trigger-form-sections", full_page=True)
        assert not [text for text in shown if text.strip() == "null"]
        assert "as in the experiment" in dialog.inner_text()
        dialog.get_by_role("button", name="Trigger").click()
        (run,) = wait("the DAG run", lambda: served.call("/api/v2/dags/benchmark/dagRuns")["dag_runs"])
        assert (run["conf"]["experiment"], run["conf"]["host_fault_rate"]) == (str(mine), 0.02)
        assert served.state_at_its_end("benchmark", run["dag_run_id"]) == "failed"
    assert not list(store.home().glob("runs/*"))
