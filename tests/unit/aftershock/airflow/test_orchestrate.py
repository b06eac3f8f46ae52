"""A run on the command line, a script in Airflow's place: what the script is handed, and that the command ends it."""

import io
import json
import os
import signal
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from aftershock.airflow import orchestrate
from aftershock.airflow.terminal_progress import AIRFLOW_STARTS_S
from aftershock.run import steps
from experiments import spec
from experiments.errors import EnvironmentFailure

OUR_LINE = '{"timestamp": "2026-11-20T10:51:09.32Z", "logger": "infra.local", "event": "3 hosts"}'


class Airflow:
    """A script that notes its process id and does as it is told."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch):
        self.program, self.pid, self._monkeypatch = folder / "airflow", folder / "pid", monkeypatch
        self.shown, self.unread = folder / "shown", folder / "unread"

    def does(self, *commands):
        lines = ["#!/bin/sh", f"echo $$ > {self.pid}", *commands]
        self.program.write_text("\n".join(lines) + "\n", encoding="utf-8")
        self.program.chmod(0o755)
        # Not in a fixture: pytest puts its own standard error there when the test itself begins.
        self._monkeypatch.setattr(sys, "stderr", Output(self.shown, self.unread))

    @property
    def is_alive(self):
        return Path(f"/proc/{int(self.pid.read_text())}").exists()


class Output(io.StringIO):
    """Standard error. It makes the file `shown` once the progress is; its reader is gone once `unread` is there."""

    def __init__(self, shown: Path, unread: Path):
        super().__init__()
        self.shown, self.unread = shown, unread

    def write(self, text):
        if self.unread.exists():
            raise BrokenPipeError
        written = super().write(text)
        if self.getvalue().endswith(f"s of about {AIRFLOW_STARTS_S:.0f} s\n"):
            self.shown.touch()
        return written


@pytest.fixture
def airflow(home, tmp_path, monkeypatch):
    @contextmanager
    def no_database(run_id):
        yield dict(os.environ)

    made = Airflow(tmp_path, monkeypatch)
    monkeypatch.setattr(orchestrate, "_own_database", no_database)
    monkeypatch.setattr(orchestrate, "airflow_program", lambda: str(made.program))
    return made


@pytest.fixture
def torn_down(airflow, monkeypatch):
    """What the teardown was told of each run, and whether Airflow was still alive."""
    told = []
    monkeypatch.setattr(steps, "teardown", lambda *given: told.append((*given, airflow.is_alive)))
    return told


def test_a_run_whose_output_nobody_reads_any_more_is_stopped(airflow, torn_down):
    airflow.does(f"touch {airflow.unread}", f"echo '{OUR_LINE}'", "exec sleep 600")
    with pytest.raises(BrokenPipeError):
        orchestrate.run_dag(spec.validate({}), "run-1")
    assert torn_down == [("run-1", "interrupted", False)]


def test_an_interrupt_stops_a_run_whose_output_nobody_reads_any_more(airflow, torn_down):
    shown = f"for look in $(seq 1200); do [ -e {airflow.shown} ] && break; sleep 0.05; done"
    airflow.does(shown, f"touch {airflow.unread}", "kill -TERM $PPID", "exec sleep 600")
    with pytest.raises(KeyboardInterrupt):
        orchestrate.run_dag(spec.validate({}), "run-1")
    assert torn_down == [("run-1", "interrupted", False)]


def test_an_airflow_that_was_killed_is_followed_by_a_teardown(airflow, torn_down):
    airflow.does("kill -KILL $$")
    assert orchestrate.run_dag(spec.validate({}), "run-1") == -9
    assert torn_down == [("run-1", "Airflow was ended by signal 9", False)]


def test_a_run_that_airflow_did_not_bring_to_its_end_was_not_interrupted(airflow, torn_down):
    airflow.does("exit 3")
    with pytest.raises(EnvironmentFailure, match="Airflow ended with status 3"):
        orchestrate.run(spec.validate({}))
    ((_, reason, _),) = torn_down
    assert reason == "Airflow ended with status 3 before the run did"


def test_an_impatient_user_does_not_cut_the_last_teardown_short(airflow, monkeypatch):
    ended = []

    def teardown(*_):
        os.kill(os.getpid(), signal.SIGINT)
        ended.append("whole")

    monkeypatch.setattr(steps, "teardown", teardown)
    airflow.does("exit 3")
    with pytest.raises(EnvironmentFailure, match="Airflow ended with status 3"):
        orchestrate.run(spec.validate({}))
    assert ended == ["whole"]


def test_an_experiment_with_thousands_of_faults_reaches_airflow(airflow, home, tmp_path):
    """As an argument it would be longer than Linux allows."""
    events = [{"at": number / 20, "targets": ["worker-1"]} for number in range(2000)]
    experiment = spec.validate({"faults": {"events": events}})
    handed = home / "airflow" / "command-line" / "run-1.json"
    airflow.does(f"cp {handed} {tmp_path}/handed.json", f'echo "$*" > {tmp_path}/words')
    assert orchestrate.run_dag(experiment, "run-1") == 0
    assert (tmp_path / "words").read_text() == 'dags test benchmark --conf {"run_id": "run-1"}\n'
    assert spec.validate(json.loads((tmp_path / "handed.json").read_text())) == experiment
    assert not handed.exists()


def test_the_experiment_of_a_run_is_read_where_it_was_put(home):
    experiment = spec.load("nexmark-q12")
    with orchestrate._handed_over("run-1", experiment):
        assert spec.validate(orchestrate.experiment_of("run-1")) == experiment
