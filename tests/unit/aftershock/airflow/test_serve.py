"""The components of `serve`, here shell scripts: those that die are started again, and only theirs are ended."""

import os
import re
import signal
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from aftershock.airflow import serve, signals
from experiments.errors import EnvironmentFailure
from infra.launch import REPOSITORY
from tests.unit.marked_processes import wait_for

SCRIPT = """#!/bin/sh
case $1 in
scheduler) [ -e "$0.ran" ] || { touch "$0.ran"; exec sleep 600; } ;;
esac
sleep 600 & echo $! >> "$0.children"
wait
"""
SERVER = """
import os, sys
from aftershock.airflow import serve
serve.airflow_program = lambda: sys.argv[1]
components = serve._Components(dict(os.environ), 8080)
components.start(*serve.COMPONENTS)
print(*(leader.pid for leader in components.leaders), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def components(tmp_path, monkeypatch):
    """Components that are running, with the script that they are."""
    monkeypatch.setattr(serve, "STABLE_S", 0.0)
    program = tmp_path / "airflow-script"
    program.write_text(SCRIPT)
    program.chmod(0o755)
    monkeypatch.setattr(serve, "airflow_program", lambda: str(program))
    made = serve._Components(dict(os.environ), 8080)
    made.start(*serve.COMPONENTS)
    wait_for(lambda: Path(f"{program}.children").exists() and Path(f"{program}.ran").exists())
    yield made
    made.stop()


def test_the_id_of_a_dead_component_is_given_to_no_other_before_all_have_ended(components):
    """The signal to its group would end the other one."""
    dead, _ = components.running["scheduler"]
    os.kill(dead.pid, signal.SIGKILL)
    wait_for(lambda: signals.status_of(dead) is not None)  # its program is gone a moment before it has ended
    components.revive()
    assert components.running["scheduler"][0].pid != dead.pid
    assert Path(f"/proc/{dead.pid}").exists(), "it was reaped"
    components.stop()
    assert dead.returncode == -signal.SIGKILL
    assert not Path(f"/proc/{dead.pid}").exists()


def test_a_child_that_a_dead_component_left_is_ended(components, tmp_path):
    dead, _ = components.running["triggerer"]
    group = {child for child in children(tmp_path) if os.getpgid(child) == dead.pid}
    wait_for(lambda: bool(group or group.update(c for c in children(tmp_path) if os.getpgid(c) == dead.pid)))
    os.kill(dead.pid, signal.SIGKILL)
    wait_for(lambda: signals.status_of(dead) is not None)
    components.revive()
    components.stop()
    wait_for(lambda: not any(Path(f"/proc/{child}/exe").exists() for child in group))


def children(folder):
    return [int(line) for line in (folder / "airflow-script.children").read_text().split()]


def test_no_component_outlives_a_server_that_is_killed(home, tmp_path):
    """They would keep the port, and run beside those of the next one."""
    program = tmp_path / "airflow-script"
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(0o755)
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(program)], cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    started = list(map(int, server.stdout.readline().split()))
    assert len(started) == len(serve.COMPONENTS)
    server.kill()
    server.wait()
    wait_for(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in started))


@pytest.mark.parametrize(("code", "status"), [("raise SystemExit(7)", 7), ("import os; os.kill(os.getpid(), 9)", -9)])
def test_how_a_child_ended_is_known_before_its_id_is_free(code, status):
    child = subprocess.Popen([sys.executable, "-c", code])
    wait_for(lambda: signals.status_of(child) is not None)
    assert signals.status_of(child) == status
    assert Path(f"/proc/{child.pid}").exists(), "it is not buried"
    assert child.wait() == status
    assert signals.status_of(child) == status


def test_a_child_that_runs_has_no_status():
    with subprocess.Popen(["sleep", "600"]) as child:
        assert signals.status_of(child) is None
        child.kill()


def test_a_leader_that_was_buried_has_no_group(monkeypatch):
    """Its number may be another's by now."""
    sent = []
    monkeypatch.setattr(os, "killpg", lambda *signal: sent.append(signal))
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as child:
        signals.signal_group(child, signal.SIGTERM)
        assert sent == [(child.pid, signal.SIGTERM)]
        child.kill()
    signals.signal_group(child, signal.SIGTERM)
    assert len(sent) == 1


def test_nothing_of_airflow_listens_beyond_this_machine():
    """Scheduler and triggerer would serve their logs on every address of it."""
    assert serve.API_HOST == "127.0.0.1"
    assert serve.COMPONENTS["api-server"] == ["--host", serve.API_HOST]
    assert "--skip-serve-logs" in serve.COMPONENTS["scheduler"]
    assert "--skip-serve-logs" in serve.COMPONENTS["triggerer"]
    assert serve.COMPONENTS.keys() == {"api-server", "scheduler", "dag-processor", "triggerer"}


def test_no_proxy_is_asked_whether_the_api_server_answers(monkeypatch):
    class Page(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            """Nothing is logged."""

    with HTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
        monkeypatch.delenv("no_proxy", raising=False)
        try:
            assert serve._answers(f"http://127.0.0.1:{server.server_port}/")
        finally:
            server.shutdown()
            thread.join()


def test_a_second_server_of_a_home_is_refused_and_told_the_first(home, monkeypatch):
    """On another port, it would start another scheduler on the same database."""
    started = []
    monkeypatch.setattr(serve, "ensure_database", started.append)
    first = re.escape(f"already runs for {home} (process {os.getpid()}, http://127.0.0.1:8080)")
    with serve._alone(8080):
        for port in (8080, 8081):
            with pytest.raises(EnvironmentFailure, match=first):
                serve.serve(port)
    assert started == []
    with serve._alone(8081):
        assert (home / "airflow" / serve.SERVER).read_text() == f"process {os.getpid()}, http://127.0.0.1:8081"


def test_the_api_server_has_the_cores_alone_until_it_answers(monkeypatch):
    told = {}

    class Recorded(serve._Components):
        def _start(self, name):
            self.running[name] = None

        def stop(self):
            told["stopped"] = set(self.running)

    def greeted(address):
        told["greeted"] = (address, set(components[0].running))
        raise KeyboardInterrupt

    components = []
    monkeypatch.setattr(serve, "_Components", lambda *given: components.append(Recorded(*given)) or components[0])
    monkeypatch.setattr(serve, "ensure_database", lambda variables: None)
    monkeypatch.setattr(serve, "_check_free", lambda port: None)
    monkeypatch.setattr(serve, "_wait_until_ready", lambda made, port: told.update(awaited=set(made.running)))
    monkeypatch.setattr(serve, "greet", greeted)
    serve.serve(8099)
    assert told == {
        "awaited": {"api-server"},
        "greeted": ("http://127.0.0.1:8099", set(serve.COMPONENTS)),
        "stopped": set(serve.COMPONENTS),
    }
