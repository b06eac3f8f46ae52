"""What can be done to a host's processes, on real ones: asked to end, frozen, made slow; each with its proof."""

from __future__ import annotations

import errno
import os
import signal
import threading
import time
from pathlib import Path

import psutil
import pytest

from experiments.fault_kinds import PLAIN, FaultKind, FaultOptions
from infra import process_handles, programs
from infra.process_handles import DYING_POLL_S, ProcessHandles
from infra.processes import is_stopped, members, stands_still, usage
from infra.strikes import delay
from infra.strikes.death import Termination
from infra.strikes.freeze import LONGEST_PAUSE_S, thaw
from infra.strikes.ready import Target, merged, ready, undo
from infra.strikes.strike import Proof
from infra.strikes.throttle import TOLERANCE, Throttle, observe
from tests.unit.infra.descriptors import descriptors_left, opened
from tests.unit.marked_processes import ignores_sigterm, start, start_python, wait_for

ADDRESS = "127.0.251.9"  # no cluster of another test or run has it
BUSY = "while :; do :; done"
DEAF = "trap '' TERM; while :; do sleep 0.02; done"
BORN_ALL_THE_TIME = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
while os.fork():
    time.sleep(0.005)
time.sleep(0.05)
"""
FROM_THREADS = """
import threading, time
for _ in range(8):
    threading.Thread(target=lambda: [hash(i) for i in iter(int, 1)], daemon=True).start()
