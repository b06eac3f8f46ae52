"""A live run's page, and who may end the run: with the permission to edit, from our own form, on purpose."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from aftershock.run import lease, run_journals, step_notes
from aftershock.watch import live
from chaos.events import ABORT_FILE
from chaos.fault_plan import PLAN_FILE
from experiments import spec
from experiments.errors import BadInput
from journal.events.injector import Healed
from journal.events.services import HostSample
from journal.events.testbed import Committed
from journal.writer import Journal
from results.runs import store
from results.views.cells import MISSING
from tests.e2e.example_run import LIVE, LIVE_DAG_RUN, write_failed_run, write_live_run, write_live_testbed_run
from tests.unit.example_events import example, report

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
def operator(api_server: FastAPI, token: Callable[..., str]) -> Iterator[TestClient]:
    """A client with the session cookie of a user who may change DAG runs."""
    with TestClient(api_server, cookies={"_token": token("ADMIN")}, follow_redirects=False) as client:
        yield client


def form_token(client: TestClient) -> str:
    return re.search(r'name="token" value="([0-9a-f]+)"', client.get(ABORT).text)[1]


def words_of(page: str) -> str:
    return " ".join(re.sub("<[^>]*>", " ", page).split())


@pytest.mark.parametrize(("protocol", "committed"), [("coordinated", 600), ("none", 1400)])
def test_lag_and_progress_of_a_run_of_the_testbed(browser: TestClient, protocol: str, committed: int):
    run = write_live_run("testbed")
    experiment = spec.load("dataflow-q12").model_dump(mode="json")
    store.write_json(
        run.root / "experiment.json", experiment | {"engine": experiment["engine"] | {"protocol": protocol}}
    )
    (run.raw / "query.jsonl").unlink()
    journal = Journal(run.raw / "query.jsonl")
    journal.record(Committed({"bids.0": 500, "bids.1": 100}))
    for second, read in ((1, 400), (2, 700)):
        positions = {"bids.0": read, "bids.1": read}
        journal.record(report(second * 10**9, epoch=1, positions=positions))
    state = browser.get("/aftershock/live/testbed/state.json").json()
    assert (state["committed_records"], state["records_per_s"], state["doing"]) == (committed, 600.0, "epoch 1")
    assert 2000 - committed <= state["lag_records"] < 2000 + 3600 * 200  # 200 a second are due, for ten seconds so far
    assert f"{committed:,}" in browser.get("/aftershock/live/testbed").text


def test_partitions_of_a_run_of_the_testbed(browser: TestClient):
    assert browser.get(f"/aftershock/live/{LIVE}/state.json").json()["partitions"] == {}
    write_live_testbed_run("testbed")
    states = browser.get("/aftershock/live/testbed/state.json").json()["partitions"]
    assert states["requests.0"] == "absent"
    assert states["merged.0"] == "tentative"
    assert states["requests.1"] == "up"
    words = words_of(browser.get("/aftershock/live/testbed").text)
    assert "absent 3 requests.0, requests.4, slices.0 tentative 2 merged.0, top.0 up 11" in words
    assert "copied 1 merged.1 on slot-5" in words


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
    assert (state["committed_records"], state["records_per_s"], state["doing"]) == (1000, 512.0, "batch 7 committed")


def test_hosts_are_shown_with_what_they_use(browser: TestClient):
    hosts = {host["name"]: host for host in browser.get(f"/aftershock/live/{LIVE}/state.json").json()["hosts"]}
    assert (hosts["worker-1"]["cpu_cores"], hosts["worker-1"]["rss_bytes"]) == (0.25, 100 * 2**20)
    assert (hosts["worker-2"]["cpu_cores"], hosts["worker-2"]["rss_bytes"]) == (None, None)  # it is down
    assert "CPU 0.25 cores, memory 100 MiB" in browser.get(f"/aftershock/live/{LIVE}").text


def test_a_host_is_not_up_before_something_says_so(browser: TestClient):
    run = write_live_run("unsampled")
    now_ns = time.time_ns()
    (run.raw / "hosts.jsonl").unlink()
    samples = Journal(run.raw / "hosts.jsonl")
    samples.record(HostSample("gateway", 1.0, 1, at_ns=now_ns - 60 * 10**9))
    samples.record(HostSample("worker-1", 1.0, 1, at_ns=now_ns + 3600 * 10**9))
    state = browser.get("/aftershock/live/unsampled/state.json").json()
    assert {host["name"]: host["state"] for host in state["hosts"]} == {
        "gateway": "silent", "worker-1": "up", "worker-2": "down", "worker-3": "unknown"
    }  # fmt: skip


def test_a_request_reads_only_what_has_come_since_the_last(browser: TestClient, monkeypatch: pytest.MonkeyPatch):
    address, read = f"/aftershock/live/{LIVE}/state.json", []
    assert browser.get(address).json()["committed_records"] == 1000
    taken = run_journals.Samples.take
    monkeypatch.setattr(run_journals.Samples, "take", lambda self, event: read.append(event.host) or taken(self, event))
    browser.get(address)
    assert read == []
    at_ns = time.time_ns() + 3601 * 10**9
    Journal(store.live(LIVE).raw / "hosts.jsonl").record(HostSample("worker-1", 1.5, 2**20, at_ns=at_ns))
    found = {host["name"]: host for host in browser.get(address).json()["hosts"]}
    assert read == ["worker-1"]
    assert found["worker-1"]["rss_bytes"] == 2**20


def test_requests_at_once_take_every_entry_once(browser: TestClient):
    run = write_live_run("busy")
    journal = Journal(run.raw / "injector.jsonl")
    for number in range(2000):
        journal.record(example(Healed, host="worker-3", fault=number))
    with ThreadPoolExecutor(8) as asking:
        found = list(asking.map(lambda _: live.state_of("busy")["faults"]["healed"], range(16)))
    assert found == [2000] * 16


def test_a_run_that_is_set_up_has_little_to_show(browser: TestClient):
    run = write_live_run("wordcount-new")
    for path in (run.raw / "plan.json", run.raw / "query.jsonl", run.root.parent / "cluster" / "handle.json"):
        path.unlink()
    state = browser.get("/aftershock/live/wordcount-new/state.json").json()
    assert (state["phase"], state["hosts"], state["next_fault"], state["lag_records"]) == ("setting up", [], None, None)
    assert browser.get("/aftershock/live/wordcount-new").status_code == 200


def test_an_aborted_run_counts_down_to_no_fault(browser: TestClient):
    address = f"/aftershock/live/{LIVE}"
    raw = store.live(LIVE).raw
    at_ns = store.read_json(raw / PLAN_FILE)["window_start_ns"] + 20 * 10**9
    (raw / ABORT_FILE).touch()
    os.utime(raw / ABORT_FILE, ns=(at_ns, at_ns))
    state = browser.get(f"{address}/state.json").json()
    assert (state["phase"], state["next_fault"], state["left_s"]) == ("winding up", None, None)
    assert state["elapsed_s"] == 20.0
    words = words_of(browser.get(address).text)
    assert f"Window left {MISSING} Next planned fault {MISSING} Strikes 1 of 2" in words
    assert "start_load: start the load, until the query runs steadily (left out)" in words
    step_notes.begin(LIVE, "teardown")
    assert "observe: measure while hosts fail (cut short after " in words_of(browser.get(address).text)


def test_a_run_whose_process_has_died_says_so_as_long_as_nobody_works_on_it(browser: TestClient):
    address = f"/aftershock/live/{LIVE}"
    told = 'id="abandoned">The process that ran it has died'
    assert browser.get(f"{address}/state.json").json()["abandoned"] is False, "a scheduler holds no lease"
    with lease.lease(store.live_directory(LIVE)):
        assert browser.get(f"{address}/state.json").json()["abandoned"] is False
        assert told not in browser.get(address).text
    lease.lease_path(store.live_directory(LIVE)).touch()
    assert browser.get(f"{address}/state.json").json()["abandoned"] is True
    page = browser.get(address).text
    assert told in page
    assert f"<code>aftershock clean {LIVE}</code>" in page
    assert f"{LIVE} wordcount its process has died {MISSING} " in words_of(browser.get("/aftershock/live").text)


def test_a_run_whose_process_died_amid_its_abort_can_be_aborted_again(operator: TestClient):
    """Nobody tears it down: it must not look as if somebody did."""
    offered = f'href="{ABORT}">Abort this run'
    assert offered in operator.get(f"/aftershock/live/{LIVE}").text
    (store.live(LIVE).raw / ABORT_FILE).touch()
    assert offered not in operator.get(f"/aftershock/live/{LIVE}").text
    lease.lease_path(store.live_directory(LIVE)).touch()
    assert offered in operator.get(f"/aftershock/live/{LIVE}").text
    assert f"{LIVE} wordcount its process has died {MISSING} " in words_of(operator.get("/aftershock/live").text)


def test_hosts_are_shown_by_domain_as_the_script_of_the_page_sorts_them(
    browser: TestClient, monkeypatch: pytest.MonkeyPatch
):
    state = live.state_of(LIVE)
    domains = {"gateway": (), "worker-1": ("rack-b",), "worker-2": ("rack-a",), "worker-3": ("rack-b",)}
    hosts = [each | {"domains": domains[each["name"]]} for each in state["hosts"]]
    monkeypatch.setattr(live, "state_of", lambda run_id: state | {"hosts": hosts})
    shown = re.findall(r'class="host"><strong>([a-z0-9-]+)<', browser.get(f"/aftershock/live/{LIVE}").text)
    assert shown == ["gateway", "worker-2", "worker-1", "worker-3"]


def test_the_list_tells_the_step_and_what_is_left_of_a_run_that_is_set_up(browser: TestClient):
    run = write_live_run("wordcount-new")
    (run.raw / "plan.json").unlink()
    for step in ("provision", "deploy", "start_load"):
        step_notes.begin("wordcount-new", step)
    progress = browser.get("/aftershock/live/wordcount-new/state.json").json()["progress"]
    assert (progress["current"], progress["number"], progress["is_late"]) == ("start_load", 3, False)
    words = words_of(browser.get("/aftershock/live").text)
    told = f"wordcount-new wordcount step 3 of 12: start_load {progress['left']} {MISSING} 1 of {MISSING} 3 of 4"
    assert told in words
    assert re.search(rf"{LIVE} wordcount step 5 of 12: observe about \d+ (?:min|s) [\d,]+ 1 of 2 3 of 4", words)


def test_a_late_step_says_so_and_the_rest_of_the_run_is_told_as_on_the_terminal(browser: TestClient):
    run = write_live_run("wordcount-new")
    (run.raw / "plan.json").unlink()
    step_notes.begin("wordcount-new", "provision")
    address = "/aftershock/live/wordcount-new"
    words = words_of(browser.get(address).text)
    left = browser.get(f"{address}/state.json").json()["progress"]["left"]
    assert f"Steps {left} left" in words
    assert left.startswith("about ")
    assert f"Window left {MISSING} Next" in words
    assert "longer than usual" not in words
    notes = step_notes.read("wordcount-new")
    hour_ago_ns = notes.began_ns["provision"] - 3600 * 10**9
    store.write_json(store.live_directory("wordcount-new") / "steps.json", {"began_ns": {"provision": hour_ago_ns}})
    assert browser.get(f"{address}/state.json").json()["progress"]["is_late"]
    assert "longer than usual" in words_of(browser.get(address).text)


def test_the_list_and_the_dag_run_lead_to_the_live_run(browser: TestClient):
    assert f'href="/aftershock/live/{LIVE}"' in browser.get("/aftershock/live").text
    moved = browser.get(f"/aftershock/dag-runs/{LIVE_DAG_RUN}")
    assert (moved.status_code, moved.headers["Location"]) == (303, f"/aftershock/live/{LIVE}")


def test_a_dag_run_without_a_run_is_told_why_that_may_be(browser: TestClient):
    answer = browser.get("/aftershock/dag-runs/manual__just_now")
    assert answer.status_code == 404
    words = words_of(answer.text)
    for told in (
        "It may not have begun yet",
        "task begin failed, its log says why",
        "nightly, regression and reproduce",
    ):
        assert told in words
    assert 'href="/aftershock/live"' in answer.text
    assert 'href="/aftershock/live"' not in browser.get("/aftershock/no-such-page").text


def _tear_status(run: store.Run) -> None:
    (run.root / "status.json").write_text("{")


def _refuse_experiment(run: store.Run) -> None:
    store.write_json(run.root / "experiment.json", {"window_s": -1})


def _empty_plan(run: store.Run) -> None:
    store.write_json(run.raw / "plan.json", {"events": []})


DAMAGES = pytest.mark.parametrize(
    ("damage", "told"),
    [(_tear_status, "status.json"), (_refuse_experiment, "window_s"), (_empty_plan, "window_start_ns")],
)


@DAMAGES
def test_a_live_run_that_cannot_be_looked_at_costs_the_others_nothing(
    browser: TestClient, damage: Callable[[store.Run], None], told: str
):
    damage(write_live_run("odd"))
    page = browser.get("/aftershock/live")
    assert page.status_code == 200
    assert re.search(rf'href="/aftershock/live/odd">.*cannot be looked at: .*{told}', page.text)
    assert re.search(rf'href="/aftershock/live/{LIVE}">.*step 5 of 12: observe', page.text)
    assert browser.get(f"/aftershock/dag-runs/{LIVE_DAG_RUN}").status_code == 303


@pytest.mark.parametrize("part", ["", "/state.json"])
@DAMAGES
def test_the_page_of_a_damaged_live_run_is_one_line_that_says_so(
    browser: TestClient, damage: Callable[[store.Run], None], told: str, part: str
):
    damage(write_live_run("odd"))
    answer = browser.get(f"/aftershock/live/odd{part}")
    assert answer.status_code in (404, 500)
    assert re.search(rf"<p>[^<]*{told}[^<]*</p>", answer.text)


@pytest.mark.parametrize("vanishing", ["experiment.json", "raw/plan.json"])
def test_a_live_run_that_is_published_while_it_is_looked_at_leads_to_its_results(
    browser: TestClient, monkeypatch: pytest.MonkeyPatch, vanishing: str
):
    read = store.read_json

    def is_published_first(path: Path, *words: str) -> object:
        if str(path).endswith(f"ending/result/{vanishing}"):
            store.publish(store.live("ending"))
        return read(path, *words)

    for address, asked in (("/aftershock/live/ending", "Location"), ("/aftershock/live/ending/state.json", None)):
        store.discard(store.home() / "runs" / "ending")
        write_live_run("ending")
        with monkeypatch.context() as patch:
            patch.setattr(store, "read_json", is_published_first)
            answer = browser.get(address)
        assert (answer.headers[asked] if asked else answer.json()) == (
            "/aftershock/runs/ending" if asked else {"finished": True}
        )
        store.discard(store.live_directory("ending"))


def test_a_damaged_run_can_be_aborted(operator: TestClient, ended: list[str]):
    _tear_status(store.live(LIVE))
    assert operator.post(ABORT, data={"token": form_token(operator)}).status_code == 200
    assert ended == [LIVE]


def test_the_switch_of_a_run_that_has_just_ended_leads_to_its_results(
    operator: TestClient, ended: list[str], monkeypatch: pytest.MonkeyPatch
):
    token = form_token(operator)
    store.publish(store.live(LIVE))
    assert operator.get(ABORT).headers["Location"] == f"/aftershock/runs/{LIVE}"

    def gone(run_id: str) -> str:
        raise BadInput("run_id", run_id, "a live run")

    monkeypatch.setattr(live, "end", gone)
    assert operator.post(ABORT, data={"token": token}).headers["Location"] == f"/aftershock/runs/{LIVE}"


def test_a_run_that_ends_while_the_list_is_made_is_not_in_it(browser: TestClient, monkeypatch: pytest.MonkeyPatch):
    write_live_run("ending")
    look = live.state_of

    def ends_first(run_id: str) -> dict:
        if run_id == "ending":
            store.publish(store.live(run_id))
        return look(run_id)

    monkeypatch.setattr(live, "state_of", ends_first)
    page = browser.get("/aftershock/live")
    assert page.status_code == 200
    assert "live/ending" not in page.text
    assert f"live/{LIVE}" in page.text


def test_a_dag_run_that_was_cleared_leads_to_its_live_run_and_then_to_the_finished_one(browser: TestClient):
    older = write_failed_run("older", "no disk")
    store.write_json(older.root / "status.json", older.status().to_json() | {"dag_run": LIVE_DAG_RUN})
    address = f"/aftershock/dag-runs/{LIVE_DAG_RUN}"
    assert browser.get(address).headers["Location"] == f"/aftershock/live/{LIVE}"
    store.discard(store.live_directory(LIVE))
    assert browser.get(address).headers["Location"] == "/aftershock/runs/older"


def test_a_run_that_has_ended_leads_to_its_results(browser: TestClient):
    write_failed_run("over", "no disk")
    assert browser.get("/aftershock/live/over").headers["Location"] == "/aftershock/runs/over"
    assert browser.get("/aftershock/live/over/state.json").json() == {"finished": True}
    assert browser.get("/aftershock/live/never").status_code == 404


def test_the_page_of_the_results_of_a_live_run_is_that_of_the_live_run(browser: TestClient):
    """The button of the task `judge` leads there, also before the run has ended, and if its teardown has failed."""
    moved = browser.get(f"/aftershock/runs/{LIVE}")
    assert (moved.status_code, moved.headers["Location"]) == (303, f"/aftershock/live/{LIVE}")
    assert browser.get(f"/aftershock/runs/{LIVE}/charts.json").status_code == 404
    store.publish(store.live(LIVE))
    assert browser.get(f"/aftershock/runs/{LIVE}").status_code == 200


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
