"""The injector on hosts that are one sleeping process each: the kills, the proofs and the returns are real."""

from __future__ import annotations

import errno
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from chaos.events import FaultEvent
from chaos.fault_plan import FaultPlan
from chaos.injector import Injector
from experiments.errors import EnvironmentFailure
from experiments.fault_kinds import PLAIN, FaultKind, FaultOptions
from experiments.waiting import poll_until
from infra.clocks import ClockOffset
from infra.cluster import Handle, Host, Role
from infra.processes import has_precedence, members
from infra.strikes.death import Termination
from infra.strikes.ready import Target, ready
from infra.strikes.strike import Proof, Strike
from journal.reader import raw_entries
from journal.writer import Journal
from tests.unit.marked_processes import ignores_sigterm, start, wait_for

LEAD_S = 0.7  # from arming to the window: more than the injector looks ahead
LIMIT_S = 60.0
LATEST_NS = 2 * 10**9  # how late kills come, benchmarks/injector/kill_lateness.py measures


class SleepingHosts:
    """A driver whose workers are real processes that sleep; what is asked of it during an injection, no more."""

    def __init__(self, token: str, root: Path, workers: int) -> None:
        names = [f"worker-{i}" for i in range(1, workers + 1)]
        hosts = {name: Host(name, f"127.0.252.{i}", Role.WORKER, 1, 512) for i, name in enumerate(names, 2)}
        self.handle = Handle("run-1", "local", token, str(root), hosts)
        self.reborn: Counter[str] = Counter()
        self.processes = {name: start(f"{token}/{name}/service") for name in names}
        self.on_prepare: Callable[[], None] = lambda: None
        self.precedence_of_clocks = False

    def clocks(self, handle: Handle) -> dict[str, ClockOffset]:
        self.precedence_of_clocks = has_precedence()
        return {"worker-1": ClockOffset(-7, 3)}

    def prepare(self, handle: Handle, host: str, kind: FaultKind, options: FaultOptions = PLAIN) -> Strike:
        self.on_prepare()
        return ready(Target(f"{handle.token}/{host}", handle.hosts[host].address), kind, options)

    def heal(self, handle: Handle, host: str, kind: FaultKind) -> Proof:
        self.reborn[host] += 1
        now_ns = time.time_ns()
        self.processes[host] = start(f"{handle.token}/{host}/service")
        return Proof(now_ns, time.time_ns(), {"hosts started": 1}, {"hosts down": 0})

    def is_up(self, host: str) -> bool:
        return bool(members(f"{self.handle.token}/{host}"))


def fault(at, *targets, heal_after=60.0, kind="kill"):
    return {"at": at, "kind": kind, "targets": list(targets), "cause": "test", "heal_after": heal_after}


@pytest.fixture
def hosts(token, tmp_path):
    return SleepingHosts(token, tmp_path, 3)


def inject(hosts, *faults, stop_at=None, arrival=lambda *_: None):
    """Run the plan to its end, or until it is asked to stop: when it prepares a strike, or has injected one."""
    path = Path(hosts.handle.root) / "injector.jsonl"
    start_ns = time.time_ns() + round(LEAD_S * 1e9)
    plan = FaultPlan(start_ns, start_ns + 60 * 10**9, tuple(map(FaultEvent.from_json, faults)))
    injector = Injector(hosts, hosts.handle, Journal(path), plan, arrival)
    if stop_at == "prepare":
        hosts.on_prepare = partial(stop_once_told, injector, path, "clock")
    elif stop_at == "injected":
        threading.Thread(target=stop_once_told, args=(injector, path, "clock", "injected"), daemon=True).start()
    injector.run()
    entries = list(raw_entries(path))
    assert (entries[0]["event"], entries[-1]["event"]) == ("armed", "disarmed")
    (clock,) = [entry for entry in entries if entry["event"] == "clock"]
    assert (clock["host"], clock["offset_ns"], clock["uncertainty_ns"]) == ("worker-1", -7, 3)
    announced = {strike(entry): entry["at_ns"] for entry in entries if entry["event"] == "striking"}
    injected = {strike(entry): entry["fired_ns"] for entry in entries if entry["event"] == "injected"}
    assert announced.keys() == injected.keys()
    assert all(announced[each] <= fired_ns for each, fired_ns in injected.items())
    told = (entry for entry in entries[1:-1] if entry["event"] not in ("clock", "striking"))
    return start_ns, sorted(told, key=when)


def stop_once_told(injector, path, *events):
    def told():
        return set(events) <= {entry["event"] for entry in raw_entries(path)}

    poll_until(told, interval_s=0.01, limit_s=LIMIT_S)
    injector.request_stop()


