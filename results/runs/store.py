"""The run store: one immutable directory per finished run, which appears whole or not at all.

A run is built under `live/` and moved into `runs/` by one rename when it ends, well or not.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from experiments.engines import EngineName
from experiments.errors import BadInput
from experiments.recovery_modes import RecoveryMode
from results.damage import Damaged
from results.runs import published
from results.runs.exchange import exchange
from results.runs.home import home as home
from results.runs.json_files import Document, Name, Positive, Real, Whole, Words, read_document
from results.runs.json_files import read_json as read_json  # all that a run has of JSON is read and written by these
from results.runs.json_files import write_json as write_json
from results.runs.published import Publication
from results.runs.scratch import scratch as scratch_in
from results.runs.scratch import sweep as sweep_in
from results.runs.state import RunState
from results.tables.reading import read_head, read_table
from results.tables.schema import SCHEMA_VERSION, TABLES, VERSION_KEY, WORDS

WRITTEN_STATES = (RunState.RUNNING, RunState.DONE, RunState.FAILED)
RUN_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,127}")
SCRATCH = re.compile(r"\..+\.json\.[0-9]+\.[0-9]+")  # left by a killed `write_json`: process, thread


def check_run_id(run_id: str) -> str:
    """Return the run id if it is one; a run id never carries a path."""
    if not isinstance(run_id, str) or not RUN_ID.fullmatch(run_id):
        raise BadInput("run_id", run_id, "lower-case letters, digits and hyphens")
    return run_id


class RunStatus(Document):
    """What is known of a run without its tables, as its status.json says.

    state           "unreadable" for a run whose status cannot be read; `error` says why
    dag_run         the DAG run of the served Airflow that ran it; None for a run of the command line
    attempt         the try of the DAG run's first step that began it: from 2 on, a person has cleared the DAG run. None
                    for a run of the command line, and in old runs
    schema_version  of its tables (`results.tables.schema`)
    experiment_digest, machine  (`results.runs.machine`) runs that agree in both can be compared; old runs lack them
    machine_speed   how fast the machine was before the start (`results.runs.machine_speed`); None in old runs
    versions        of Python and of packages when it ran (`results.runs.versions`); None in old runs
    cores, others_cores  of the gateway's machine, and how many of them others than the cluster kept busy in the
                         window, on average; None in runs that did not get so far, and in old ones
    """

    state: Annotated[RunState, Field(strict=False)]
    started_ns: Whole
    ended_ns: Whole | None = None
    experiment: Name | None = None
    error: Words | None = None
    exit_code: int | None = None
    dag_run: Name | None = None
    attempt: Whole | None = None
    schema_version: Whole | None = None
    experiment_digest: Name | None = None
    machine: Name | None = None
    machine_speed: Positive | None = None
    versions: dict[Name, Name] | None = None
    cores: Whole | None = None
    others_cores: Real | None = None
    run_id: Name = ""


class _WrittenStatus(RunStatus):
    @field_validator("state", mode="before")
    @classmethod
    def _is_written(cls, state: object) -> object:
        if state not in WRITTEN_STATES:
            raise PydanticCustomError("literal_error", "Input should be 'running', 'done' or 'failed'")
        return state


class _Load(Document):
    mode: Name = ""


class _Engine(Document):
    name: Name = ""


class _Experiment(Document):
    """What is looked at of an experiment without reading the whole of it; one of an old version may lack it."""

    load: _Load = _Load()
    engine: _Engine = _Engine()


@dataclass(frozen=True)
class Run:
    """The directory of one run, live, finished, or published with the repository (`results.runs.published`).

    raw/      logs as the services wrote them       tables/   one Parquet table each
    checks/   Great Expectations results, Data Docs  plots/    PNG and SVG        report.html
    """

    run_id: str
    root: Path
    is_published: bool = False

    @property
    def experiment_path(self) -> Path:
        """The file of the experiment as it ran; `experiment` reads it, and those of old versions too."""
        return self.root / "experiment.json"

    @property
    def raw(self) -> Path:
        """Folder of the logs, kept as the services wrote them."""
        return self.root / "raw"

    def journal_path(self, name: str) -> Path:
        """Where a service writes, or wrote, what happened (`journal`)."""
        return self.raw / f"{name}.jsonl"

    @property
    def tables(self) -> Path:
        """Folder of the result tables, `NAME.parquet`."""
        return self.root / "tables"

    @property
    def checks(self) -> Path:
        """Folder of what Great Expectations found, with its Data Docs."""
        return self.root / "checks"

    @property
    def plots(self) -> Path:
        """Folder of the plots, each as PNG and SVG."""
        return self.root / "plots"

    @property
    def report(self) -> Path:
        """The report: one HTML file that needs no other."""
        return self.root / "report.html"

    def status(self) -> RunStatus:
        """What is known of the run without its tables.

        Raises `FileNotFoundError` for a run without a status, `Damaged` for one that is not like that, and `Outdated`
        for a published one that this version does not read.
        """
        found = read_document(self.root / "status.json", _WrittenStatus, self.run_id)
        if self.is_published:
            published.require_version_of_run(self.root, self.run_id, found.schema_version)
        return found

    def publication(self) -> Publication | None:
        """How a published run came about; None of a run of this installation. Raises as `status` does."""
        return published.read(self.root, self.run_id) if self.is_published else None

    def known_status(self) -> RunStatus:
        """The status, or of a run whose status cannot be read one of state "unreadable", whose `error` says why.

        `started_ns` is 0 then, `experiment` None.
        """
        try:
            found = self.status()
            return found.model_copy(
                update={"run_id": self.run_id, "experiment": found.experiment, "error": found.error}
            )
        except (Damaged, FileNotFoundError) as error:
            why = str(error) if isinstance(error, Damaged) else "status.json is missing"
        return RunStatus(
            run_id=self.run_id, state=RunState.UNREADABLE, experiment=None, error=why, started_ns=0, ended_ns=None
        )

    def experiment(self) -> dict[str, Any]:
        """The experiment as it was written: `load.mode` and `engine.name` are texts if they are there.

        Documents from before the testbed had recovery strategies state the default of the other engine, which the
        testbed passed over: it is left out of them. Raises as `status` does.
        """
        document = read_document(self.experiment_path, _Experiment, self.run_id).to_json()
        engine = document.get("engine", {})
        if engine.get("name") == EngineName.DATAFLOW and engine.get("recovery") == RecoveryMode.QUERY:
            engine["recovery"] = None
        return document

    def table(self, name: str) -> pd.DataFrame:
        """Read one result table by its schema; raises `BadInput` for an unknown name, and else as `read_table` does."""
        return read_table(self.table_path(name), TABLES[name], WORDS.get(name, {}))

    def table_as_it_is(self, name: str) -> pd.DataFrame:
        """Read one result table with any columns and values, for the checks that judge them; raises as `table` does."""
        return read_table(self.table_path(name))

    def head(self, name: str, rows: int) -> tuple[pd.DataFrame, int]:
        """The first rows of a result table, by its schema, and how many it has; raises as `table` does."""
        return read_head(self.table_path(name), rows, TABLES[name], WORDS.get(name, {}))

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
        """Whether the run has a table of that name; what cannot be read is one, too."""
        return os.path.lexists(self.tables / f"{name}.parquet")


class ReadOnce(Run):
    """A run whose tables are read once, however many figures are taken from them; for as long as one look at it."""

    @classmethod
    def of(cls, run: Run) -> ReadOnce:
        """The same run; with nothing read yet, unless it is already one whose tables are read once."""
        return run if isinstance(run, cls) else cls(run.run_id, run.root, run.is_published)

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


def stored(run_id: str) -> Run:
    """Where a run of this installation is, or will be, once it has finished."""
    return Run(run_id, home() / "runs" / check_run_id(run_id))


def is_finished(run_id: str) -> bool:
    """Whether this installation has a finished run of that id, be it damaged."""
    return os.path.lexists(stored(run_id).root / "status.json")


def finished(run_id: str) -> Run:
    """A finished run of this installation; raises `BadInput` when there is none of that id."""
    run = stored(run_id)
    if not is_finished(run_id):
        raise BadInput("run_id", run_id, "the id of a finished run; `aftershock results` lists them")
    return run


def readable(run_id: str) -> Run:
    """A finished run to read and not to change: of this installation, or else a published one; raises as `finished`."""
    run = located(run_id)
    return run if run.is_published else finished(run_id)


def located(run_id: str) -> Run:
    """Where a run to read is: with the repository if it is published and none of that id is here, else in the store."""
    run = _published(run_id)
    return run if published.is_there(run.root) and not is_finished(run_id) else stored(run_id)


def _published(run_id: str) -> Run:
    return Run(run_id, published.folder() / "runs" / check_run_id(run_id), is_published=True)


def all_published() -> list[Run]:
    """The published runs of which this installation has none of its own, by id."""
    found = (path.parent.name for path in (published.folder() / "runs").glob(f"*/{published.ABOUT}"))
    return [_published(name) for name in sorted(found) if RUN_ID.fullmatch(name) and not is_finished(name)]


def require_present_version(field: str, run_id: str, schema_version: int | None) -> None:
    """Raise `BadInput` for a run whose tables are of another version: their values may mean something else."""
    if schema_version != SCHEMA_VERSION:
        again = f"`aftershock results recompute {run_id}` makes them so"
        raise BadInput(field, run_id, f"a run whose tables are of version {SCHEMA_VERSION}; {again}")


def all_live() -> list[str]:
    """The ids of the live runs."""
    found = (home() / "live").glob("*/result/status.json")
    return sorted(name for name in (path.parent.parent.name for path in found) if RUN_ID.fullmatch(name))


def all_finished() -> list[Run]:
    """Every finished run, newest first, damaged ones last; what else lies in the folder is passed over."""
    folder = home() / "runs"
    names = [entry.name for entry in os.scandir(folder)] if folder.is_dir() else []
    found = [Run(name, folder / name) for name in names if RUN_ID.fullmatch(name) and is_finished(name)]
    return sorted(found, key=_age, reverse=True)


def _age(run: Run) -> tuple[bool, int]:
    status = run.known_status()
    return status.state != RunState.UNREADABLE, status.started_ns


def publish(run: Run) -> Run:
    """Move a live run into the store by one rename; a run that is there already is returned as it is."""
    target = stored(run.run_id)
    if not target.root.exists():
        target.root.parent.mkdir(parents=True, exist_ok=True)
        run.root.rename(target.root)
    return target


def replace(run: Run) -> Run:
    """Put a newer version of a finished run in its place, whole; the older one is gone."""
    target = finished(run.run_id)
    with _still_there(run.run_id):
        exchange(run.root, target.root)
    discard(run.root)
    return target


def remove(run_id: str) -> None:
    """Remove a finished run; a reader never finds a part of it."""
    with scratch() as folder, _still_there(run_id):
        finished(run_id).root.rename(folder / run_id)


@contextmanager
def _still_there(run_id: str) -> Iterator[None]:
    """Raises `BadInput`, as `finished` does, for a run that another process removes meanwhile."""
    try:
        yield
    except FileNotFoundError:
        finished(run_id)
        raise


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder beside the runs, on their file system. It is removed with its content, even after a kill."""
    with scratch_in(home()) as folder:
        yield folder


def sweep() -> list[Path]:
    """Remove the scratch folders of processes that were killed; returns them."""
    return sweep_in(home())


def write_parquet(path: Path, table: pa.Table) -> None:
    """Write a table as one file that carries the version of the schemas."""
    pq.write_table(table.replace_schema_metadata({VERSION_KEY: str(SCHEMA_VERSION)}), path)


def discard(directory: Path) -> None:
    """Remove a directory tree that this project made; a missing one is fine."""
    shutil.rmtree(directory, ignore_errors=True)
