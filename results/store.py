"""The run store: one immutable directory per finished run, which appears whole or not at all.

A run is built under `live/` and moved into `runs/` by one rename when it ends, well or not.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from experiments.errors import BadInput, EnvironmentFailure
from results.exchange import exchange
from results.reading import read_table
from results.schema import SCHEMA_VERSION, TABLES, VERSION_KEY

RUN_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,127}")
UNREADABLE = "unreadable"  # the state of a run whose status or tables cannot be read
WORDS = ("experiment", "error", "dag_run", "machine", "experiment_digest")  # of a status: text or None
WHOLE_IF_KNOWN = ("ended_ns", "schema_version", "cores")
END_OF_TIME_NS = 2**63  # in the year 2262: a table's column of times goes no further


def home() -> Path:
    """Where Aftershock keeps its state: $AFTERSHOCK_HOME, or `.aftershock` beside the code."""
    return Path(os.environ.get("AFTERSHOCK_HOME") or Path(__file__).parent.parent / ".aftershock").resolve()


def check_run_id(run_id: str) -> str:
    """Return the run id if it is one; a run id never carries a path."""
    if not isinstance(run_id, str) or not RUN_ID.fullmatch(run_id):
        raise BadInput("run_id", run_id, "lower-case letters, digits and hyphens")
    return run_id


@dataclass(frozen=True)
class Run:
    """The directory of one run, live or finished.

    raw/      logs as the services wrote them       tables/   one Parquet table each
    checks/   Great Expectations results, Data Docs  plots/    PNG and SVG        report.html
    """

    run_id: str
    root: Path

    @property
    def experiment_path(self) -> Path:
        """The experiment as it ran, for `experiments.spec.validate`; runs of old versions may lack fields."""
        return self.root / "experiment.json"

    @property
    def raw(self) -> Path:
        return self.root / "raw"

    @property
    def tables(self) -> Path:
        return self.root / "tables"

    @property
    def checks(self) -> Path:
        return self.root / "checks"

    @property
    def plots(self) -> Path:
        return self.root / "plots"

    @property
    def report(self) -> Path:
        return self.root / "report.html"

    def status(self) -> dict[str, Any]:
        """What is known of the run without its tables.

        run_id, experiment, state ("running", "done", "failed"), started_ns, ended_ns, error, exit_code;
        dag_run         the DAG run of the served Airflow that ran it; None for a run of the command line
        schema_version  of its tables (`results.schema`)
        experiment_digest, machine      (`results.machine`) runs that agree in both can be compared; old runs lack them
        cores, others_cores  of the gateway's machine, and how many of them others than the cluster kept busy in the
                             window, on average; lacking in runs that did not get so far, and in old ones
        """
        return read_json(self.root / "status.json")

    def known_status(self) -> dict[str, Any]:
        """The status, or of a run whose status cannot be read one of state "unreadable", whose `error` says why.

        `started_ns` is 0 then, `experiment` None.
        """
        try:
            status = self.status()
            check_status(status)
            return {"experiment": None, "error": None, **status, "run_id": self.run_id}
        except (EnvironmentFailure, OSError, LookupError, TypeError) as error:
            why = str(error) if isinstance(error, EnvironmentFailure) else f"status.json is damaged ({error!r})"
        unknown = {"experiment": None, "started_ns": 0, "ended_ns": None}
        return {"run_id": self.run_id, "state": UNREADABLE, "error": why, **unknown}

    def table(self, name: str) -> pd.DataFrame:
        """Read one result table; raises `BadInput` for an unknown name, and else as `read_table` does."""
        return read_table(self.table_path(name))

    def table_path(self, name: str) -> Path:
        """Where a result table is or would be; raises `BadInput` for an unknown name."""
        if name not in TABLES:
            raise BadInput("table", name, ", ".join(TABLES))
        return self.tables / f"{name}.parquet"

    def write_table(self, name: str, table: pa.Table) -> None:
        """Write a result table as one file that carries the version of the schemas."""
        self.tables.mkdir(parents=True, exist_ok=True)
        write_parquet(self.table_path(name), table)

    def has(self, name: str) -> bool:
        return (self.tables / f"{name}.parquet").exists()


def check_status(status: dict[str, Any]) -> None:
    """Raises `TypeError` or `LookupError` for a status whose fields are not as `Run.status` describes them."""
    as_told = {"state": isinstance(status["state"], str), "started_ns": _is_whole(status["started_ns"])}
    as_told |= {name: isinstance(status.get(name), str | None) for name in WORDS}
    as_told |= {name: status.get(name) is None or _is_whole(status[name]) for name in WHOLE_IF_KNOWN}
    as_told["others_cores"] = isinstance(status.get("others_cores"), int | float | None)
    if odd := [name for name, fits in as_told.items() if not fits]:
        raise TypeError(f"{', '.join(odd)}: of another kind")


def _is_whole(value: object) -> bool:
    """Whether a value is a whole number from 0 that can also be a time."""
    return type(value) is int and 0 <= value < END_OF_TIME_NS


class ReadOnce(Run):
    """A run whose tables are read once, however many figures are taken from them; for as long as one look at it."""

    @classmethod
    def of(cls, run: Run) -> ReadOnce:
        return cls(run.run_id, run.root)

    @cached_property
    def _known(self) -> dict[str, pd.DataFrame]:
        return {}

    def table(self, name: str) -> pd.DataFrame:
        """As of `Run`; a frame of the caller's own, which shares its values with the others."""
        if name not in self._known:
            self._known[name] = super().table(name)
        return self._known[name].copy(deep=False)


