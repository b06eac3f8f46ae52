"""Heals: when they are due, in which order, and how the return of what was lost is awaited."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.holds import Hold, Holds
from chaos.injection import healing
from chaos.injection.agenda import Agenda
from chaos.injection.healing import Healing
from chaos.injection.target_queues import TargetQueues
from experiments.fault_kinds import Effect, FaultKind
from infra.cluster import Handle
from infra.processes import has_precedence
from infra.strikes.strike import Proof
from journal.writer import Journal

LIMIT_S = 60.0
KILLED = Hold("worker-1", FaultKind.KILL, 0, 1)


class Hosts:
    """The part of a driver that heals; a heal takes until it `may_end`."""

    def __init__(self) -> None:
        self.may_end = threading.Event()
        self.may_end.set()
        self.fails = False

    def heal(self, handle: Handle, host: str, kind: FaultKind) -> Proof:
        self.may_end.wait(LIMIT_S)
        if self.fails:
            raise OSError(f"{host} does not answer")
        return Proof(1, 2, {"hosts started": 1}, {"hosts down": 0})


class Parts:
    """A healing with what it needs."""

    def __init__(self, root: Path, arrived: Callable[[], bool] | None = None) -> None:
        self.hosts, self.agenda, self.holds = Hosts(), Agenda(), Holds[int]()
        self.queues = TargetQueues(["worker-1", "worker-2"], self.agenda.stop)
        self.path = root / "injector.jsonl"
        self.arrivals = TargetQueues(["worker-1"], self.agenda.stop)
        handle = Handle("run-1", "local", "token", str(root))
        parts = (lambda *_: arrived, self.agenda, self.queues, self.arrivals, self.holds)
        self.healing = Healing(self.hosts, handle, Journal(self.path), *parts)

    def strike(self, hold: Hold[int]) -> None:
        self.healing.note_strike(hold.host, hold.kind.effect)
        self.holds.strike(hold)

    def heal_what_is_due(self) -> None:
        for act in self.agenda.due():
            act()

    def journaled(self) -> list[tuple[str, int]]:
        self.queues.close()
        self.arrivals.close()
        lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []
        entries = [json.loads(line) for line in lines]
        return [(entry["event"], entry["fault"]) for entry in entries]


@pytest.fixture(autouse=True)
def short_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(healing, "JOIN_POLL_S", 0.001)


def test_a_hold_is_healed_when_it_is_due(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    parts.strike(KILLED)
    parts.healing.plan(KILLED)
    assert list(parts.holds) == [KILLED]
    parts.heal_what_is_due()
    assert (list(parts.holds), parts.journaled()) == ([], [("healed", 0)])


def test_a_hold_that_was_made_longer_is_healed_once(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    parts.strike(KILLED)
    parts.healing.plan(KILLED)
    longer = parts.holds.absorb("worker-1", FaultKind.KILL, 2)
    assert longer is not None
    parts.healing.plan(longer)
    parts.heal_what_is_due()
    assert parts.journaled() == [("healed", 0)]


def test_whoever_waits_for_a_host_gets_it_healed_or_is_told_why_not(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    parts.healing.wait("worker-1")  # nothing to wait for
    parts.hosts.may_end.clear()
    parts.strike(KILLED)
    parts.healing.heal_all()
    waited = threading.Event()
    waiting = threading.Thread(target=lambda: (parts.healing.wait("worker-1"), waited.set()))
    waiting.start()
    parts.healing.wait("worker-2")
    assert not waited.wait(0.05)
    parts.hosts.may_end.set()
    assert waited.wait(LIMIT_S)
    waiting.join()
    parts.hosts.fails = True
    parts.strike(KILLED)
    parts.healing.heal_all()
    with pytest.raises(OSError, match="does not answer"):
        parts.healing.wait("worker-1")
    assert parts.journaled() == [("healed", 0)]


def test_a_heal_in_progress_or_begun_since_a_look_may_have_changed_the_host(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    before = parts.healing.latest("worker-1")
    parts.strike(KILLED)
    assert not parts.healing.may_have_changed("worker-1", before), "what holds a host is the holds' affair"
    parts.hosts.may_end.clear()
    parts.healing.heal_all()
    since = parts.healing.latest("worker-1")
    assert parts.healing.may_have_changed("worker-1", since), "it is in progress"
    assert not parts.healing.may_have_changed("worker-2", None)
    parts.hosts.may_end.set()
    parts.healing.wait("worker-1")
    assert not parts.healing.may_have_changed("worker-1", since)
    assert parts.healing.may_have_changed("worker-1", before), "it came between"


def test_a_host_that_comes_back_is_journaled(tmp_path: Path) -> None:
    answers = iter([False, False, True])
    parts = Parts(tmp_path, arrived=lambda: next(answers))
    parts.strike(KILLED)
    parts.healing.heal_all()
    assert parts.journaled() == [("healed", 0), ("joined", 0)]


def test_no_thread_is_started_for_a_wait_and_it_has_precedence(tmp_path: Path) -> None:
    """A strike would wait until a new thread has a core, and for a thread of the usual priority that has none."""
    found: list[tuple[bool, bool]] = []

    def arrived() -> bool:
        found.append((has_precedence(), threading.current_thread() in before))
        return True

    parts = Parts(tmp_path, arrived)
    before = set(threading.enumerate())
    parts.strike(KILLED)
    parts.healing.heal_all()
    assert parts.journaled() == [("healed", 0), ("joined", 0)]
    assert found == [(True, True)]


def test_a_host_that_is_struck_again_is_not_awaited(tmp_path: Path) -> None:
    parts, looked = Parts(tmp_path, arrived=lambda: looked.set() or False), threading.Event()
    parts.strike(KILLED)
    parts.healing.heal_all()
    assert looked.wait(LIMIT_S)
    parts.healing.note_strike("worker-1", Effect.FROZEN)
    for _ in range(2):  # one look may have begun before
        looked.clear()
        assert looked.wait(LIMIT_S), "a pause does not keep a worker from joining"
    parts.healing.note_strike("worker-1", Effect.DOWN)
    assert parts.journaled() == [("healed", 0)]


def test_a_stop_ends_the_wait(tmp_path: Path) -> None:
    parts, looked = Parts(tmp_path, arrived=lambda: looked.set() or False), threading.Event()
    parts.strike(KILLED)
    parts.healing.heal_all()
    assert looked.wait(LIMIT_S)
    parts.agenda.stop()
    assert parts.journaled() == [("healed", 0)]
