"""The preparation of strikes: on hosts that are up, and closed if it is not used."""

from __future__ import annotations

import itertools
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from chaos.events import FaultEvent
from chaos.fault_plan import FaultPlan
from chaos.injection.planned_strike import PlannedStrike, planned_strikes
from chaos.injection.preparation import Preparation
from experiments.fault_kinds import Direction, FaultKind, FaultOptions
from experiments.hosts import Role
from experiments.waiting import poll_until
from infra.cluster import Handle, Host
from infra.processes import has_precedence

LIMIT_S = 60.0
BOTH = ("worker-1", "worker-2")
PARTITION = FaultEvent(2.0, "test", BOTH, FaultKind.PARTITION, 1.0, FaultOptions(peers=("worker-1", "gateway")))


class Prepared:
    """A strike that notes when it is given up."""

    def __init__(self) -> None:
        self.closed = False

    def refresh(self) -> bool:
        return not self.closed

    def close(self) -> None:
        self.closed = True


class Hosts:
    """The part of a driver that a preparation uses; it cannot prepare strikes on `broken` hosts."""

    def __init__(self, *broken: str) -> None:
        self.broken = broken
        self.asked: list[tuple[str, FaultKind, FaultOptions]] = []
        self.prepared: list[Prepared] = []

    def prepare(self, handle: Handle, host: str, kind: FaultKind, options: FaultOptions) -> Prepared:
        self.asked.append((host, kind, options))
        if host in self.broken:
            raise OSError(f"{host} does not answer")
        self.prepared.append(Prepared())
        return self.prepared[-1]


@pytest.fixture
def handle(tmp_path: Path) -> Handle:
    hosts = {f"worker-{i}": Host(f"worker-{i}", f"127.0.9.{i}", Role.WORKER, 1, 512) for i in (1, 2)}
    return Handle("run-1", "netns", "token", str(tmp_path), hosts)


@pytest.fixture
def planned() -> list[PlannedStrike]:
    return list(planned_strikes(FaultPlan(10**9, 60 * 10**9, (PARTITION,))))


def test_a_strike_has_times_for_its_steps(planned: list[PlannedStrike]) -> None:
    first = planned[0]
    assert (first.target, first.until_ns, first.prepare_ns) == ("worker-1", 4 * 10**9, 2 * 10**9)
    assert first.due_ns - first.recheck_ns == 160_000_000, "a tenth of a second, and 30 ms for each of the two hosts"
    assert first.due_ns - first.order_ns == 30_000_000


def test_hosts_that_die_together_by_faults_of_their_own_are_checked_as_early_as_those_of_one_fault() -> None:
    """Such as those of a burst: each of its hosts has its own fault."""
    kills = [(2.0 + at_s, f"worker-{number}") for number, at_s in enumerate((0.0, 0.0, 0.0, 0.09, 5.0))]
    events = tuple(FaultEvent(at_s, "burst 0", (host,), FaultKind.KILL, 1.0) for at_s, host in kills)
    strikes = planned_strikes(FaultPlan(10**9, 60 * 10**9, events))
    assert [(each.due_ns - each.recheck_ns) // 10**6 for each in strikes] == [220, 220, 220, 220, 130]


def test_a_strike_waits_until_its_host_is_healed(handle: Handle, planned: list[PlannedStrike]) -> None:
    hosts, healed = Hosts(), threading.Event()
    preparation = Preparation(hosts, handle, BOTH, lambda target: target == "worker-2" or healed.wait(LIMIT_S))
    for each in planned:
        preparation.begin(each)
    assert poll_until(lambda: preparation.is_prepared(planned[1]), interval_s=0.001, limit_s=LIMIT_S)
    assert not preparation.is_prepared(planned[0])
    assert [host for host, *_ in hosts.asked] == ["worker-2"]
    healed.set()
    assert poll_until(lambda: preparation.is_prepared(planned[0]), interval_s=0.001, limit_s=LIMIT_S)
    preparation.close()


def test_a_host_is_no_peer_of_its_own(handle: Handle, planned: list[PlannedStrike]) -> None:
    hosts = Hosts()
    preparation = Preparation(hosts, handle, BOTH, lambda target: None)
    preparation.begin(planned[0])
    preparation.take(planned[0])
    preparation.close()
    assert hosts.asked == [("worker-1", FaultKind.PARTITION, FaultOptions(("gateway",), Direction.BOTH))]


def test_what_nobody_takes_is_given_up_and_what_was_taken_is_not(handle: Handle, planned: list[PlannedStrike]) -> None:
    hosts = Hosts()
    preparation = Preparation(hosts, handle, BOTH, lambda target: None)
    for each in planned:
        preparation.begin(each)
    up, taken = preparation.recheck(planned[0]), preparation.take(planned[0])
    assert up.result(LIMIT_S)
    assert poll_until(lambda: preparation.is_prepared(planned[1]), interval_s=0.001, limit_s=LIMIT_S)
    preparation.close()
    assert [strike.closed for strike in hosts.prepared if strike is not taken] == [True]
    assert not taken.closed


def test_all_threads_run_before_the_first_strike_and_with_precedence(
    handle: Handle, planned: list[PlannedStrike]
) -> None:
    """A strike would wait until a new thread has a core, and for a thread of the usual priority that has none."""
    before = set(threading.enumerate())
    preparation = Preparation(Hosts(), handle, BOTH, lambda target: None)
    made = set(threading.enumerate()) - before
    assert [has_precedence(thread.native_id or 0) for thread in made] == [True] * len(BOTH)
    for each in planned:
        preparation.begin(each)
        assert preparation.recheck(each).result(LIMIT_S)
    assert set(threading.enumerate()) - before == made
    preparation.close()


def test_many_strikes_on_a_host_that_does_not_answer_hold_up_none_on_another(handle: Handle) -> None:
    answers, number = threading.Event(), itertools.count()
    preparation = Preparation(Hosts(), handle, BOTH, lambda target: target == "worker-2" or answers.wait(LIMIT_S))
    for _ in range(100):
        preparation.begin(PlannedStrike(next(number), 3 * 10**9, 0, "worker-1", PARTITION, 1))
    other = PlannedStrike(next(number), 3 * 10**9, 0, "worker-2", PARTITION, 1)
    preparation.begin(other)
    try:
        assert preparation.recheck(other).result(5.0)
    finally:
        answers.set()
        preparation.close()


def test_what_has_not_begun_at_the_end_is_left_out(handle: Handle, planned: list[PlannedStrike]) -> None:
    """Neither the strike that waits for a heal, nor the one behind it: their host may not answer for half a minute."""
    hosts, (first, second) = Hosts(), (replace(planned[0], number=number) for number in (0, 1))
    begun = threading.Event()

    def until_the_second_is_left_out(target: str) -> None:
        begun.set()
        found = preparation._prepared
        poll_until(lambda: second in found and found[second].cancelled(), interval_s=0.001, limit_s=5.0)

    preparation = Preparation(hosts, handle, BOTH, until_the_second_is_left_out)
    preparation.begin(first)
    preparation.begin(second)
    assert begun.wait(LIMIT_S)
    preparation.close()
    assert hosts.asked == []


def test_a_preparation_that_fails_is_told_when_it_is_used(handle: Handle, planned: list[PlannedStrike]) -> None:
    preparation = Preparation(Hosts("worker-1"), handle, BOTH, lambda target: None)
    for each in planned:
        preparation.begin(each)
    with pytest.raises(OSError, match="worker-1 does not answer"):
        preparation.recheck(planned[0]).result(LIMIT_S)
    preparation.give_up(planned[0])
    preparation.close()
