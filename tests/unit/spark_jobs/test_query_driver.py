"""What the query driver does about executors that come and go, on a scheduler that is made up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from experiments.recovery_modes import RecoveryMode
from journal.events.common import ExecutorsLost
from journal.events.query import QUERY
from journal.reader import events
from journal.writer import Journal
from spark_jobs.streaming import driver
from spark_jobs.streaming.driver import QueryDriver

CONFIG = SimpleNamespace(workers=3, engine=SimpleNamespace(recovery_run=RecoveryMode.QUERY))


def driven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looks: Iterator[str]) -> QueryDriver:
    """Each look at the executors finds those of the next text, one letter each."""
    monkeypatch.setattr(driver, "live_executors", lambda spark: set(next(looks)))
    monkeypatch.setattr(driver, "POLL_S", 0.0)
    return QueryDriver(None, CONFIG, Journal(tmp_path / "query.jsonl"), None)


def test_the_query_waits_for_an_executor_of_every_worker(tmp_path, monkeypatch):
    assert driven(tmp_path, monkeypatch, iter(["", "a", "ab", "abc", "abcd"]))._await_workers() == set("abc")


def test_an_executor_that_is_lost_as_the_query_starts_is_missed(tmp_path, monkeypatch):
    """By the next look it is gone. Without it the query would go on with a host too few, and nobody would know."""
    query = driven(tmp_path, monkeypatch, iter(["abc", "ab", "ab"]))
    query._watch(SimpleNamespace(isActive=True), query._await_workers())
    told = events(tmp_path / "query.jsonl", QUERY)
    assert [event.executors for event in told if isinstance(event, ExecutorsLost)] == [("c",)]


def test_a_driver_that_shall_stop_waits_for_nobody(tmp_path, monkeypatch):
    query = driven(tmp_path, monkeypatch, iter(["a"]))
    query.request_stop()
    assert query._await_workers() == {"a"}