time.sleep(60)
"""
LOOK_S = 0.3
SLOWED = FaultOptions(cpu_share=0.3)
NOTHING_LEFT = {"throttlers": 0, "interfaces delayed": 0, "frozen": 0}


@pytest.fixture
def host(token):
    return Target(f"{token}/worker-1", ADDRESS)


def stopped(host):
    return [pid for pid in members(host.mark) if is_stopped(pid)]


def prepare(host, kind, options=PLAIN):
    return ready(host, kind, options)


# ---- kill ----


def test_a_walk_that_misses_a_process_is_no_proof_of_death(host, monkeypatch):
    strike = prepare(host, FaultKind.KILL)
    newborn, missed = start(host.mark), [[]]
    monkeypatch.setattr(process_handles, "members", lambda mark: missed.pop() if missed else members(mark))
    proof = strike.fire()
    assert newborn.wait(60) == -signal.SIGKILL
    assert (proof.done, proof.left) == ({"processes killed": 1}, {"survivors": 0, "open ports": 0})


# ---- terminate ----


def test_whoever_is_asked_to_end_does_so_by_itself(host, monkeypatch):
    """The strike does not wait for the end of a grace period that is longer than any test."""
    monkeypatch.setattr(Termination, "grace_s", 3600.0)
    own, other = [start(f"{host.mark}/a") for _ in range(3)], start(f"{host.mark}0")
    strike = prepare(host, FaultKind.TERMINATE)
    due_ns = time.time_ns() + 50_000_000
    strike.shoot(due_ns)
    proof = strike.fire()
    assert [process.wait(60) for process in own] == [-signal.SIGTERM] * 3
    assert proof.fired_ns >= due_ns
    assert (proof.done, proof.left) == (
        {"processes ended": 3, "processes killed": 0}, {"survivors": 0, "open ports": 0}
    )  # fmt: skip
    assert other.poll() is None
    other.kill()


def test_whoever_is_deaf_is_killed_after_the_grace_period(host, monkeypatch):
    monkeypatch.setattr(Termination, "grace_s", 2.0)
    deaf, polite = start(f"{host.mark}/deaf", "sh", "-c", DEAF), start(f"{host.mark}/polite")
    wait_for(lambda: ignores_sigterm(deaf.pid))
    proof = prepare(host, FaultKind.TERMINATE).fire()
    assert (deaf.wait(60), polite.wait(60)) == (-signal.SIGKILL, -signal.SIGTERM)
    assert proof.proved_ns - proof.fired_ns >= 2e9
    assert proof.done["processes killed"] >= 1
    assert proof.done["processes ended"] >= 1
    assert proof.holds
    assert members(host.mark) == []


def test_what_is_born_during_the_grace_period_is_asked_to_end_too(host, monkeypatch):
    monkeypatch.setattr(Termination, "grace_s", 20.0)
    parent = start_python(
        host.mark,
        "import signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (subprocess.Popen(['sleep', '60']), sys.exit()))\n"
        "time.sleep(60)",
    )
    wait_for(lambda: "0000000000004" in Path(f"/proc/{parent.pid}/status").read_text().partition("SigCgt:")[2])
    proof = prepare(host, FaultKind.TERMINATE).fire()
    assert (proof.done, proof.holds) == ({"processes ended": 2, "processes killed": 0}, True)


def test_a_frozen_host_hears_that_it_is_to_end(host):
    process = start(host.mark)
    prepare(host, FaultKind.PAUSE).fire()
    proof = prepare(host, FaultKind.TERMINATE).fire()
    assert proof.done == {"processes ended": 1, "processes killed": 0}
    assert process.wait(60) == -signal.SIGTERM


# ---- pause ----


def test_every_process_stands_still_until_it_is_thawed(host):
    own = [start(f"{host.mark}/a", "sh", "-c", BUSY), start_python(f"{host.mark}/b", FROM_THREADS), start(host.mark)]
    other = start(f"{host.mark}0")
    strike = prepare(host, FaultKind.PAUSE)
    due_ns = time.time_ns() + 50_000_000
    strike.shoot(due_ns)
    proof = strike.fire()
    assert 0 <= proof.fired_ns - due_ns < 2 * 10**9
    assert (proof.done, proof.left) == ({"processes frozen": 3}, {"running": 0})
    assert all(stands_still(process.pid) for process in own)
    before = usage(members(host.mark)).cpu_s
    assert not is_stopped(other.pid)
    thawed = undo(host, FaultKind.PAUSE)
    assert (thawed.done, thawed.left) == ({"processes thawed": 3}, {"frozen": 0})
    assert stopped(host) == []
    wait_for(lambda: usage(members(host.mark)).cpu_s > before)
    other.kill()


def test_what_is_born_while_it_is_frozen_is_frozen(host):
    start_python(host.mark, BORN_ALL_THE_TIME)
    wait_for(lambda: len(members(host.mark)) > 2)
    proof = prepare(host, FaultKind.PAUSE).fire()
    frozen = members(host.mark)
    assert proof.left == {"running": 0}
    assert len(frozen) == proof.done["processes frozen"]
    assert sorted(stopped(host)) == sorted(frozen)


def test_thawing_what_is_not_frozen_is_harmless(host):
    assert undo(host, FaultKind.PAUSE).done == {"processes thawed": 0}
    process = start(host.mark)
    assert undo(host, FaultKind.PAUSE).left == {"frozen": 0}
    assert process.poll() is None


def test_a_frozen_host_can_be_killed(host):
    process = start(host.mark)
    prepare(host, FaultKind.PAUSE).fire()
    proof = prepare(host, FaultKind.KILL).fire()
    assert (proof.done, proof.holds) == ({"processes killed": 1}, True)
    assert process.wait(60) == -signal.SIGKILL


def test_what_goes_on_running_is_told(host):
    process = start(host.mark)
    on = threading.Event()

    def wake() -> None:
        while not on.is_set():
            os.kill(process.pid, signal.SIGCONT)

    waker = threading.Thread(target=wake)
    waker.start()
    try:  # at times it may be looked at between two signals
        wait_for(lambda: prepare(host, FaultKind.PAUSE).fire(limit_s=0.05).left == {"running": 1})
    finally:
        on.set()
        waker.join()


# ---- slow ----


@pytest.mark.extended
@pytest.mark.parametrize("share", [0.1, 0.8])
def test_a_slow_host_gets_its_share_of_the_time(host, share):
    busy = start(f"{host.mark}/busy", "sh", "-c", BUSY)
    start(f"{host.mark}/idle")
    strike = prepare(host, FaultKind.SLOW, FaultOptions(cpu_share=share))
    assert stopped(host) == [], "not before it is due"
    strike.shoot(time.time_ns() + 50_000_000)
    before, began = usage([busy.pid]).cpu_s, time.monotonic()
    proof = strike.fire()
    used = (usage([busy.pid]).cpu_s - before) / (time.monotonic() - began)
    assert proof.left == {"above share": 0, "never stopped": 0}
    assert proof.done["processes slowed"] == 2
    assert proof.done["busiest thread in %"] <= 100 * (share + TOLERANCE)
    assert used < share + TOLERANCE
    healed = undo(host, FaultKind.SLOW)
    assert healed.left == NOTHING_LEFT
    assert members(host.throttler) == []
    assert observe(host.mark, LOOK_S).stopped == set()


@pytest.fixture
def slow_tc(tmp_path, monkeypatch):
    """A `tc` that takes 50 ms for what it reads; returns the file in which it says that it has been started."""
    started = tmp_path / "started"
    (tmp_path / "tc").write_text(f"#!/bin/sh\n[ $1 = -batch ] || exit 1\ntouch {started}\ncat\nsleep 0.05\n")
    (tmp_path / "tc").chmod(0o755)
    monkeypatch.setattr(programs, "search_path", lambda: f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(delay, "root_handles", lambda interface: [delay.SYSTEMS])
    return started


def test_a_delay_takes_effect_when_the_program_that_sets_it_has_ended(slow_tc):
    strike = delay.Delay("nobody", ADDRESS, 0.1)
    wait_for(slow_tc.exists)  # ahead, and not when it is due: a start takes long on a busy machine
    due_ns = time.time_ns() + 10_000_000
    strike.shoot(due_ns)
    assert strike.fire().fired_ns >= due_ns + 50_000_000


def test_a_delay_that_is_given_up_leaves_no_program(slow_tc):
    strike = delay.Delay("nobody", ADDRESS, 0.1)
    wait_for(slow_tc.exists)
    assert "tc" in {child.name() for child in psutil.Process().children()}
    strike.close()
    assert "tc" not in {child.name() for child in psutil.Process().children()}


def test_a_slowness_of_which_a_part_cannot_be_made_leaves_no_program_of_another(host, slow_tc, monkeypatch):
    def no_process(*_):
        raise OSError(errno.EAGAIN, "no process more")

    monkeypatch.setattr(Throttle, "_start", no_process)
    assert failure_of(lambda: prepare(host, FaultKind.SLOW, FaultOptions(cpu_share=0.5, delay=0.1))) == errno.EAGAIN
    assert "tc" not in {child.name() for child in psutil.Process().children()}


def test_a_host_is_slow_as_a_whole_when_the_last_part_has_taken_effect():
    proof = merged([Proof(3, 7, {"interfaces delayed": 1}, {}), Proof(4, 6, {"processes slowed": 2}, {})])
    assert (proof.fired_ns, proof.proved_ns) == (4, 7)
    assert proof.done == {"interfaces delayed": 1, "processes slowed": 2}


def test_new_processes_are_slow_as_well(host):
    start(host.mark)
    prepare(host, FaultKind.SLOW, SLOWED).fire()
    later = [start(f"{host.mark}/later", "sh", "-c", BUSY) for _ in range(2)]
    wait_for(lambda: all(is_stopped(process.pid) for process in later))
    seen = observe(host.mark)
    assert len(seen.stopped) == len(seen.cpu_shares) == 3
    assert max(seen.cpu_shares.values()) < 0.3 + TOLERANCE
    assert undo(host, FaultKind.SLOW).holds


def test_a_throttler_that_is_not_needed_ends(host):
    start(host.mark)
    strike = prepare(host, FaultKind.SLOW, SLOWED)
    wait_for(lambda: len(members(host.throttler)) == 1)
    strike.close()
    assert members(host.throttler) == []
    assert stopped(host) == []


def test_a_slow_host_whose_throttler_died_is_thawed_when_it_is_healed(host):
    start(host.mark)
    prepare(host, FaultKind.SLOW, FaultOptions(cpu_share=0.02)).fire()
    (throttler,) = members(host.throttler)
    wait_for(lambda: bool(stopped(host)))
    os.kill(throttler, signal.SIGKILL)
    wait_for(lambda: members(host.throttler) == [])
    assert undo(host, FaultKind.SLOW).left == NOTHING_LEFT
    assert stopped(host) == []
    assert undo(host, FaultKind.SLOW).left == NOTHING_LEFT, "and once more"


def test_a_throttler_that_was_ended_too_early_is_started_again(host):
    start(host.mark)
    strike = prepare(host, FaultKind.SLOW, SLOWED)
    undo(host, FaultKind.SLOW)  # of the fault before, while this one is made ready
    assert members(host.throttler) == []
    strike.shoot(0)
    proof = strike.fire()
    assert proof.holds
    assert len(members(host.throttler)) == 1
    undo(host, FaultKind.SLOW)


@pytest.mark.parametrize("kind", [FaultKind.PAUSE, FaultKind.KILL])
def test_a_stronger_fault_at_the_same_moment_is_not_undone_by_the_proof_of_slowness(host, kind):
    process = start(f"{host.mark}/a", "sh", "-c", BUSY)
    slow, stronger = prepare(host, FaultKind.SLOW, SLOWED), prepare(host, kind)
    slow.shoot(0)
    stronger.shoot(0)
    wait_for(lambda: members(host.throttler) == [] or process.poll() is not None)
    wait_for(lambda: is_stopped(process.pid) or process.poll() is not None)
    before = usage([process.pid]).cpu_s
    assert slow.fire().holds
    assert usage([process.pid]).cpu_s == before
    assert stronger.fire().holds
    assert members(host.throttler) == []


def test_a_pause_takes_the_place_of_slowness(host):
    start(host.mark, "sh", "-c", BUSY)
    prepare(host, FaultKind.SLOW, SLOWED).fire()
    proof = prepare(host, FaultKind.PAUSE).fire()
    assert (proof.done, proof.left) == ({"processes frozen": 1}, {"running": 0})
    assert members(host.throttler) == []
    assert set(observe(host.mark, LOOK_S).cpu_shares.values()) == {0}
    assert undo(host, FaultKind.PAUSE).holds
    assert observe(host.mark, LOOK_S).stopped == set()


@pytest.mark.parametrize("kind", [FaultKind.KILL, FaultKind.TERMINATE])
def test_a_host_that_died_while_it_was_slow_is_reborn_as_fast_as_ever(host, kind):
    start(host.mark, "sh", "-c", BUSY)
    prepare(host, FaultKind.SLOW, FaultOptions(cpu_share=0.05)).fire()
    assert prepare(host, kind).fire().holds
    assert members(host.throttler) == []
    start(host.mark)
    assert observe(host.mark, LOOK_S).stopped == set()


def test_a_slow_host_can_be_thawed_meanwhile(host):
    """As when its pause ends at the moment at which it becomes slow."""
    start(host.mark)
    prepare(host, FaultKind.SLOW, FaultOptions(cpu_share=0.05)).fire()
    assert undo(host, FaultKind.PAUSE).left == {"frozen": 0}
    wait_for(lambda: len(observe(host.mark, LOOK_S).stopped) == 1)  # the throttler goes on
    undo(host, FaultKind.SLOW)


def test_a_host_that_is_down_has_nothing_to_strike(host):
    for kind in (FaultKind.TERMINATE, FaultKind.PAUSE, FaultKind.SLOW):
        strike = prepare(host, kind, SLOWED)
        assert not strike.refresh()
        strike.close()
    assert members(host.throttler) == []


def test_a_strike_that_was_shot_at_a_host_that_died_meanwhile_holds(host):
    process = start(host.mark)
    for kind in (FaultKind.TERMINATE, FaultKind.PAUSE, FaultKind.SLOW):
        strike = prepare(host, kind, SLOWED)
        process.kill()
        process.wait()
        strike.shoot(0)
        assert strike.fire().holds
    undo(host, FaultKind.SLOW)


# ---- in real time ----


def kill_all_of(host, limit_s):
    handles = ProcessHandles(host.mark)
    handles.kill(limit_s)
    handles.close()


@pytest.mark.parametrize(
    ("prove", "pause_s", "first"),
    [
        (lambda host, limit_s: prepare(host, FaultKind.KILL).fire(limit_s), DYING_POLL_S, 1),
        (lambda host, limit_s: prepare(host, FaultKind.TERMINATE).fire(limit_s), DYING_POLL_S, 2),
        (kill_all_of, DYING_POLL_S, 1),
        (lambda host, limit_s: prepare(host, FaultKind.PAUSE).fire(limit_s), LONGEST_PAUSE_S, 8),
    ],
    ids=["kill", "terminate", "handles", "pause"],
)
def test_a_proof_leaves_what_it_waits_for_its_cpu_time(host, monkeypatch, prove, pause_s, first):
    """It has the precedence of real time: if it looked all the time, what is to end would have no core to do so.

    `first`: looks when it is prepared, in its grace period, and before its pauses have their length.
    """
    looks = []
    monkeypatch.setattr(process_handles, "members", lambda mark: looks.append(mark) or members(mark))
    monkeypatch.setattr(Termination, "grace_s", 0.0)
    monkeypatch.setattr(ProcessHandles, "signal", lambda *_: None)  # as if it were dying all the time
    process, limit_s = start(host.mark), 1.0
    prove(host, limit_s)
    assert looks.count(host.mark) <= limit_s / pause_s + first + 2
    process.kill()


# ---- a lack of descriptors ----

KINDS = [FaultKind.KILL, FaultKind.TERMINATE, FaultKind.POWER_OFF, FaultKind.PAUSE]


@pytest.fixture
def two_processes(host):
    started = [start(f"{host.mark}/{name}") for name in "ab"]
    wait_for(lambda: len(members(host.mark)) == 2)
    return started


@pytest.mark.parametrize("kind", KINDS)
def test_a_strike_that_cannot_be_prepared_keeps_no_descriptor(host, kind, two_processes):
    """Whoever lacks them needs each to undo what was struck before."""
    before = opened()
    with descriptors_left(2):  # a handle on one process, and its environment
        failure = failure_of(lambda: prepare(host, kind))
    assert (failure, opened() <= before) == (errno.EMFILE, True)


@pytest.mark.parametrize("kind", KINDS)
def test_a_strike_that_cannot_be_proved_keeps_no_descriptor(host, kind, two_processes):
    before, strike = opened(), prepare(host, kind)
    with descriptors_left(0):
        failure = failure_of(strike.fire)
    assert (failure, opened() <= before) == (errno.EMFILE, True)


def test_a_thaw_that_fails_keeps_no_descriptor(host, two_processes):
    before = opened()
    with descriptors_left(2):
        failure = failure_of(lambda: thaw(host.mark))
    assert (failure, opened() <= before) == (errno.EMFILE, True)


def failure_of(act):
    """The number of the error that it raises; None if it raises none."""
    try:
        act()
    except OSError as error:
        return error.errno
    return None
