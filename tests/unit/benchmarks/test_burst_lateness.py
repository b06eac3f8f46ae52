"""A burst is measured on a busy machine, or not at all."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from benchmarks.injector import burst_lateness
from benchmarks.injector.kill_lateness import show
from experiments.errors import EnvironmentFailure
from experiments.spec import ClusterSpec
from infra import local
from infra.cluster import Driver, Handle
from infra.services import startup
from tests.integration.infra.clusters import sleeping_cluster


@contextmanager
def busy_machine(processes: int) -> Iterator[set[BaseProcess]]:
    """The same, and its processes."""
    before = set(multiprocessing.active_children())
    with burst_lateness.busy_machine(processes):
        yield set(multiprocessing.active_children()) - before


def test_a_machine_that_does_not_stay_busy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(burst_lateness, "busy", lambda: None)  # as if it might not

    def wait_for_ends() -> None:
        with busy_machine(2) as started:
            for process in started:
                process.join()

    with pytest.raises(EnvironmentFailure, match="the machine was not busy"):
        wait_for_ends()


def test_what_keeps_the_machine_busy_ends_with_the_measurement() -> None:
    with busy_machine(1) as started:
        (process,) = started
    process.join(60.0)
    assert not process.is_alive()


def test_hosts_are_gone_if_one_of_them_could_not_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def make_hosts(spec: ClusterSpec, handle: Handle) -> None:
        raise SystemExit("SIGTERM")

    monkeypatch.setattr(local, "make_hosts", make_hosts)
    monkeypatch.setattr(startup, "one_at_a_time", nullcontext)
    destroyed = list[Handle]()
    driver = cast(Driver, SimpleNamespace(destroy=destroyed.append))
    with pytest.raises(SystemExit), sleeping_cluster(driver, ClusterSpec(workers=2), tmp_path, "burst-lateness"):
        pass
    assert [each.run_id for each in destroyed] == ["burst-lateness"]


def test_strikes_that_all_failed_have_no_lateness() -> None:
    with pytest.raises(EnvironmentFailure, match="in bursts: no strike was injected"):
        show("in bursts", [])


def test_the_lateness_of_strikes_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    late_ms = (1, 3, 2)
    show("in bursts", [{"fired_ns": 10**9 + each * 10**6, "planned_ns": 10**9, "left": {}} for each in late_ms])
    told = capsys.readouterr().out
    assert told.startswith("in bursts: 3 strikes, 0 contradictions")
    assert told.endswith("median 2.00, p99 3.00, largest 3.00\n")
