"""What runs an own job: the program as Python would run it, the one query that is followed, and where it must run."""

from __future__ import annotations

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

from experiments.errors import BadInput
from infra.broker import Broker
from infra.launch import REPOSITORY
from journal.events.query import QueryIdle
from journal.reader import raw_entries
from journal.writer import Journal
from spark_jobs.streaming import driver, own_job
from spark_jobs.streaming.own_job import FirstQuery, Sessions

PROGRAM = """
import json, pathlib, sys
import infra, results
from helper import word
seen = {"name": __name__, "argv": sys.argv, "infra": infra.word, "results": results.word, "helper": word}
print(json.dumps({**seen, "here": pathlib.Path("job.py").exists()}))
"""
RUN = """import sys
from infra.broker import Broker
from spark_jobs.streaming.config import OwnJobConfig
from spark_jobs.streaming.own_job import run
run(OwnJobConfig('', Broker(''), sys.argv[1], sys.argv[2:]))
"""


def test_a_program_runs_as_by_itself_even_where_its_modules_have_the_names_of_ours(tmp_path):
    (tmp_path / "job.py").write_text(PROGRAM, encoding="utf-8")
    for name in ("infra", "results", "helper"):
        (tmp_path / f"{name}.py").write_text(f"word = '{name} of the job'\n", encoding="utf-8")
    program = str(tmp_path / "job.py")
    done = subprocess.run(
        [sys.executable, "-c", RUN, program, "--topic", "orders"],
        env={"PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=True,
    )
    words = {name: f"{name} of the job" for name in ("infra", "results", "helper")}
    assert json.loads(done.stdout) == {
        "name": "__main__",
        "argv": [program, "--topic", "orders"],
        "here": True,
        **words,
    }


def started(query):
    return SimpleNamespace(id=query, runId=f"{query}-run")


def progress(query):
    return SimpleNamespace(progress=SimpleNamespace(id=query, json=json.dumps({"id": query})))


def terminated(query, exception):
    return SimpleNamespace(id=query, runId=f"{query}-run", exception=exception)


@pytest.fixture
def heard(tmp_path):
    """Tells what a listener journals of these events."""
    journal = Journal(tmp_path / "query.jsonl")
    listener = FirstQuery(journal, lambda: {"1", "0"}, lambda query: journal.record(QueryIdle(f"made up for {query}")))

    def journaled(*calls):
        for hook, event in calls:
            getattr(listener, hook)(event)
        return [
            {key: value for key, value in entry.items() if key != "at_ns"}
            for entry in raw_entries(tmp_path / "query.jsonl")
        ]

    return journaled


def test_the_first_query_is_followed_and_no_other(heard):
    found = heard(
        ("onQueryStarted", started("a")),
        ("onQueryStarted", started("b")),
        ("onQueryProgress", progress("b")),
        ("onQueryProgress", progress("a")),
        ("onQueryTerminated", terminated("b", "boom")),
    )
    assert found == [
        {"event": "query-idle", "query_run": "made up for a"},
        {"event": "query-started", "query_run": "a-run"},
        {"event": "ready", "executors": ["0", "1"]},
        {"event": "progress", "progress": {"id": "a"}},
    ]


AGAIN = [("onQueryTerminated", terminated("a", "boom")), ("onQueryStarted", started("a"))]


@pytest.mark.parametrize("calls", [AGAIN, AGAIN[::-1]], ids=["in order", "its end is told after its new start"])
def test_a_query_that_failed_and_is_started_again_is_followed_again(heard, calls):
    found = heard(("onQueryStarted", started("a")), *calls, ("onQueryProgress", progress("a")))
    events = [entry["event"] for entry in found]
    again = ["query-idle", "query-started", "ready", "progress"]
    assert events == ["query-idle", "query-started", "ready", "query-terminated", "query-failed", *again]
    assert found[4]["error"] == "boom"


def test_a_query_that_ends_for_good_after_it_was_started_again_is_not_followed_on(heard):
    found = heard(("onQueryStarted", started("a")), *AGAIN[::-1], AGAIN[0], ("onQueryProgress", progress("a")))
    assert [entry["event"] for entry in found][-2:] == ["query-terminated", "query-failed"]


def test_a_program_that_sets_a_master_of_its_own_is_refused(tmp_path):
    sessions = Sessions("spark://127.0.1.1:7077", Journal(tmp_path / "query.jsonl"))
    elsewhere = SimpleNamespace(sparkContext=SimpleNamespace(master="local[2]", applicationId="app"))
    with pytest.raises(BadInput, match=r"^the program's Spark master: 'local\[2\]' is not usable; allowed: none"):
        sessions.notice(elsewhere)


@pytest.mark.parametrize(
    ("named", "expected"),
    [("a:1,b:2", True), ("b:2", True), ("c:3,a:1", True), ("c:3", False), ("a:11", False), ("", False)],
)
def test_an_option_names_the_runs_brokers_if_it_names_one_of_them(named, expected):
    assert own_job._is_of(Broker("a:1,b:2"), "Kafka.Bootstrap.Servers", named) is expected
    assert not own_job._is_of(Broker("a:1,b:2"), "subscribe", named)


@pytest.mark.parametrize("master", ["yarn", "k8s://https://127.0.0.1:1"])
def test_only_a_standalone_master_is_awaited(master, monkeypatch):
    """What manages another cluster is for Spark to find: nothing is connected to here."""
    monkeypatch.setattr(driver.socket, "create_connection", lambda *_, **__: pytest.fail("it was connected to"))
    driver.await_master(master)
