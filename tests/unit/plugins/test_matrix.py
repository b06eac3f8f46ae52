"""The page of protections side by side."""

from __future__ import annotations

import csv
import io
import re
import threading

import pytest
from fastapi.testclient import TestClient

from experiments.matrix import MATRICES
from plugins import known_runs
from tests.unit.plugins.test_pages import get
from tests.unit.results.protection.runs import KILLS, QUERY, write_protections, write_run


def test_the_list_of_runs_leads_to_table_winners_chart_and_runs(browser: TestClient):
    write_protections()
    assert "/aftershock/matrix" in get(browser, "/aftershock/").all("href")
    page = get(browser, "/aftershock/matrix")
    words = " ".join(page.words.split())
    for told in ("900 records/s (900 to 900)", "20 %", "10 s (10 to 10)", "From 0 to 81.8 failures per hour"):
        assert told in words
    assert page.all("data-chart") == ["rates"]
    own = {link for link in page.all("href") + page.all("data-source") if link.startswith("/aftershock/")}
    assert {f"/aftershock/runs/{name}-{number}" for name in ("fast", "safe") for number in range(3)} <= own
    assert {link: browser.get(link).status_code for link in own} == dict.fromkeys(own, 200)


def test_chart_and_csv_say_what_the_table_says(browser: TestClient):
    write_protections()
    page = get(browser, "/aftershock/matrix")
    (source,) = page.all("data-source")
    drawn = browser.get(source).json()
    assert drawn["costs"] is None
    assert [each["value"][0] for each in drawn["rates"]["curves"]] == pytest.approx([900.0, 800.0])
    assert drawn["rates"]["changes_per_hour"] == pytest.approx([3600 / 44])
    (link,) = [each for each in page.all("href") if "matrix.csv" in each]
    answer = browser.get(link)
    assert re.fullmatch(r'attachment; filename="matrix-[0-9a-f]{12}.csv"', answer.headers["Content-Disposition"])
    assert [float(row["cost_s"]) for row in csv.DictReader(io.StringIO(answer.text))] == pytest.approx([10.0, 4.0])


def test_the_plot_is_beside_the_table_and_only_where_there_is_something_to_draw(browser: TestClient):
    write_run("quiet", engine=QUERY, useful_s=9.0, checkpoint_s=1.0)
    assert [each for each in get(browser, "/aftershock/matrix").all("href") if "matrix.svg" in each] == []
    answer = browser.get("/aftershock/matrix.svg")
    assert answer.status_code == 404
    assert "nothing to draw" in answer.text
    write_protections()
    (link,) = [each for each in get(browser, "/aftershock/matrix").all("href") if "matrix.svg" in each]
    answer = browser.get(link)
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "image/svg+xml")
    assert re.fullmatch(r'inline; filename="matrix-[0-9a-f]{12}.svg"', answer.headers["Content-Disposition"])
    assert "style-src 'self' 'unsafe-inline'" in answer.headers["Content-Security-Policy"]
    assert "<svg " in answer.text


def test_under_a_set_rate_the_page_shows_utilization(browser: TestClient):
    write_protections(fields={"load": {"mode": "rate", "rate": 3000}, "faults": KILLS})
    page = get(browser, "/aftershock/matrix")
    assert "has the highest utilization" in page.words
    assert "Utilization over failures per hour" in page.words
    drawn = browser.get(page.all("data-source")[0]).json()["rates"]
    assert (drawn["axis"], drawn["unit"]) == ("utilization", "")
    assert [curve["value"][0] for curve in drawn["curves"]] == pytest.approx([0.9, 0.8])


def test_too_few_runs_have_no_winner_and_show_costs(browser: TestClient):
    write_protections(runs=2)
    page = get(browser, "/aftershock/matrix")
    assert "No winner: fewer than two protections have three runs" in page.words
    assert page.all("data-chart") == ["costs"]
    drawn = browser.get(page.all("data-source")[0]).json()
    assert (drawn["rates"], drawn["costs"]["value"]) == (None, pytest.approx([10.0, 4.0]))


def test_each_setting_has_its_address_and_one_that_is_not_there_shows_none(browser: TestClient):
    write_protections()
    write_run(
        "deep", engine=QUERY, useful_s=9.0, checkpoint_s=1.0, fields={"workload": {"name": "wordcount", "depth": 2}}
    )
    first = get(browser, "/aftershock/matrix")
    (other,) = [
        link for link in first.all("href") if "setting=" in link and "failures=" in link and link.endswith("failures=")
    ]
    words = get(browser, other).words
    assert "wordcount depth 2" in words
    assert "deep" in words
    assert "fast-0" not in words
    absent = get(browser, "/aftershock/matrix?setting=absent")
    assert "fast-0" not in absent.words
    assert browser.get("/aftershock/matrix.json?setting=absent").json() == {"rates": None, "costs": None}
    assert browser.get("/aftershock/matrix.csv?setting=absent").text == ""


def test_without_runs_the_page_says_what_to_do(browser: TestClient):
    page = get(browser, "/aftershock/matrix")
    words = " ".join(page.words.split())
    assert "No finished run to compare yet" in words
    assert "DAG nightly with matrix: protections, or run one experiment under two settings" in words
    assert any(link.endswith("/dags/nightly") for link in page.all("href"))
    assert (MATRICES / "protections.yaml").exists()
    assert browser.get("/aftershock/matrix.svg").status_code == 404


def test_runs_that_are_not_read_yet_are_not_said_to_be_damaged_or_not_there(
    browser: TestClient, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(known_runs, "READING_S", 0.0)
    write_protections()
    words = " ".join(get(browser, "/aftershock/matrix").words.split())
    assert "Not read yet, and so missing here: 6 runs." in words
    assert "unreadable" not in words
    assert "No finished run to compare yet" not in words
    for reader in [thread for thread in threading.enumerate() if thread.name == known_runs.READER]:
        reader.join()
    words = get(browser, "/aftershock/matrix").words
    assert "Not read yet" not in words
    assert "900 records/s" in words


def test_what_is_left_out_is_told_without_a_path_of_the_repository(browser: TestClient):
    write_protections()
    write_run("bad", engine=QUERY, useful_s=90.0, checkpoint_s=10.0, costs_s=(10.0,), wrong=3)
    words = " ".join(get(browser, "/aftershock/matrix").words.split())
    assert "Left out: 1 inexact (results were lost or wrong)." in words
    assert ".md" not in words


def test_the_page_is_a_section_of_its_own(browser: TestClient):
    page = get(browser, "/aftershock/matrix")
    current = [attrs["href"] for tag, attrs in page.tags if tag == "a" and attrs.get("aria-current") == "page"]
    assert current == ["/aftershock/matrix"]


def test_a_single_run_with_a_single_fault_is_told_in_the_singular(browser: TestClient):
    write_run("alone", engine=QUERY, useful_s=90.0, checkpoint_s=10.0, costs_s=(10.0,))
    words = " ".join(get(browser, "/aftershock/matrix").words.split())
    assert re.search(r"1 run alone : 1 fault(?!s)", words)