def strike(entry):
    return entry["fault"], entry["host"]


def when(entry):
    """When what an entry tells took effect: proofs are journaled when they are complete, in any order."""
    return entry.get("fired_ns") or entry.get("planned_ns") or entry["at_ns"]


def story(entries):
    return [(entry["event"], entry["host"]) for entry in entries]


def test_a_kill_comes_when_it_is_planned_with_its_proof(hosts):
    victim = hosts.processes["worker-2"]
    start_ns, (injected, healed) = inject(hosts, fault(0.1, "worker-2", heal_after=0.0))
    assert victim.wait(60) == -signal.SIGKILL
    assert injected["planned_ns"] == start_ns + 100_000_000
    assert 0 <= injected["fired_ns"] - injected["planned_ns"] < LATEST_NS
    assert injected["fired_ns"] <= injected["proved_ns"]
    assert injected["done"] == {"processes killed": 1}
    assert injected["left"] == {"survivors": 0, "open ports": 0}
    assert (injected["fault"], healed["fault"]) == (0, 0)
    assert hosts.processes["worker-1"].poll() is None


def test_a_host_comes_back_after_its_delay(hosts):
    _, (injected, healed) = inject(hosts, fault(0.0, "worker-1", heal_after=0.3))
    assert story([injected, healed]) == [("injected", "worker-1"), ("healed", "worker-1")]
    assert healed["fired_ns"] - injected["planned_ns"] >= 300_000_000  # due by the plan, however late the strike
    assert hosts.reborn == {"worker-1": 1}
    assert hosts.is_up("worker-1")


def test_a_kill_of_a_host_that_is_down_is_absorbed(hosts):
    _, entries = inject(hosts, fault(0.0, "worker-1", heal_after=4.0), fault(1.5, "worker-1", heal_after=0.0))
    assert story(entries) == [("injected", "worker-1"), ("absorbed", "worker-1"), ("healed", "worker-1")]
    assert entries[1]["fault"] == 1
    assert hosts.reborn == {"worker-1": 1}


def test_a_heal_does_not_revive_a_host_that_another_fault_still_holds_down(hosts):
    faults = [fault(0.0, "worker-1", heal_after=1.0), fault(0.4, "worker-1", heal_after=1.5)]
    start_ns, entries = inject(hosts, *faults)
    assert story(entries) == [("injected", "worker-1"), ("absorbed", "worker-1"), ("healed", "worker-1")]
    assert [entry["fault"] for entry in entries] == [0, 1, 0]
    assert entries[-1]["fired_ns"] - start_ns >= 1_900_000_000
    assert hosts.reborn == {"worker-1": 1}


def test_of_two_faults_at_one_moment_one_strikes_and_both_hold(hosts):
    faults = [fault(0.0, "worker-1", "worker-2", heal_after=1.5), fault(0.0, "worker-1", heal_after=2.0)]
    start_ns, entries = inject(hosts, *faults)
    healed = {entry["host"]: entry for entry in entries if entry["event"] == "healed"}
    assert sorted(story(entry for entry in entries if entry["event"] != "healed")) == [
        ("absorbed", "worker-1"), ("injected", "worker-1"), ("injected", "worker-2")
    ]  # fmt: skip
    assert healed.keys() == {"worker-1", "worker-2"}
    assert healed["worker-1"]["fired_ns"] - start_ns >= 2_000_000_000, "held for as long as the longer of the two"


def test_a_fault_on_a_host_that_died_by_itself_is_absorbed_and_heals_nothing(hosts):
    hosts.processes["worker-1"].kill()
    hosts.processes["worker-1"].wait(60)
    _, entries = inject(hosts, fault(0.1, "worker-1", heal_after=0.0))
    assert story(entries) == [("absorbed", "worker-1")]
    assert not hosts.reborn


def test_a_host_that_came_back_can_be_killed_again(hosts):
    faults = [fault(0.0, "worker-1", heal_after=0.1), fault(0.8, "worker-1", heal_after=0.0)]
    _, entries = inject(hosts, *faults)
    assert [entry["event"] for entry in entries] == ["injected", "healed", "injected", "healed"]
    assert [entry["fault"] for entry in entries] == [0, 0, 1, 1]


def test_strikes_that_a_long_heal_has_held_up_come_one_after_the_other(hosts, monkeypatch):
    """All are looked at when the heal has ended. Each is over by then, so its own heal begins at once."""
    heal = hosts.heal

    def long_heal(*arguments):
        time.sleep(1.0)
        return heal(*arguments)

    monkeypatch.setattr(hosts, "heal", long_heal)
    held_up = [fault(at, "worker-1", heal_after=0.1) for at in (0.3, 0.5, 0.7)]
    inject(hosts, fault(0.0, "worker-1", heal_after=0.1), *held_up)
    journal = raw_entries(Path(hosts.handle.root) / "injector.jsonl")
    told = [(entry["event"], entry["fault"]) for entry in journal if "fault" in entry]
    assert told == [(event, number) for number in range(4) for event in ("striking", "injected", "healed")]


