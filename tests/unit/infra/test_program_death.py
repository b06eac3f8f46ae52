"""The death of a program whose supervisor is told to leave it down."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.errors import EnvironmentFailure
from infra.launch import HOLD, PROGRAM
from infra.process_handles import ProcessHandles
from infra.processes import MARK, members
from infra.strikes.program_death import ProgramDeath
from tests.unit.infra.descriptors import opened
from tests.unit.marked_processes import start, wait_for

NOTES_A_HOLD = f"""
import pathlib, signal, sys, time
signal.signal({HOLD.value}, lambda *_: pathlib.Path(sys.argv[1]).write_text("held"))
pathlib.Path(sys.argv[1]).write_text("ready")
time.sleep(60)
"""


def test_nothing_is_searched_for_when_the_strike_is_due(
    token: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search takes tens of milliseconds on a busy machine, and other strikes may be due at the same moment."""
    mark, note = f"{token}/gateway/query", tmp_path / "note"
    variables = {**os.environ, MARK: mark}
    command = [sys.executable, "-c", NOTES_A_HOLD, str(note)]
    supervisor = subprocess.Popen(command, env=variables, start_new_session=True)
    wait_for(lambda: note.exists() and note.read_text() == "ready")
    program = start(f"{mark}/{PROGRAM}")
    strike = ProgramDeath(mark, "127.0.247.1")
    assert strike.refresh()
    with monkeypatch.context() as due:
        due.setattr(ProcessHandles, "find", lambda handles: pytest.fail(f"{handles.mark} is searched for"))
        strike.shoot()
    proof = strike.fire()
    assert program.wait(60) == -signal.SIGKILL
    wait_for(lambda: note.read_text() == "held")
    assert (supervisor.poll(), proof.done, proof.holds) == (None, {"processes killed": 1}, True)


def test_a_strike_that_is_given_up_leaves_no_descriptor_open(token: str) -> None:
    mark = f"{token}/gateway/query"
    supervisor = subprocess.Popen(["sleep", "60"], env={**os.environ, MARK: mark}, start_new_session=True)
    start(f"{mark}/{PROGRAM}")
    before = opened()
    strike = ProgramDeath(mark, "127.0.247.1")
    assert strike.refresh()
    strike.close()
    assert opened() <= before
    assert supervisor.poll() is None


def test_a_program_without_a_supervisor_is_not_struck(token: str) -> None:
    """It would stay dead, and the fault would be told as one whose heal failed."""
    start(f"{token}/gateway/query/{PROGRAM}")
    wait_for(lambda: len(members(token)) == 1)
    before = opened()
    with pytest.raises(EnvironmentFailure, match=r"^query runs without its supervisor; see query.log of the run$"):
        ProgramDeath(f"{token}/gateway/query", "127.0.247.1")
    assert opened() <= before


def test_a_service_that_is_down_as_a_whole_is_not_up(token: str) -> None:
    strike = ProgramDeath(f"{token}/gateway/query", "127.0.247.1")
    assert not strike.refresh()
    strike.close()