def live_directory(run_id: str) -> Path:
    """Where a running run keeps its cluster and what it has collected so far."""
    return home() / "live" / check_run_id(run_id)


def live(run_id: str) -> Run:
    """The run while it is being built."""
    return Run(run_id, live_directory(run_id) / "result")


def published(run_id: str) -> Run:
    """Where the run is, or will be, once it has finished."""
    return Run(run_id, home() / "runs" / check_run_id(run_id))


def is_finished(run_id: str) -> bool:
    return (published(run_id).root / "status.json").is_file()


def finished(run_id: str) -> Run:
    """A finished run; raises `BadInput` when there is none of that id."""
    run = published(run_id)
    if not is_finished(run_id):
        raise BadInput("run_id", run_id, "the id of a finished run; `aftershock results` lists them")
    return run


def all_live() -> list[str]:
    """The ids of the live runs."""
    found = (home() / "live").glob("*/result/status.json")
    return sorted(name for name in (path.parent.parent.name for path in found) if RUN_ID.fullmatch(name))


def all_finished() -> list[Run]:
    """Every finished run, newest first, damaged ones last; what else lies in the folder is passed over."""
    folder = home() / "runs"
    names = [status.parent.name for status in folder.glob("*/status.json")]
    found = [Run(name, folder / name) for name in names if RUN_ID.fullmatch(name)]
    return sorted(found, key=_age, reverse=True)


def _age(run: Run) -> tuple[bool, int]:
    status = run.known_status()
    return status["state"] != UNREADABLE, status["started_ns"]


def publish(run: Run) -> Run:
    """Move a live run into the store by one rename; a run that is there already is returned as it is."""
    target = published(run.run_id)
    if not target.root.exists():
        target.root.parent.mkdir(parents=True, exist_ok=True)
        run.root.rename(target.root)
    return target


def replace(run: Run) -> Run:
    """Put a newer version of a finished run in its place, whole; the older one is gone."""
    target = finished(run.run_id)
    exchange(run.root, target.root)
    discard(run.root)
    return target


def remove(run_id: str) -> None:
    """Remove a finished run; a reader never finds a part of it."""
    with scratch() as folder:
        finished(run_id).root.rename(folder / run_id)


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder beside the runs, on their file system, that goes away with all that is in it."""
    home().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".scratch-", dir=home()) as folder:
        yield Path(folder)


def write_parquet(path: Path, table: pa.Table) -> None:
    """Write a table as one file that carries the version of the schemas."""
    pq.write_table(table.replace_schema_metadata({VERSION_KEY: str(SCHEMA_VERSION)}), path)


def read_json(path: Path) -> Any:
    """Read a JSON document; raises `EnvironmentFailure` for a damaged one."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise EnvironmentFailure(f"{path} is damaged ({error})", "restore it, or remove its run") from None


def write_json(path: Path, document: Any) -> None:
    """Write a JSON document so that a reader sees the old file or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    scratch.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    scratch.replace(path)


def discard(directory: Path) -> None:
    """Remove a directory tree that this project made; a missing one is fine."""
    shutil.rmtree(directory, ignore_errors=True)
