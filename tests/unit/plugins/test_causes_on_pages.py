"""A failed prediction, and a regression, lead to the rows of the table where the run parts from what it should be."""

from __future__ import annotations

import re

import numpy as np
import pytest
from fastapi.testclient import TestClient

from results.regression import records
from results.runs import store
from tests.unit.results import synthetic
from tests.unit.results.test_restores import PASSIVE
from tests.unit.results.test_restores import table as restores

PARTED_S = 120


def stalls(rows):
    late = np.where(rows["second"] >= PARTED_S, 12.0, 0.0)
    return rows.assign(measured_s=rows["measured_s"] - late)


@pytest.fixture
def failed(browser: TestClient) -> store.Run:
    """A run whose useful time stalls, and which was judged to have missed its prediction."""
    run = synthetic.make_run(store.home() / "runs", run_id="stalled", changes={"useful_time": stalls})
    rows = [{"check": "utilization.predicted", "table": "predictions", "verdict": "fail", "observed": "0.6"},
            {"check": "ledger.values", "table": "ledger", "verdict": "fail", "observed": "none"}]  # fmt: skip
    names = ("check", "table", "verdict", "observed", "expected", "detail")
    frame = synthetic.pd.DataFrame([dict.fromkeys(names) | row for row in rows])
    synthetic.write_table(run, "verdicts", frame)
    return run


def test_a_failed_prediction_leads_to_the_second_and_other_checks_to_their_table(failed, browser: TestClient):
    page = browser.get("/aftershock/runs/stalled").text
    (link,) = re.findall(r'href="([^"]*table=useful_time[^"]*)"', page)
    assert f"from second {PARTED_S} on there is less useful time" in page
    assert 'href="#table-ledger"' in page
    shown = browser.get(link.replace("&amp;", "&").partition("#")[0]).text
    assert f'<h2 id="around">useful_time around second {PARTED_S} of the window</h2>' in shown
    around = shown.partition('id="around"')[2].partition("</section>")[0]
    assert f">{PARTED_S}</td>" in around
    assert f">{PARTED_S + 60}</td>" not in around


def test_a_failed_prediction_of_single_rows_leads_to_the_worst_of_them(browser: TestClient):
    run = synthetic.make_run(store.home() / "runs", run_id="slow")
    synthetic.write_table(run, "partition_recoveries", restores(factors=(1.0, 3.0, 1.0)))
    store.write_json(run.experiment_path, PASSIVE.model_dump(mode="json"))
    row = {"check": "restores.as_modelled", "table": "partition_recoveries", "verdict": "fail"}
    names = ("check", "table", "verdict", "observed", "expected", "detail")
    synthetic.write_table(run, "verdicts", synthetic.pd.DataFrame([dict.fromkeys(names) | row]))
    page = browser.get("/aftershock/runs/slow").text
    (link,) = re.findall(r'href="([^"]*table=partition_recoveries[^"]*)"', page)
    assert "second 60: the restore took 9.1 s instead of 3.1 s" in page
    shown = browser.get(link.replace("&amp;", "&").partition("#")[0]).text
    assert '<h2 id="around">partition_recoveries around second 60 of the window</h2>' in shown


def write_comparison(verdicts: dict[str, str]) -> str:
    """A recorded comparison of run "slower" with "base", by metric its verdict; returns its id."""
    where = {"experiment": "wordcount", "experiment_digest": "d1", "machine": "a machine"}
    row = where | {
        "unit": "", "better": "higher", "scale": "ratio", "why": "", "candidates": 1, "baseline": 1,
        "candidate_median": 0.7, "baseline_median": 0.8, "effect": -0.12, "low": -0.13, "high": -0.11, "p_value": 0.001,
    }  # fmt: skip
    rows = [row | {"metric": metric, "verdict": verdict} for metric, verdict in verdicts.items()]
    entry = where | {"verdict": "worse", "candidates": ["slower"], "baseline": ["base"], "pinned": False}
    document = {"regression_id": "regression-20261120-060000-abcd", "recorded_ns": synthetic.START_NS}
    document |= {"verdict": "worse", "experiments": [entry | {"sentences": []}]}
    records.keep(records.RecordedComparison.model_validate(document), {"regression": rows, "change_points": []})
    return document["regression_id"]


def slows(rows):
    late = np.where(rows["second"] >= PARTED_S, 0.5, 1.0)
    return rows.assign(committed_records=rows["committed_records"] * late)


def test_a_metric_that_became_worse_leads_to_the_second_at_which_a_run_parts_from_its_baseline(browser: TestClient):
    """No curve shows the sustainable rate, and utilization did not become worse: only one row has a link."""
    synthetic.make_run(store.home() / "runs", run_id="base")
    synthetic.make_run(store.home() / "runs", run_id="slower", changes={"throughput": slows})
    compared = write_comparison({"service_rate": "worse", "sustainable_rate": "worse", "utilization": "same"})
    rows = browser.get(f"/aftershock/regressions/{compared}").text.split("<tr>")
    (row,) = [row for row in rows if "second=" in row]
    assert "metric=service_rate" in row
    address = r'href="(/aftershock/runs/slower\?table=throughput&amp;second=(\d+)\.0)#around"'
    ((link, second),) = re.findall(address, row)
    assert PARTED_S <= int(second) < PARTED_S + 20  # the sum must first fall behind by a hundredth of the whole
    assert f"from second {second} on it is outside of its baseline" in row
    shown = browser.get(link.replace("&amp;", "&")).text
    assert f'<h2 id="around">throughput around second {second} of the window</h2>' in shown


def test_a_run_that_is_gone_leads_nowhere(browser: TestClient):
    synthetic.make_run(store.home() / "runs", run_id="base")
    page = browser.get(f"/aftershock/regressions/{write_comparison({'service_rate': 'worse'})}")
    assert page.status_code == 200
    assert "second=" not in page.text


def test_a_run_that_agrees_has_no_such_link(browser: TestClient):
    synthetic.make_run(store.home() / "runs", run_id="good")
    assert "table=useful_time" not in browser.get("/aftershock/runs/good").text


@pytest.mark.parametrize("query", ["table=verdicts&second=3", "table=none&second=3", "second=3", "table=../x"])
def test_a_table_without_times_or_that_is_none_shows_the_run_as_it_is(failed, browser: TestClient, query: str):
    response = browser.get(f"/aftershock/runs/stalled?{query}")
    assert response.status_code == 200
    assert 'id="around"' not in response.text


def test_a_second_that_is_no_number_is_refused(failed, browser: TestClient):
    for second in ("x", "inf", "nan"):
        assert browser.get(f"/aftershock/runs/stalled?table=useful_time&second={second}").status_code == 400
