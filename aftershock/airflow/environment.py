"""The environment under which Airflow runs for this project, and the metadata database that goes with it.

A variable that is already set wins, so a deployment moves to another database or executor by setting one variable.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import secrets
import sqlite3
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from aftershock.airflow import pool
from experiments.errors import EnvironmentFailure
from experiments.locks import locked
from infra.credentials import write_private
from results.runs.home import home

REPOSITORY = Path(__file__).resolve().parents[2]
API_HOST, API_PORT = "127.0.0.1", 8080
EVERY_HOST = "*"  # in the list of hosts for which no proxy is asked
PAGES = "plugin/aftershock/aftershock"  # our pages in Airflow's own frame: the external view's route, then its address
ADMIN = "admin"
ROLES = {ADMIN: "admin", "viewer": "viewer"}
LEAST_PROCESSES = 4
READ_AGAIN_S = 120  # a DAG file that did not change; all of them take 1.3 s of CPU time (docs/lab/serve.md)
LOOK_S = 2  # between two looks of an idle scheduler for work: so much later, at most, a task begins
HEARTBEAT_S = 10  # of each component; Airflow calls one unhealthy after 30 s without
SQLITE_WAIT_S = 120  # how long a writer waits for another one; Airflow's components share one SQLite file
# A task's request waits for the database, too. If the task gave up earlier (by default after 5 s) and sent the request
# again, the server would carry out both and refuse the second, and the task would fail.
REQUEST_LIMIT_S = SQLITE_WAIT_S + 30
LOCK, MAKING_SECRETS = ".lock", "the making of secrets for Airflow"
DATABASE_VARIABLE = "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"


def airflow_home() -> Path:
    """Where Airflow keeps its database, logs and secrets; only its owner may enter."""
    path = home() / "airflow"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def airflow_program() -> str:
    """The `airflow` of the interpreter that runs this."""
    return str(Path(sys.executable).parent / "airflow")


def sqlite_url(path: Path) -> str:
    """The address of a database file, for SQLAlchemy; a connection waits `SQLITE_WAIT_S` for a lock."""
    return f"sqlite:///{path}?timeout={SQLITE_WAIT_S}"


def environment(port: int | None = None) -> dict[str, str]:
    """All variables of this process plus Airflow's.

    `port` [TCP] is where the API server is about to listen. A shell that has sourced these variables may tell another.
    """
    folder = airflow_home()
    defaults = {
        "AIRFLOW_HOME": str(folder),
        DATABASE_VARIABLE: sqlite_url(folder / "airflow.db"),
        **_core(folder),
        **_api(port or API_PORT),
        **_idle(),
        **_quiet(),
    }
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    python_path = os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH")]))
    given = dict(os.environ) if port is None else _without_another_server()
    own = {"PATH": path, "PYTHONPATH": python_path, "AFTERSHOCK_HOME": str(home())}
    return {**defaults, **given, **own, **_without_a_proxy()}


def _core(folder: Path) -> dict[str, str]:
    keys = _secrets(folder)
    return {
        "AIRFLOW__CORE__DAGS_FOLDER": str(REPOSITORY / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(REPOSITORY / "plugins"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__PARALLELISM": str(executor_processes()),
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__CORE__FERNET_KEY": keys["fernet_key"],
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(f"{user}:{role}" for user, role in ROLES.items()),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(password_file()),
        "AIRFLOW__API__SECRET_KEY": keys["api_secret"],
        "AIRFLOW__API_AUTH__JWT_SECRET": keys["jwt_secret"],
        "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_STORAGE_PATH": str(folder / "bundles"),
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "30",
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": str(READ_AGAIN_S),
        "AIRFLOW__DAG_PROCESSOR__PARSING_PROCESSES": "1",
    }


def executor_processes() -> int:
    """How many tasks may run at once, each in an idle process until then: one for each core, and no fewer than 4.

    So two runs, a night and a comparison go on at the same time on any machine.
    """
    return max(LEAST_PROCESSES, os.cpu_count() or 1)


def _api(port: int) -> dict[str, str]:
    url = f"http://{API_HOST}:{port}"
    return {
        "AIRFLOW__API__HOST": API_HOST,
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": str(REQUEST_LIMIT_S),
    }


def _without_a_proxy() -> dict[str, str]:
    """A proxy that this process has for the world must not be asked for the API server, which is on this machine."""
    given = (os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or API_HOST).split(",")
    spared = ",".join(given if {API_HOST, EVERY_HOST} & {host.strip() for host in given} else [*given, API_HOST])
    return {"no_proxy": spared, "NO_PROXY": spared}


def _without_another_server() -> dict[str, str]:
    """The variables of this process, without those that `_api` gave it for a server at the port that they tell."""
    told = os.environ.get("AIRFLOW__API__PORT", "")
    old = _api(int(told)) if told.isascii() and told.isdecimal() else {}
    return {name: value for name, value in os.environ.items() if old.get(name) != value}


def _idle() -> dict[str, str]:
    """Rarer looks for work than by default, each of which costs CPU time that runs on the same machine need."""
    return {
        "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": str(LOOK_S),
        "AIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC": str(HEARTBEAT_S),
        "AIRFLOW__SCHEDULER__JOB_HEARTBEAT_SEC": str(HEARTBEAT_S),
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "60",  # of tasks silent for 300 s
        "AIRFLOW__TRIGGERER__JOB_HEARTBEAT_SEC": str(HEARTBEAT_S),
    }


def _quiet() -> dict[str, str]:
    return {
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        "GX_ANALYTICS_ENABLED": "False",
        "AIRFLOW__LOGGING__UVICORN_LOGGING_LEVEL": "WARNING",
        "AIRFLOW__LOGGING__COLORED_CONSOLE_LOG": "False",
    }


def password_file() -> Path:
    """Where the passwords of Airflow's users are, one JSON object by user name."""
    return airflow_home() / "passwords.json"