def test_a_host_that_was_down_at_the_look_and_is_back_when_the_strike_is_due_is_struck(hosts):
    faults = [fault(0.0, "worker-1", heal_after=0.92), fault(1.0, "worker-1", heal_after=0.1)]
    _, entries = inject(hosts, *faults)
    assert [(entry["event"], entry["fault"]) for entry in entries] == [
        ("injected", 0), ("healed", 0), ("injected", 1), ("healed", 1)
    ]  # fmt: skip


def test_a_shock_takes_all_its_targets(hosts):
    _, entries = inject(hosts, fault(0.0, "worker-1", "worker-3", heal_after=0.2))
    assert sorted(story(entries)) == [
        ("healed", "worker-1"), ("healed", "worker-3"), ("injected", "worker-1"), ("injected", "worker-3"),
    ]  # fmt: skip
    assert {entry["fault"] for entry in entries} == {0}
    assert hosts.processes["worker-2"].poll() is None


def test_sigterm_brings_back_what_is_down_and_leaves_out_what_is_to_come(hosts):
    began = time.monotonic()
    _, entries = inject(hosts, fault(0.0, "worker-1"), fault(50.0, "worker-2"), stop_at="injected")
    assert time.monotonic() - began < 40
    assert story(entries) == [("injected", "worker-1"), ("healed", "worker-1")]
    assert hosts.is_up("worker-1")
    assert hosts.processes["worker-2"].poll() is None


def test_sigterm_just_before_a_kill_calls_it_off(hosts):
    _, entries = inject(hosts, fault(0.3, "worker-1"), stop_at="prepare")
    assert entries == []
    assert hosts.processes["worker-1"].poll() is None


def test_a_heal_that_fails_ends_the_plan_at_once(hosts, monkeypatch):
    """Nobody would hear of it otherwise until the next strike, which may be an hour away."""

    def fails(*_):
        raise EnvironmentFailure("worker-1 cannot be reached", "see its sshd")

    monkeypatch.setattr(hosts, "heal", fails)
    began = time.monotonic()
    with pytest.raises(EnvironmentFailure, match="worker-1 cannot be reached"):
        inject(hosts, fault(0.0, "worker-1", heal_after=0.1), fault(50.0, "worker-2"))
    assert time.monotonic() - began < 25
    told = [entry["event"] for entry in raw_entries(Path(hosts.handle.root) / "injector.jsonl")]
    assert told[-2:] == ["failed", "disarmed"]
    assert hosts.processes["worker-2"].poll() is None


@pytest.mark.parametrize("failing", ["prepare", "refresh"])
def test_a_strike_whose_host_is_not_reached_is_missed_and_the_others_are_carried_out(hosts, monkeypatch, failing):
    failure = EnvironmentFailure("worker-1 cannot be\nreached", "see its sshd")
    closed, prepare, path = [], hosts.prepare, Path(hosts.handle.root) / "injector.jsonl"

    class Unreached:
        def refresh(self):
            raise failure

        def close(self):
            closed.append({entry["event"] for entry in raw_entries(path)} & {"missed", "disarmed"})

    def prepare_or_fail(handle, host, kind, options):
        if host != "worker-1":
            return prepare(handle, host, kind, options)
        if failing == "refresh":
            return Unreached()
        raise failure

    monkeypatch.setattr(hosts, "prepare", prepare_or_fail)
    _, entries = inject(hosts, fault(0.0, "worker-1", heal_after=0.0), fault(0.1, "worker-2", heal_after=0.0))
    assert story(entries) == [("missed", "worker-1"), ("injected", "worker-2"), ("healed", "worker-2")]
    assert entries[0]["error"].startswith("worker-1 cannot be reached")
    assert closed == ([set()] if failing == "refresh" else []), "it is given up at once, and not at the end of the plan"
    assert hosts.processes["worker-1"].poll() is None


@pytest.mark.parametrize("in_other_words", [False, True])
def test_an_error_of_the_injector_itself_ends_the_plan(hosts, monkeypatch, in_other_words):
    """Every strike to come would fail, too: a run of many hours would be told as one of missed strikes."""

    def cannot_open(*_):
        try:
            raise OSError(errno.EMFILE, "Too many open files")
        except OSError as error:
            if in_other_words:
                cause = f"worker-1 cannot be reached ({error.strerror})"
                raise EnvironmentFailure(cause, "see its sshd") from None
            raise

    monkeypatch.setattr(hosts, "prepare", cannot_open)
    with pytest.raises((OSError, EnvironmentFailure), match="Too many open files"):
        inject(hosts, fault(0.0, "worker-1"), fault(50.0, "worker-2"))
    told = [entry["event"] for entry in raw_entries(Path(hosts.handle.root) / "injector.jsonl")]
    assert told[-2:] == ["failed", "disarmed"]
    assert "missed" not in told


