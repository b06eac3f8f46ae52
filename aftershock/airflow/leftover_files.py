"""Files that dead runs and a dead `serve` left outside their folders: locks, scratch folders, databases, logs.

A file that may still be in use is kept: its lock is held, its process lives, or its run exists.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from aftershock.airflow.environment import airflow_home
from aftershock.run import lease
from aftershock.run.lease import Lease
from experiments.errors import EnvironmentFailure
from experiments.locks import is_free, locked, locked_if_free
from results.runs import store

RUN_LOCK = re.compile(rf"\.({store.RUN_ID.pattern})\.(lease|teardown)")
DATABASE = re.compile(rf"({store.RUN_ID.pattern})\.(db.*|logs|json)")
TEMPLATE = "template"  # the database that those of runs are copies of
SERVING = ".serving"  # in Airflow's home: locked, together, by every `serve` that runs there


@contextmanager
def serving() -> Iterator[None]:
    """Within, the logs of Airflow's components in this home are in use."""
    with locked(airflow_home() / SERVING, "the removal of old logs", shared=True):
        yield


def is_served() -> bool:
    """Whether a `serve` runs in this home."""
    lock = store.home() / "airflow" / SERVING
    return os.path.lexists(lock) and not _is_free(lock)


def sweep() -> list[str]:
    """Remove what dead processes left; returns the paths, relative to the home where they are below it."""
    home = store.home()
    removed = [path for path in _locks(home / "live") if _remove_lock(path)]
    if (home / "airflow").is_dir():
        removed += [path for path in _databases(airflow_home() / "command-line") if _remove(path)]
        removed += _remove_component_logs(airflow_home())
    return [str(path.relative_to(home)) for path in [*removed, *store.sweep()]]


def logs_of(run_id: str, dag_run: str | None) -> list[Path]:
    """The logs of a run that are not in its own folder: of its commands, and of the tasks of its DAG run."""
    names = [run_id, *([again] if not _is_there(again := f"{run_id}-recompute") else [])]
    paths = [store.home() / "logs" / f"{name}.log" for name in names]
    if dag_run and dag_run.isprintable() and "/" not in dag_run:
        paths.append(store.home() / "airflow" / "logs" / "dag_id=benchmark" / f"run_id={dag_run}")
    return [path for path in paths if os.path.lexists(path)]


def _is_there(run_id: str) -> bool:
    return store.RUN_ID.fullmatch(run_id) is not None and (store.is_finished(run_id) or _is_worked_on(run_id))


def remove_logs(run_id: str, dag_run: str | None) -> list[str]:
    """Remove a run's logs; returns their paths, relative to the home."""
    return [str(path.relative_to(store.home())) for path in logs_of(run_id, dag_run) if _remove(path)]


def _remove(path: Path) -> bool:
    """Remove a file or a folder, not what it leads to."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
    return not os.path.lexists(path)


def _names(folder: Path) -> list[str]:
    with suppress(FileNotFoundError):
        return sorted(os.listdir(folder))
    return []


def _locks(folder: Path) -> list[Path]:
    """Lock files of runs that do not exist any more."""
    found = [(folder / name, match[1]) for name in _names(folder) if (match := RUN_LOCK.fullmatch(name))]
    return [path for path, run_id in found if not (folder / run_id).exists()]


def _remove_lock(path: Path) -> bool:
    """Remove a lock that no process holds. It is held meanwhile, so that who has just opened it takes a new one."""
    with suppress(FileNotFoundError, PermissionError, EnvironmentFailure), locked_if_free(path) as is_free_now:
        if is_free_now:
            path.unlink()
            return True
    return False


def _is_free(path: Path) -> bool:
    with suppress(FileNotFoundError, PermissionError, EnvironmentFailure):
        return is_free(path)
    return False


def _databases(folder: Path) -> list[Path]:
    """Metadata databases, task logs and experiments of commands that have died, whose runs are not there."""
    found = [(folder / name, match[1]) for name in _names(folder) if (match := DATABASE.fullmatch(name))]
    return [path for path, run_id in found if run_id != TEMPLATE and not _is_worked_on(run_id)]


def _is_worked_on(run_id: str) -> bool:
    live_directory = store.live_directory(run_id)
    return live_directory.exists() or lease.state_of(live_directory) is Lease.HELD


def _remove_component_logs(folder: Path) -> list[Path]:
    """Remove what Airflow's components logged, unless some run. A `serve` that begins meanwhile waits."""
    logs = folder / "logs"
    found = [logs / name for name in _names(logs) if not name.startswith("dag_id=")]
    with suppress(PermissionError, EnvironmentFailure), locked_if_free(folder / SERVING, make=True) as is_free_now:
        return [path for path in found if is_free_now and _remove(path)]
    return []