def admin_password() -> str:
    """The password of the user `admin`; those of all users are made on first use: Airflow would log what it makes."""
    with locked(airflow_home() / LOCK, MAKING_SECRETS):
        known = json.loads(password_file().read_text()) if password_file().exists() else {}
        passwords: dict[str, str] = {user: secrets.token_urlsafe(12) for user in ROLES} | known
        if passwords != known:
            write_private(password_file(), json.dumps(passwords))
    return passwords[ADMIN]


def _secrets(folder: Path) -> dict[str, str]:
    path = folder / "secrets.json"
    with locked(folder / LOCK, MAKING_SECRETS):
        if not path.exists():
            fernet_key = base64.urlsafe_b64encode(os.urandom(32)).decode()  # the format that Fernet defines
            keys = {"fernet_key": fernet_key, "jwt_secret": secrets.token_hex(32), "api_secret": secrets.token_hex(32)}
            write_private(path, json.dumps(keys))
        kept: dict[str, str] = json.loads(path.read_text())
    return kept


def ensure_database(variables: dict[str, str] | None = None) -> None:
    """Create or migrate the metadata database that `variables` (default: `environment()`) name, with our pool in it.

    A SQLite file once for each version of Airflow, any other database each time, since a new one may have its address.
    A second process waits for the first. Raises `EnvironmentFailure` when it fails.
    """
    variables = variables or environment()
    folder = airflow_home()
    database, wanted = sqlite_file(variables), f"{version('apache-airflow')} {pool.RUNS_POOL}"
    digest = hashlib.sha256(variables[DATABASE_VARIABLE].encode()).hexdigest()
    stamp = folder / f"migrated-{digest[:16]}"
    with locked(folder / ".migrating", "the preparation of Airflow's database"):
        if database and database.exists() and stamp.exists() and stamp.read_text() == wanted:
            return
        _migrate(variables, folder / "migration.log")
        if database:
            _write_ahead(database)
            stamp.write_text(wanted)


def sqlite_file(variables: dict[str, str]) -> Path | None:
    """The file of a SQLite metadata database; None for any other database."""
    scheme, _, rest = variables[DATABASE_VARIABLE].partition(":///")
    return Path(rest.partition("?")[0]) if scheme == "sqlite" else None


def _migrate(variables: dict[str, str], log: Path) -> None:
    print("preparing Airflow's database ...", file=sys.stderr)
    with log.open("w", encoding="utf-8") as output:
        for words in (["db", "migrate"], pool.CREATION):
            command = [airflow_program(), *words]
            if subprocess.run(command, env=variables, stdout=output, stderr=subprocess.STDOUT, check=False).returncode:
                lines = log.read_text(encoding="utf-8").strip().splitlines() or ["no output"]
                remedy = f"see {log}, or remove the database and retry"
                raise EnvironmentFailure(f"airflow {' '.join(words[:2])} failed: {lines[-1]}", remedy)


def _write_ahead(database: Path) -> None:
    connection = sqlite3.connect(database)
    with connection:
        connection.execute("PRAGMA journal_mode=WAL")  # kept in the file: readers no longer block the writer
    connection.close()