def test_a_strike_that_would_be_absorbed_is_so_even_if_its_host_is_not_reached(hosts, monkeypatch):
    prepare, prepared = hosts.prepare, []

    def prepare_once(*arguments):
        if prepared:
            raise OSError("worker-1 does not answer")
        prepared.append(prepare(*arguments))
        return prepared[0]

    monkeypatch.setattr(hosts, "prepare", prepare_once)
    _, entries = inject(hosts, fault(0.0, "worker-1", heal_after=3.0), fault(1.5, "worker-1", heal_after=0.0))
    assert story(entries) == [("injected", "worker-1"), ("absorbed", "worker-1"), ("healed", "worker-1")]


def test_a_proof_that_takes_long_holds_up_no_other_strike(hosts, monkeypatch):
    monkeypatch.setattr(Termination, "grace_s", 2.0)
    deaf = start(f"{hosts.handle.token}/worker-1/deaf", "sh", "-c", "trap '' TERM; while :; do sleep 0.02; done")
    wait_for(lambda: ignores_sigterm(deaf.pid))
    terminate = fault(0.3, "worker-1", kind="terminate", heal_after=2.5)
    kills = [fault(0.6, "worker-1", heal_after=2.0), fault(0.8, "worker-2", heal_after=2.0)]
    _, entries = inject(hosts, terminate, *kills)
    assert deaf.wait(60) == -signal.SIGKILL
    first, absorbed, second = entries[:3]
    assert story(entries[:3]) == [("injected", "worker-1"), ("absorbed", "worker-1"), ("injected", "worker-2")]
    assert first["done"]["processes killed"] >= 1
    assert absorbed["at_ns"] < first["proved_ns"]
    assert second["fired_ns"] < first["proved_ns"]


def test_no_thread_is_started_while_strikes_are_due(hosts, monkeypatch):
    """Whoever starts one waits until it has a core. What looks at the clocks is started before the first strike."""
    started, start_it = [], threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", lambda thread: (started.append(thread), start_it(thread))[1])
    monkeypatch.setattr(Injector, "run", lambda injector, run=Injector.run: (started.clear(), run(injector))[1])
    _, entries = inject(hosts, fault(0.1, "worker-1", heal_after=0.1), arrival=lambda *_: lambda: True)
    assert story(entries) == [("injected", "worker-1"), ("healed", "worker-1"), ("joined", "worker-1")]
    assert len(started) == 1
    assert hosts.precedence_of_clocks, "strikes wait for it, too, and for the connections that it makes"


def test_a_clock_that_is_told_after_the_end_is_not_journaled(hosts, monkeypatch):
    """An abort does not wait for the hosts that are still asked."""
    has_ended, path = threading.Event(), Path(hosts.handle.root) / "injector.jsonl"

    def tell_late(handle):
        has_ended.wait(LIMIT_S)
        return {"worker-1": ClockOffset(-7, 3)}

    monkeypatch.setattr(hosts, "clocks", tell_late)
    now_ns = time.time_ns()
    injector = Injector(hosts, hosts.handle, Journal(path), FaultPlan(now_ns, now_ns + 60 * 10**9, ()))
    threading.Thread(target=stop_once_told, args=(injector, path, "armed"), daemon=True).start()
    injector.run()
    has_ended.set()
    injector._clocks.join(LIMIT_S)
    assert [entry["event"] for entry in raw_entries(path)] == ["armed", "disarmed"]


def test_an_unforeseen_error_while_clocks_are_read_ends_the_plan_and_is_told(hosts, monkeypatch):
    def fail(handle):
        raise LookupError("no such clock")

    monkeypatch.setattr(hosts, "clocks", fail)
    now_ns, path = time.time_ns(), Path(hosts.handle.root) / "injector.jsonl"
    injector = Injector(hosts, hosts.handle, Journal(path), FaultPlan(now_ns, now_ns + 60 * 10**9, ()))
    with pytest.raises(LookupError):
        injector.run()
    found = [(each["event"], each.get("error")) for each in raw_entries(path)]
    assert found == [("armed", None), ("failed", "no such clock"), ("disarmed", None)]


def test_a_plan_without_faults_ends_at_once(hosts):
    assert inject(hosts)[1] == []
