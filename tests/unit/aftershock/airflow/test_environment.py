"""The environment for Airflow: what it sets, what it leaves to the user, and what it keeps secret."""

import json
import os
import socket
import stat
import threading
from pathlib import Path

import pytest

from aftershock.airflow import environment, orchestrate, serve
from experiments import locks, spec
from experiments.errors import BadInput, EnvironmentFailure


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    """The environment of somebody who set none of the programs' variables."""
    for name in list(os.environ):
        if name.startswith(("AIRFLOW", "GX_")):
            monkeypatch.delenv(name)


def test_everything_lives_under_the_home_and_on_loopback(home):
    variables = environment.environment(9123)
    assert variables["AIRFLOW_HOME"] == str(home / "airflow")
    assert str(home / "airflow" / "airflow.db") in variables["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"]
    assert variables["AIRFLOW__API__HOST"] == "127.0.0.1"
    assert variables["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] == "http://127.0.0.1:9123/execution/"
    assert (Path(variables["AIRFLOW__CORE__DAGS_FOLDER"]) / "benchmark.py").is_file()


@pytest.mark.parametrize(("cores", "processes"), [(1, 4), (2, 4), (48, 48), (None, 4)])
def test_as_many_tasks_run_at_once_as_there_are_cores_and_no_fewer_than_a_night_needs(monkeypatch, cores, processes):
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    assert environment.environment()["AIRFLOW__CORE__PARALLELISM"] == str(processes)


def test_nothing_is_reported_to_anyone():
    variables = environment.environment()
    assert variables["AIRFLOW__USAGE_DATA_COLLECTION__ENABLED"] == "False"
    assert variables["GX_ANALYTICS_ENABLED"] == "False"


def test_a_variable_that_is_set_wins(monkeypatch):
    monkeypatch.setenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "postgresql+psycopg2://db/airflow")
    variables = environment.environment()
    assert variables["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"] == "postgresql+psycopg2://db/airflow"
    assert environment.sqlite_file(variables) is None


@pytest.mark.parametrize(
    ("given", "spared"),
    [
        ({}, "127.0.0.1"),
        ({"NO_PROXY": "intranet,.example.org"}, "intranet,.example.org,127.0.0.1"),
        ({"no_proxy": "intranet, 127.0.0.1", "NO_PROXY": "other"}, "intranet, 127.0.0.1"),
        ({"no_proxy": "*"}, "*"),
    ],
)
def test_tasks_ask_no_proxy_for_the_api_server(home, monkeypatch, given, spared):
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    for name, hosts in given.items():
        monkeypatch.setenv(name, hosts)
    made = environment.environment()
    assert (made["no_proxy"], made["NO_PROXY"]) == (spared, spared)


def test_a_shell_that_knows_a_server_at_another_port_does_not_send_tasks_there(monkeypatch):
    for name, value in environment.environment(8081).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example.org")  # set by hand: it stays
    at_8081, at_9123 = environment.environment(), environment.environment(9123)
    assert at_8081["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] == "http://127.0.0.1:8081/execution/"
    assert at_9123["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] == "http://127.0.0.1:9123/execution/"
    assert at_9123["AIRFLOW__API__PORT"] == "9123"
    assert at_9123["AIRFLOW__API__BASE_URL"] == "https://airflow.example.org"


@pytest.mark.parametrize(("address", "times"), [(None, 1), ("postgresql+psycopg2://db/airflow", 2)])
def test_a_database_that_may_be_another_one_by_now_is_migrated_again(home, monkeypatch, address, times):
    """A server that was set up anew has an empty one under the same address."""
    if address:
        monkeypatch.setenv(environment.DATABASE_VARIABLE, address)
    migrated = []
    monkeypatch.setattr(environment, "_migrate", lambda variables, log: migrated.append(log))
    monkeypatch.setattr(environment, "_write_ahead", Path.touch)
    for _ in range(2):
        environment.ensure_database()
    assert len(migrated) == times


def test_the_users_python_path_is_kept_behind_the_repository(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/opt/mine")
    expected = f"{environment.REPOSITORY}:/opt/mine"
    assert environment.environment()["PYTHONPATH"] == expected


def test_secrets_are_made_once_and_only_their_owner_reads_them(home):
    found = []
    threads = [threading.Thread(target=lambda: found.append(environment.environment())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len({variables["AIRFLOW__API_AUTH__JWT_SECRET"] for variables in found}) == 1
    assert stat.S_IMODE((home / "airflow" / "secrets.json").stat().st_mode) == 0o600
    assert stat.S_IMODE((home / "airflow").stat().st_mode) == 0o700


def test_the_admin_password_stays_and_other_passwords_are_kept(home):
    password = environment.admin_password()
    file = environment.password_file()
    assert set(json.loads(file.read_text())) == {"admin", "viewer"}  # of a user without one Airflow logs what it makes
    file.write_text(json.dumps({**json.loads(file.read_text()), "viewer": "theirs"}))
    assert environment.admin_password() == password
    assert json.loads(file.read_text()) == {"admin": password, "viewer": "theirs"}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_serving_on_a_taken_port_says_so_before_anything_starts(home):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(EnvironmentFailure, match=f"port {taken.getsockname()[1]} of 127.0.0.1"):
            serve.serve(taken.getsockname()[1])
    assert os.listdir(home / "airflow") == [serve.SERVER]


def test_running_refuses_bad_input_before_anything_starts(home):
    with pytest.raises(BadInput, match="run_id"):
        orchestrate.run_dag(spec.validate({}), "../run")
    assert not (home / "airflow").exists()


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (
            '{"timestamp":"2026-11-20T10:51:09.32Z","logger":"aftershock.airflow.tasks","event":"deploy ..."}',
            "10:51:09 deploy ...",
        ),
        ('{"timestamp":"2026-11-20T10:51:09.32Z","logger":"infra.local","event":"3 hosts"}', "10:51:09 3 hosts"),
        ('{"timestamp":"2026-11-20T10:51:09.32Z","logger":"airflow.models.dagrun","event":"Created"}', None),
        ("Traceback (most recent call last):", None),
        ("17", None),
        (
            '{"timestamp":"2026-11-20T10:51:09.32Z","logger":"infra.local","event":"a\\u001b[2J\\nb"}',
            "10:51:09 a\\x1b[2J\\nb",
        ),
        ("[" * 200_000, None),
    ],
)
def test_only_the_projects_own_lines_are_shown(line, shown):
    assert orchestrate.readable(line) == shown


def test_what_a_run_tells_of_a_lock_that_it_waits_for_is_shown():
    record = {"timestamp": "2026-11-20T10:51:09.32Z", "logger": locks.log.name, "event": "waiting for a start"}
    assert orchestrate.readable(json.dumps(record)) == "10:51:09 waiting for a start"
