"""A live run's page, and who may end the run: with the permission to edit, from our own form, on purpose."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from aftershock import live
from experiments import spec
from infra.journal import Journal
from results import store
from tests.e2e.example_run import LIVE, LIVE_DAG_RUN, write_failed_run, write_live_run

ABORT = f"/aftershock/live/{LIVE}/abort"


@pytest.fixture(autouse=True)
def _live_run(api_server: FastAPI) -> None:
    write_live_run()


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The runs that were ended; what ending does is tested where it is done."""
    found: list[str] = []
    monkeypatch.setattr(live, "end", lambda run_id: found.append(run_id) or f"{run_id} was aborted")
    return found


@pytest.fixture
def operator(api_server: FastAPI, token: Callable[..., str]) -> TestClient:
    """A client with the session cookie of a user who may change DAG runs."""
    return TestClient(api_server, cookies={"_token": token("ADMIN")}, follow_redirects=False)


def form_token(client: TestClient) -> str:
    return re.search(r'name="token" value="([0-9a-f]+)"', client.get(ABORT).text)[1]


def test_a_live_run_of_the_testbed_is_shown_without_what_its_journal_does_not_tell(browser: TestClient):
    run = write_live_run("testbed")
    experiment = spec.load("dataflow-q12")
    store.write_json(run.root / "experiment.json", experiment.model_dump(mode="json"))
    (run.raw / "query.jsonl").unlink()
    Journal(run.raw / "query.jsonl").write("progress", phase="running", epoch=1, positions={"bids.0": 700})
    state = browser.get("/aftershock/live/testbed/state.json").json()
    assert (state["phase"], state["lag_records"]) == ("measuring", None)
    assert browser.get("/aftershock/live/testbed").status_code == browser.get("/aftershock/live").status_code == 200


def test_the_state_of_a_live_run(browser: TestClient):
    state = browser.get(f"/aftershock/live/{LIVE}/state.json").json()
    assert {host["name"]: host["state"] for host in state["hosts"]} == {
        "gateway": "up", "worker-1": "up", "worker-2": "down", "worker-3": "up"
    }  # fmt: skip
    assert (state["phase"], state["aborted"], state["finished"]) == ("measuring", False, False)
    assert state["faults"] == {"planned": 2, "injected": 1, "healed": 0}
    assert state["next_fault"]["targets"] == ["worker-1"]
    assert 3000 < state["next_fault"]["in_s"] < 3600
    assert state["lag_records"] >= 1000
    assert state["elapsed_s"] + state["left_s"] == state["window_s"]


def test_a_run_that_is_set_up_has_little_to_show(browser: TestClient):
    run = write_live_run("wordcount-new")
    for path in (run.raw / "plan.json", run.raw / "query.jsonl", run.root.parent / "cluster" / "handle.json"):
        path.unlink()
    state = browser.get("/aftershock/live/wordcount-new/state.json").json()
    assert (state["phase"], state["hosts"], state["next_fault"], state["lag_records"]) == ("setting up", [], None, None)
    assert browser.get("/aftershock/live/wordcount-new").status_code == 200


def test_the_list_and_the_dag_run_lead_to_the_live_run(browser: TestClient):
    assert f'href="/aftershock/live/{LIVE}"' in browser.get("/aftershock/live").text
    moved = browser.get(f"/aftershock/dag-runs/{LIVE_DAG_RUN}")
    assert (moved.status_code, moved.headers["Location"]) == (303, f"/aftershock/live/{LIVE}")


def test_a_run_that_has_ended_leads_to_its_results(browser: TestClient):
    write_failed_run("over", "no disk")
    assert browser.get("/aftershock/live/over").headers["Location"] == "/aftershock/runs/over"
    assert browser.get("/aftershock/live/over/state.json").json() == {"finished": True}
    assert browser.get("/aftershock/live/never").status_code == 404


def test_who_may_only_read_is_offered_no_switch(browser: TestClient, ended: list[str]):
    assert "Abort" not in browser.get(f"/aftershock/live/{LIVE}").text
    assert browser.get(ABORT).status_code == 403
    assert browser.post(ABORT, data={"token": "x"}).status_code == 403
    assert ended == []


def test_who_is_not_logged_in_cannot_abort(anonymous: TestClient, ended: list[str]):
    assert anonymous.post(ABORT, data={"token": "x"}).status_code == 401
    assert ended == []


def test_the_switch_asks_first_and_then_ends_the_run(operator: TestClient, ended: list[str]):
    assert ABORT in operator.get(f"/aftershock/live/{LIVE}").text
    token = form_token(operator)
    assert ended == []
    answer = operator.post(ABORT, data={"token": token}, headers={"Origin": "http://testserver"})
    assert answer.status_code == 200
    assert f"{LIVE} was aborted" in answer.text
    assert ended == [LIVE]


@pytest.mark.parametrize("sent", ["", "0" * 64, "é"])
def test_a_form_without_our_token_is_refused(operator: TestClient, ended: list[str], sent: str):
    assert operator.post(ABORT, data={"token": sent}).status_code == 403
    assert operator.post(ABORT).status_code == 403
    assert ended == []


def test_a_form_of_another_site_is_refused(operator: TestClient, ended: list[str]):
    for origin in ("https://evil.example", "null"):
        answer = operator.post(ABORT, data={"token": form_token(operator)}, headers={"Origin": origin})
        assert answer.status_code == 403
    assert ended == []


def test_a_token_is_good_for_its_own_run_only(operator: TestClient, ended: list[str]):
    write_live_run("other")
    answer = operator.post("/aftershock/live/other/abort", data={"token": form_token(operator)})
    assert answer.status_code == 403
    assert ended == []
