"""What a terminal, and what a file, is told of the progress of a run."""

import errno
import io
import shutil

import pytest

from aftershock.airflow import terminal_progress
from aftershock.airflow.terminal_progress import TerminalProgress, awaited, described
from aftershock.run import step_notes
from aftershock.run.live_run import LiveRun
from aftershock.run.step_progress import RunProgress, StepProgress, StepState, learn_from
from results.runs import store
from tests.e2e.example_run import LIVE


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(terminal_progress.time, "monotonic", lambda: now[0])
    return now


def steps(took_s=20.0):
    first = StepProgress("provision", "create the hosts", StepState.DONE, 9.0, 10.0)
    return first, StepProgress("deploy", "start the query", StepState.GOING_ON, took_s, 80.0)


def test_the_step_its_clock_and_the_rest_of_the_run_are_in_one_line():
    progress = RunProgress(steps(), "the query to start", 4.2, 372.0)
    assert described(progress) == "step 2 of 2, deploy: start the query (20 s of about 80 s); about 6 min left"
    assert awaited(progress) == "waiting for the query to start (4 s)"


def test_a_step_that_takes_much_longer_says_so():
    assert awaited(RunProgress(steps(121.0), None, 0.0, 60.0)) == "longer than usual"
    assert awaited(RunProgress(steps(119.0), None, 0.0, 60.0)) is None


def test_a_file_gets_a_line_at_each_step_and_each_half_minute(setting_up, clock, capsys):
    with TerminalProgress(LIVE) as progress:
        assert capsys.readouterr().err == "Airflow starts: 0 s of about 30 s\n"
        step_notes.begin(LIVE, "provision")
        for _ in range(5):
            clock[0] += 10
            progress.look()
        progress.line("12:00:00 a line of the run")
    first, second, line = capsys.readouterr().err.splitlines()
    assert first.startswith("step 1 of 12, provision: ")
    assert second.startswith("step 1 of 12, provision: ")
    assert line == "12:00:00 a line of the run"


def test_a_terminal_shows_the_last_look_below_the_lines_and_leaves_only_those(setting_up, clock, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with TerminalProgress(LIVE) as progress:
        step_notes.begin(LIVE, "provision")
        clock[0] += 1
        progress.look()
        assert "step 1 of 12, provision" in terminal.getvalue()
        progress.line("12:00:00 [a line] of the run")
    assert "12:00:00 [a line] of the run" in terminal.getvalue()
    assert "\x1b[2K" in terminal.getvalue(), "what was shown is erased"


def test_a_closed_terminal_does_not_hide_what_ended_the_command(setting_up, clock, monkeypatch):
    class Closed(io.StringIO):
        is_open = True

        def isatty(self):
            return True

        def write(self, text):
            if not self.is_open:
                raise OSError(errno.EIO, "the terminal has hung up")
            return super().write(text)

    terminal = Closed()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")

    def interrupted():
        with TerminalProgress(LIVE):
            terminal.is_open = False
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()


def test_of_a_run_that_is_over_nothing_more_is_said(setting_up, clock, capsys):
    with TerminalProgress(LIVE) as progress:
        step_notes.begin(LIVE, "provision")
        clock[0] += 10
        progress.look()
        shutil.rmtree(store.live_directory(LIVE))
        clock[0] += 60
        progress.look()
    starting, provision = capsys.readouterr().err.splitlines()
    assert starting.startswith("Airflow starts: ")
    assert provision.startswith("step 1 of 12, provision: ")


@pytest.mark.parametrize("plan", ["[]", "{", '{"events": 3}', '{"events": [[]]}'])
def test_a_damaged_run_is_not_ended_by_its_display(setting_up, clock, capsys, plan):
    step_notes.begin(LIVE, "provision")
    LiveRun(LIVE).plan_path.write_text(plan)
    with TerminalProgress(LIVE) as progress:
        clock[0] += 60
        progress.look()
    learn_from(LiveRun(LIVE))
    assert capsys.readouterr().err.splitlines()[-1] == "Airflow starts: 60 s of about 30 s"


def test_a_run_that_never_began_is_no_failure_of_its_display(clock, capsys):
    with TerminalProgress("never-began") as progress:
        clock[0] += 60
        progress.look()
    assert capsys.readouterr().err.splitlines()[-1] == "Airflow starts: 60 s of about 30 s"
