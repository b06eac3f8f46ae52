"""The supervisor as it is run: a process that keeps another one running."""

import os
import signal
import subprocess
import sys

from infra.launch import NEVER_WORKS
from journal.reader import raw_entries
from tests.unit.marked_processes import wait_for

IMPATIENT = "import infra.services.supervisor as s; s.GRACE_S = 0.3; s.main()"
HELD_IN_A_PAUSE = """
import signal, time
from types import SimpleNamespace
import experiments.waiting as waiting
from journal.event import Event
import infra.services.supervisor as s

class Waits(Event, name="waits"):
    pass
record = s.Journal.record
lives = []
def noted(journal, event):
    lives.append(event.name)
    record(journal, event)
    if lives.count("program-started") == 2:
        signal.raise_signal(signal.SIGTERM)
def sleep(seconds):
    if seconds == s.PAUSE_S:
        signal.raise_signal(s.HOLD)
    elif lives[-1] == "program-ended":
        noted(s.journal, Waits())
        signal.raise_signal(s.GO_ON)
    time.sleep(seconds)
def listen(supervisor, before=s.Supervisor.listen):
    s.journal = supervisor.journal
    before(supervisor)
s.Journal.record, s.Supervisor.listen = noted, listen
s.time = waiting.time = SimpleNamespace(monotonic=time.monotonic, sleep=sleep)
s.main()
"""
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(60)"


def supervise(journal, *program, code=("-m", "infra.services.supervisor"), **options):
    return subprocess.Popen([sys.executable, *code, str(journal), *program], **options)


def events(journal, name):
    return [entry for entry in raw_entries(journal) if entry["event"] == name]


def test_a_program_that_dies_is_started_again(tmp_path):
    journal = tmp_path / "supervisor.jsonl"
    supervisor = supervise(journal, "sh", "-c", "exit 3")
    wait_for(lambda: len(events(journal, "program-ended")) >= 2)
    supervisor.terminate()
    assert supervisor.wait(60) == 0
    started, ended = events(journal, "program-started"), events(journal, "program-ended")
    assert [entry["pid"] for entry in started] == [entry["pid"] for entry in ended]
    assert len({entry["pid"] for entry in started}) == len(started) >= 2
    assert {entry["status"] for entry in ended} == {3}


def test_a_program_that_is_killed_is_started_again(tmp_path):
    journal = tmp_path / "supervisor.jsonl"
    supervisor = supervise(journal, "sleep", "60")
    wait_for(lambda: len(events(journal, "program-started")) == 1)
    os.kill(events(journal, "program-started")[0]["pid"], signal.SIGKILL)
    wait_for(lambda: len(events(journal, "program-started")) == 2)
    supervisor.terminate()
    assert supervisor.wait(60) == 0
    assert [entry["status"] for entry in events(journal, "program-ended")] == [-signal.SIGKILL, -signal.SIGTERM]


def test_sigterm_ends_the_program_and_the_supervisor(tmp_path):
    journal = tmp_path / "supervisor.jsonl"
    supervisor = supervise(journal, "sleep", "60")
    wait_for(lambda: len(events(journal, "program-started")) == 1)
    supervisor.terminate()
    assert supervisor.wait(60) == 0
    (program,) = events(journal, "program-ended")
    assert program["status"] == -signal.SIGTERM
    assert not os.path.exists(f"/proc/{program['pid']}")


def test_a_program_that_does_not_listen_is_killed(tmp_path):
    journal = tmp_path / "supervisor.jsonl"
    program = (sys.executable, "-c", DEAF)
    with supervise(journal, *program, code=("-c", IMPATIENT), stdout=subprocess.PIPE) as supervisor:
        supervisor.stdout.readline()
        supervisor.terminate()
        assert supervisor.wait(60) == 0
    assert [entry["status"] for entry in events(journal, "program-ended")] == [-signal.SIGKILL]


def test_a_hold_between_two_lives_keeps_the_next_from_beginning(tmp_path):
    journal = tmp_path / "supervisor.jsonl"
    assert supervise(journal, "true", code=("-c", HELD_IN_A_PAUSE)).wait(60) == 0
    assert [entry["event"] for entry in raw_entries(journal)][:4] == [
        "program-started",
        "program-ended",
        "waits",
        "program-started",
    ]


def test_a_program_that_ends_too_soon_too_often_is_given_up(tmp_path):
    journal = tmp_path / "supervisor.jsonl"
    assert supervise(journal, "sh", "-c", "exit 3").wait(120) == 0
    assert len(events(journal, "program-ended")) == 3


def test_a_program_that_says_that_it_never_works_is_given_up_at_once(tmp_path):
    journal = tmp_path / "supervisor.jsonl"
    assert supervise(journal, "sh", "-c", f"exit {NEVER_WORKS}").wait(120) == 0
    assert len(events(journal, "program-ended")) == 1
