"""Airflow's metadata database, made by the real `airflow db migrate`."""

import sqlite3
import subprocess
import sys

import pytest

from aftershock.airflow import environment
from aftershock.airflow.pool import RUNS_POOL
from experiments.errors import EnvironmentFailure

pytestmark = pytest.mark.usefixtures("home")


def test_two_processes_at_once_migrate_once(home):
    command = [sys.executable, "-c", "from aftershock.airflow.environment import ensure_database as e; e()"]
    children = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [child.communicate()[1] for child in children]
    assert [child.returncode for child in children] == [0, 0], said
    assert sorted("preparing" in text for text in said) == [False, True]
    with sqlite3.connect(home / "airflow" / "airflow.db") as database:
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert database.execute("SELECT count(*) FROM dag_run").fetchone() == (0,)
        slots = "SELECT slots, include_deferred FROM slot_pool WHERE pool = ?"
        assert database.execute(slots, (RUNS_POOL,)).fetchone() == (1, 1)


def test_a_failed_migration_names_its_cause_and_is_tried_again(monkeypatch, home):
    monkeypatch.setenv(environment.DATABASE_VARIABLE, f"sqlite:///{home}/no/such/folder/airflow.db")
    with pytest.raises(EnvironmentFailure, match="airflow db migrate failed"):
        environment.ensure_database()
    assert not list((home / "airflow").glob("migrated-*"))
