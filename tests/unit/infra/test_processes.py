"""A host's processes: found by their mark, killed for good, and proved dead. All processes here are real."""

import errno
import os
import signal
import socket
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from experiments.users import user_of
from infra import processes
from infra.process_handles import ProcessHandles
from infra.processes import (
    MARK,
    ROOT,
    carries,
    is_stopped,
    listening,
    machine_busy_s,
    marked,
    marks,
    members,
    owners,
    stands_still,
    start_of,
    usage,
)
from infra.strikes.death import Death
from tests.unit.infra.descriptors import descriptors_left, opened
from tests.unit.loopback import own_address
from tests.unit.marked_processes import start, start_python, wait_for
from tests.unit.testbed.campaigns import first_and_rest

ADDRESS, OTHER_ADDRESS = own_address(7), own_address(8)
LAST_PID = Path("/proc/sys/kernel/ns_last_pid")
IN_A_SESSION_OF_ITS_OWN = "import os, time; os.fork() or os.setsid(); time.sleep(60)"
BORN_ALL_THE_TIME = "while :; do sleep 0.05 & sleep 0.01; done"
LISTENING = f"import socket, time; s = socket.create_server(('{ADDRESS}', 0)); time.sleep(60)"


def test_the_members_of_a_host_carry_its_mark_or_one_below_it(token):
    host, service = start(f"{token}/worker-1"), start(f"{token}/worker-1/spark-worker")
    start(f"{token}/worker-10"), start(f"{token}-2/worker-1"), start(None)
    assert set(members(f"{token}/worker-1")) == {host.pid, service.pid}
    for pid in members(f"{token}-2"):
        os.kill(pid, signal.SIGKILL)


def test_a_process_of_another_user_is_no_member_whatever_it_carries(token):
    if os.geteuid():
        pytest.skip("only root can start processes of another user")
    own = start(f"{token}/worker-1/service")
    variables = {MARK: f"{token}/worker-1/intruder", ROOT: "/nowhere"}
    foreign = subprocess.Popen(["sleep", "60"], env=variables, user=65534, group=65534)
    wait_for(lambda: {process.pid for process in owners() if process.mark.startswith(token)} == {own.pid, foreign.pid})
    assert marked(foreign.pid) == (foreign.pid, 65534, f"{token}/worker-1/intruder", "/nowhere")
    assert members(token) == [own.pid]
    assert marks(f"{token}/") == {f"{token}/worker-1/service"}
    assert Death(token, ADDRESS).fire().left["survivors"] == 0
    assert own.wait(60) == -signal.SIGKILL
    assert foreign.poll() is None
    foreign.kill()


@pytest.mark.parametrize("end", ["\v", "\f", "\r", "\x1c"])
def test_a_process_cannot_lie_about_its_user_by_its_name(token, end):
    """Python takes many characters for the end of a line, and the kernel escapes one of them in a name."""
    renamed = f"import ctypes, time; ctypes.CDLL(None).prctl(15, {f'{end}Uid:{chr(9)}7'.encode()!r}); time.sleep(60)"
    process = start_python(f"{token}/worker-1", renamed)
    wait_for(lambda: b"Uid:" in Path(f"/proc/{process.pid}/comm").read_bytes())
    assert user_of(process.pid) == os.geteuid()
    assert members(token) == [process.pid]
    assert start_of(process.pid) is not None


def test_a_process_that_became_another_users_keeps_no_other_from_its_signal(token, monkeypatch):
    """As a program does that runs with the rights of its owner: from then on it may not be signalled."""
    first, second = start(f"{token}/worker-1"), start(f"{token}/worker-1")
    handles, send = ProcessHandles(token), signal.pidfd_send_signal
    assert set(handles.scan()) == {first.pid, second.pid}
    theirs = handles._open[first.pid]

    def sent(handle, number):
        if handle == theirs:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        send(handle, number)

    monkeypatch.setattr(signal, "pidfd_send_signal", sent)
    handles.signal(signal.SIGKILL)
    assert second.wait(60) == -signal.SIGKILL
    handles.forget_the_ended()
    assert handles.pids == set()
    handles.close()
    first.kill()


def test_children_inherit_the_mark(token):
    shell = start(f"{token}/worker-1", "sh", "-c", "sleep 60 & sleep 60")
    wait_for(lambda: len(members(f"{token}/worker-1")) == 3)
    assert shell.pid in members(f"{token}/worker-1")


@pytest.mark.parametrize("numbers", first_and_rest(range(300), 100))
def test_a_process_amid_its_exec_is_found(token, numbers):
    for number in numbers:
        process = start(f"{token}/worker-{number}")
        assert members(f"{token}/worker-{number}") == [process.pid]
        process.kill()


def test_a_process_without_any_environment_is_a_member_of_nothing(token, monkeypatch):
    bare = subprocess.Popen(["sleep", "60"], env={})
    assert bare.pid not in members(token), "and it has ended its exec"
    pauses = []
    monkeypatch.setattr(processes, "time", SimpleNamespace(sleep=pauses.append))
    assert (marked(bare.pid), pauses) == (None, []), "it is not taken for one amid an exec"
    bare.kill()


def test_a_zombie_is_dead(token):
    process = start(f"{token}/worker-1", "true")
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it has ended and is not reaped yet
    assert not members(token)


def test_marks_below_a_prefix(token):
    for mark in ("gateway/broker", "gateway/broker", "worker-1/spark-worker"):
        start(f"{token}/{mark}")
    assert marks(f"{token}/gateway/") == {f"{token}/gateway/broker"}
    assert marks(f"{token}/") == {f"{token}/gateway/broker", f"{token}/worker-1/spark-worker"}


def test_a_kill_ends_every_process_of_the_host_and_no_other(token):
    own = [start(f"{token}/worker-1/service") for _ in range(3)]
    others = [start(f"{token}/worker-2"), start(f"{token}/worker-11"), start(None)]
    before_ns = time.time_ns()
    proof = Death(f"{token}/worker-1", ADDRESS).fire()
    assert (proof.done["processes killed"], proof.left["survivors"], proof.left["open ports"]) == (3, 0, 0)
    assert before_ns <= proof.fired_ns <= proof.proved_ns <= time.time_ns()
    assert [process.wait(60) for process in own] == [-signal.SIGKILL] * 3
    assert [process.poll() for process in others] == [None] * 3
    others[-1].kill()


def test_a_process_that_left_its_session_and_group_does_not_escape(token):
    parent = start_python(f"{token}/worker-1", IN_A_SESSION_OF_ITS_OWN)
    wait_for(lambda: {os.getsid(pid) for pid in members(token)} > {os.getsid(parent.pid)})
    (child,) = set(members(token)) - {parent.pid}
    assert os.getpgid(child) != os.getpgid(parent.pid)
    proof = Death(f"{token}/worker-1", ADDRESS).fire()
    assert (proof.done["processes killed"], proof.left["survivors"]) == (2, 0)
    assert members(token) == []


def test_processes_that_are_born_meanwhile_do_not_escape(token):
    shell = start(f"{token}/worker-1", "sh", "-c", BORN_ALL_THE_TIME)
    strike = Death(f"{token}/worker-1", ADDRESS)
    wait_for(lambda: set(members(token)) - {shell.pid} - set(strike.scan()) == set())
    time.sleep(0.1)
    assert strike.fire().left["survivors"] == 0
    assert members(token) == []


def test_the_proof_counts_the_ports_that_the_kill_closed(token):
    start_python(f"{token}/worker-1", LISTENING)
    wait_for(lambda: len(listening(ADDRESS)) == 1)
    proof = Death(f"{token}/worker-1", ADDRESS).fire()
    assert (proof.done["processes killed"], proof.left["open ports"]) == (1, 0)
    assert listening(ADDRESS) == []


def test_a_port_that_stays_open_is_no_proof_and_its_foreign_owner_lives_on(token):
    process = start(f"{token}/worker-1")
    with socket.create_server((ADDRESS, 0)):
        proof = Death(f"{token}/worker-1", ADDRESS).fire(limit_s=2.0)
    assert (proof.done["processes killed"], proof.left["survivors"], proof.left["open ports"]) == (1, 0, 1)
    assert process.wait(60) == -signal.SIGKILL


def test_aiming_finds_what_was_started_since(token):
    first = start(f"{token}/worker-1")
    strike = Death(f"{token}/worker-1", ADDRESS)
    second = start(f"{token}/worker-1")
    assert set(strike.scan()) == {first.pid, second.pid}
    assert strike.fire().done["processes killed"] == 2


def test_a_host_that_is_down_has_nothing_to_aim_at(token):
    strike = Death(f"{token}/worker-1", ADDRESS)
    assert strike.scan() == []
    proof = strike.fire()
    assert (proof.done["processes killed"], proof.left["survivors"], proof.left["open ports"]) == (0, 0, 0)


def test_a_process_id_that_was_used_again_is_not_hit(token):
    first = start(f"{token}/worker-1")
    strike = Death(f"{token}/worker-1", ADDRESS)
    first.kill()
    first.wait()
    stranger = _with_id(first.pid, None)
    strike.fire()
    assert stranger.poll() is None
    stranger.kill()


def test_a_new_process_of_the_host_is_hit_also_under_a_used_id(token):
    first = start(f"{token}/worker-1")
    strike = Death(f"{token}/worker-1", ADDRESS)
    first.kill()
    first.wait()
    successor = _with_id(first.pid, f"{token}/worker-1")
    proof = strike.fire()
    assert proof.left["survivors"] == 0
    assert successor.wait(60) == -signal.SIGKILL


def _with_id(pid: int, mark: str | None):
    """Start a process under this id, which was just set free; only root can choose the next id."""
    for _ in range(50):
        try:
            LAST_PID.write_text(str(pid - 1))
        except OSError as error:
            pytest.skip(f"only root, with {LAST_PID} writable, can have a process id used again ({error.strerror})")
        process = start(mark)
        if process.pid == pid:
            return process
        process.kill()
        process.wait()
    return pytest.skip("other programs took the process id first, 50 times over")


def test_listening_ports_of_exactly_one_address():
    with (
        socket.create_server((ADDRESS, 0)) as ours,
        socket.create_server((OTHER_ADDRESS, 0)),
        socket.create_connection(ours.getsockname()),
    ):
        assert listening(ADDRESS) == [ours.getsockname()[1]]


def test_a_jvm_listens_on_the_mapped_address():
    with socket.socket(socket.AF_INET6) as server:
        server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        server.bind((f"::ffff:{ADDRESS}", 0))
        server.listen()
        assert listening(ADDRESS) == [server.getsockname()[1]]


def test_usage_adds_up_live_processes(token):
    busy = start(f"{token}/worker-1", "sh", "-c", "while :; do :; done")
    idle = start(f"{token}/worker-1")
    wait_for(lambda: usage([busy.pid]).cpu_s > 0.05)
    both = usage([busy.pid, idle.pid])
    assert both.rss_bytes > usage([idle.pid]).rss_bytes > 0
    busy.kill()
    busy.wait()
    assert usage([busy.pid]).cpu_s == 0


def test_the_machine_is_busy_as_long_as_a_process_of_it_is(token):
    before_s = machine_busy_s()
    busy = start(f"{token}/worker-1", "sh", "-c", "while :; do :; done")
    wait_for(lambda: usage([busy.pid]).cpu_s > 0.1)
    used_s = usage([busy.pid]).cpu_s
    assert machine_busy_s() - before_s > used_s - 0.05
    assert machine_busy_s() < time.monotonic() * os.cpu_count()


@pytest.mark.parametrize(
    "look",
    [
        lambda mark, pid: carries(pid, f"{MARK}={mark}".encode()),
        lambda mark, pid: marked(pid),
        lambda mark, pid: is_stopped(pid),
        lambda mark, pid: start_of(pid),
        lambda mark, pid: stands_still(pid),
        lambda mark, pid: usage([pid]),
        lambda mark, pid: listening(ADDRESS),
        lambda mark, pid: user_of(pid),
    ],
    ids=["carries", "marked", "is_stopped", "start_of", "stands_still", "usage", "listening", "user_of"],
)
def test_who_cannot_open_another_file_does_not_take_a_process_for_dead(token, look):
    process = start(f"{token}/worker-1")
    look(f"{token}/worker-1", process.pid)  # what it imports is there then
    with descriptors_left(0):
        outcome = outcome_of(look, f"{token}/worker-1", process.pid)
    assert outcome == errno.EMFILE


def test_a_kill_that_lacks_a_descriptor_spares_nobody_in_silence_and_keeps_none(token):
    process = start(f"{token}/worker-1")
    handles, before = ProcessHandles(f"{token}/worker-1"), opened()
    with descriptors_left(1):
        outcome = outcome_of(handles.scan)
    assert (outcome, len(handles), opened() <= before) == (errno.EMFILE, 0, True)
    assert handles.scan() == [process.pid]
    handles.close()


def outcome_of(act, *arguments):
    """What it returns, or the number of the error that it raises."""
    try:
        return act(*arguments)
    except OSError as error:
        return error.errno
