"""The index of finished and published runs: one row each, computed once, so that long lists are fast.

Runs are immutable: a row holds for as long as the run's `status.json` is the same file, last written at the same time.
The index can be lost or damaged at any moment, since it is only a copy of what the runs say. To read a run takes tens
of milliseconds: who cannot wait for a thousand of them lists what is known, and lets `complete` read the rest.
"""

from __future__ import annotations

import logging
import math
import os
import time
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from experiments.errors import EnvironmentFailure
from experiments.locks import locked, locked_if_free
from experiments.waiting import Deadline
from results.damage import Damaged
from results.runs import store
from results.runs.published import ABOUT as ABOUT_PUBLISHED
from results.runs.state import RunState
from results.runs.store import ReadOnce, Run
from results.summary.findings import (
    Utilization,
    ledger_seconds,
    number,
    table_or_empty,
    the_run,
    took_effect,
    utilizations,
)
from results.summary.metrics import METRICS, metrics_of
from results.tables.schema import SCHEMA_VERSION, TABLES
from results.verdict import WORST_FIRST, Verdict, worst

log = logging.getLogger(__name__)
VERSION = f"4 {SCHEMA_VERSION} {' '.join(METRICS)}"  # an index of another version is built again
NOTHING_MEASURED = Utilization(None, None, None, None, None)
MOST_BYTES = 2**28
KEPT_EACH_S = 5.0  # seconds; a process that is killed while it reads a thousand runs then loses little of its work
SAVING_S = 60.0  # how long another process may take to write the index
ABOUT = (
    "ended_ns",
    "error",
    "dag_run",
    "machine",
    "machine_speed",
    "experiment_digest",
    "schema_version",
)  # of the status


@dataclass(frozen=True)
class IndexRow:
    """What lists show of one run.

    state       "done", "failed", "unreadable" (its status or a table cannot be read; `error` says why), or "not read
                yet" (but for its status)
    started_ns  None if its status cannot be read
    facts       its row of the table `runs`; empty if it did not get as far
    struck      how many of the planned faults took effect; None of a run without a table of faults
    verdicts    how many checks came to each verdict, the worst first
    metrics     what it measured, by the names of `results.summary.metrics.METRICS`
    is_published  whether it came with the repository; histories, regressions and protections pass it over
    """

    run_id: str
    state: str
    experiment: str | None
    started_ns: int | None
    ended_ns: int | None = None
    error: str | None = None
    dag_run: str | None = None
    machine: str | None = None
    machine_speed: float | None = None
    experiment_digest: str | None = None
    schema_version: int | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    struck: int | None = None
    utilization: Utilization = NOTHING_MEASURED
    verdicts: dict[str, int] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    is_published: bool = False

    @property
    def verdict(self) -> Verdict:
        """The worst of its verdicts; unknown also for a run that failed or was not judged."""
        found = worst(self.verdicts)
        return Verdict.UNKNOWN if self.state != RunState.DONE and found is Verdict.PASS else found

    @property
    def is_outdated(self) -> bool:
        """Whether it has tables of another version of the schemas: their values may mean something else."""
        return bool(self.facts) and self.schema_version != SCHEMA_VERSION

    @property
    def engine(self) -> str | None:
        """What executed the workload; None for a run without tables."""
        return self.facts.get("engine")

    @property
    def protocol(self) -> str | None:
        """How the testbed takes checkpoints; None for another engine."""
        return self.facts.get("protocol")

    @property
    def recovery(self) -> str | None:
        """How its engine comes back after a fault."""
        return self.facts.get("recovery")


def rows(limit_s: float = math.inf, *, with_published: bool = False) -> list[IndexRow]:
    """The row of every finished run, newest first; only runs that the index does not know yet are read.

    Runs that came with the repository, and of which there is none of that id here, only if asked for.

    With a limit no run is begun to be read after so long, the newest being the first; what is left is `UNREAD`.
    A run that could not be read is tried again when its tables are others, and whenever there is no limit.
    """
    found = _rows(_entries(again=limit_s == math.inf), limit_s)
    return [row for row in found if with_published or not row.is_published]


def _rows(entries: _Entries, limit_s: float) -> list[IndexRow]:
    unread = _newest_first([_head(store.located(name)) for name in entries.stamps if name not in entries.kept])
    unread = entries.read(unread, Deadline(limit_s))
    left = [row if row.state == RunState.UNREADABLE else replace(row, state=RunState.UNREAD) for row in unread]
    return _newest_first([*(_from_json(entry["row"]) for entry in entries.kept.values()), *left])


def complete() -> None:
    """Read every run that the index does not know yet, unless somebody is at it."""
    store.home().mkdir(parents=True, exist_ok=True)
    with locked_if_free(store.home() / "runs-index.lock", make=True) as free:
        if free:
            _rows(_entries(again=False), math.inf)


@dataclass
class _Entries:
    """The index in memory: an entry for each run that is known, the stamp of each that there is."""

    kept: dict[str, dict[str, Any]]
    stamps: dict[str, list[int]]
    known: dict[str, dict[str, Any]]  # what the file says
    stale: bool  # whether that is something else

    def read(self, unread: list[IndexRow], deadline: Deadline) -> list[IndexRow]:
        """Read these runs in their order until the deadline; returns those that are left."""
        kept_at_s = time.monotonic()
        while unread and not deadline.passed:
            head, *unread = unread
            run_id, entry = self._read_one(head)
            self.stale |= entry != self.known.get(run_id)
            self.kept[run_id] = entry
            if self.stale and time.monotonic() - kept_at_s > KEPT_EACH_S:
                self.keep()
                kept_at_s = time.monotonic()
        if self.stale:
            self.keep()
        return unread

    def _read_one(self, head: IndexRow) -> tuple[str, dict[str, Any]]:
        run = store.located(head.run_id)
        tables = _tables_stamp(run)  # as they were before they were read
        row = row_of(run)
        told = {"tables": tables} if row.state == RunState.UNREADABLE else {}
        return head.run_id, {"stamp": self.stamps[head.run_id], "row": asdict(row)} | told

    def keep(self) -> None:
        _save(self.kept)
        self.stale = False


def _entries(*, again: bool) -> _Entries:
    """The index as it is kept; without the runs that could not be read, if they are to be read `again`."""
    known, stamps = _load(), _stamps()
    present = _present(known, stamps)
    kept = {run_id: entry for run_id, entry in present.items() if _holds(run_id, entry, again=again)}
    return _Entries(kept, stamps, known, stale=len(present) < len(known))


def _present(entries: dict[str, Any], stamps: dict[str, list[int]]) -> dict[str, Any]:
    return {run_id: entry for run_id, entry in entries.items() if entry["stamp"] == stamps.get(run_id)}


def _holds(run_id: str, entry: dict[str, Any], *, again: bool) -> bool:
    """Whether an entry of a run that has not been replaced still says what reading the run would say."""
    if entry["row"]["state"] != RunState.UNREADABLE:
        return True
    return not again and entry.get("tables") == _tables_stamp(store.located(run_id))


def _newest_first(found: list[IndexRow]) -> list[IndexRow]:
    return sorted(found, key=lambda each: (each.started_ns or 0, each.run_id), reverse=True)


def row_of(run: Run) -> IndexRow:
    """Read what lists show of a run; one that cannot be read has a row that says so."""
    head = _head(run)
    if head.state == RunState.UNREADABLE:
        return head
    try:
        return _filled(head, run)
    except Damaged as damage:
        return replace(head, state=RunState.UNREADABLE, error=str(damage))
    except FileNotFoundError:  # removed, or replaced, while it was read
        return replace(head, state=RunState.UNREADABLE, error="a file of it is gone")


def read_row(run: Run) -> IndexRow:
    """As `row_of`, but raises `Damaged` for a run that cannot be read."""
    run.status()
    return _filled(_head(run), run)


def _filled(head: IndexRow, run: Run) -> IndexRow:
    return replace(head, **_measured(ReadOnce.of(run)))


def _head(run: Run) -> IndexRow:
    """What its status says of a run."""
    status = run.known_status()
    about: dict[str, Any] = {name: getattr(status, name) for name in ABOUT}
    about |= {"is_published": run.is_published}
    started_ns = None if status.state == RunState.UNREADABLE else status.started_ns
    return IndexRow(run.run_id, status.state, status.experiment, started_ns, **about)


def _measured(run: Run) -> dict[str, Any]:
    ledger_seconds(run)  # so that a list tells when a run's page cannot say what failures cost
    facts, counts = the_run(run), Counter(table_or_empty(run, "verdicts")["verdict"])
    return {
        "facts": {} if facts is None else {name: _plain(value) for name, value in facts.items()},
        "struck": len(took_effect(run.table("faults"))) if run.has("faults") else None,
        "utilization": utilizations(run),
        "verdicts": {word.value: counts[word] for word in WORST_FIRST if word in counts},
        "metrics": metrics_of(run),
    }


def _plain(value: Any) -> Any:
    """A table's value as JSON knows it: None for null and NaN."""
    return value if isinstance(value, str | int) else number(value)


def _path() -> Path:
    return store.home() / "runs-index.json"


def _stamps() -> dict[str, list[int]]:
    """When the status of each finished run was written [ns], and as which file, by run id.

    For a published run this is the file that has the digests of the others.
    """
    stamps: dict[str, list[int]] = {}
    folder = store.home() / "runs"
    own = [entry.name for entry in os.scandir(folder)] if folder.is_dir() else []
    for run in [*(store.stored(name) for name in own if store.RUN_ID.fullmatch(name)), *store.all_published()]:
        with suppress(OSError):  # a run that is removed meanwhile, or a folder that is not ours to read
            found = (run.root / (ABOUT_PUBLISHED if run.is_published else "status.json")).lstat()
            stamps[run.run_id] = [found.st_mtime_ns, found.st_ino]
    return stamps


def _tables_stamp(run: Run) -> list[list[Any]]:
    """Which files the tables of a run are; empty if that cannot be told."""
    try:
        found = [(entry.name, entry.stat()) for entry in os.scandir(run.tables)]
    except OSError:
        return []
    return sorted([name, about.st_ctime_ns, about.st_ino] for name, about in found)


def _load() -> dict[str, Any]:
    try:
        document = store.read_json(_path(), most_bytes=MOST_BYTES)
        entries = document["runs"] if document["version"] == VERSION else {}
        return {run_id: entry for run_id, entry in entries.items() if _fits(run_id, entry)}
    except FileNotFoundError:
        return {}
    except (Damaged, KeyError, TypeError, AttributeError) as error:
        log.warning("the index of runs is built again: %s", error)
        return {}


def _fits(run_id: str, entry: dict[str, Any]) -> bool:
    """Whether an entry is one of this run; one that is not is as good as none."""
    try:
        return entry["stamp"] is not None and _from_json(entry["row"]).run_id == run_id
    except (LookupError, TypeError, AttributeError) as error:
        log.warning("%s is read again, since its row of the index is damaged: %r", run_id, error)
        return False


def _save(entries: dict[str, Any]) -> None:
    """Keep these entries, and those that others have kept meanwhile of runs that there are."""
    try:
        store.home().mkdir(parents=True, exist_ok=True)  # a fresh checkout has published runs and no home
        with locked(store.home() / "runs-index.saving", "the writing of the index of runs", limit_s=SAVING_S):
            for torn in store.home().glob(f".{_path().name}.*"):
                torn.unlink()  # only the holder of the lock writes such files, so the writer of this one has died
            stamps = _stamps()
            merged = _present(_load(), stamps) | _present(entries, stamps)
            store.write_json(_path(), {"version": VERSION, "runs": merged})
    except (OSError, EnvironmentFailure) as error:
        log.warning("the index of runs cannot be kept: %s", error)


def _from_json(document: dict[str, Any]) -> IndexRow:
    """A row as `asdict` wrote it; raises `TypeError`, `LookupError` or `AttributeError` for anything else."""
    row = IndexRow(**document | {"utilization": Utilization(**document["utilization"])})
    used = row.utilization
    texts = (row.error, row.experiment, row.dag_run, row.machine, row.experiment_digest, used.model)
    wholes = (row.ended_ns, row.schema_version, row.struck)
    reals = (row.machine_speed, used.measured, used.predicted, used.low, used.high)
    fits = [
        isinstance(row.state, str) and isinstance(row.is_published, bool),
        _is_whole(row.started_ns) or (row.started_ns is None and row.state == RunState.UNREADABLE),
        all(each is None or isinstance(each, str) for each in texts),
        all(each is None or _is_whole(each) for each in wholes),
        all(each is None or _is_number(each) for each in reals),
        all(word in WORST_FIRST and _is_whole(count) for word, count in row.verdicts.items()),
        all(isinstance(name, str) and _is_number(value) for name, value in row.metrics.items()),
        all(value is None or _is_of(name, value) for name, value in row.facts.items()),
    ]
    if not all(fits):
        raise TypeError("a field is of another type")
    return row


def _is_whole(value: object) -> bool:
    """Whether a value is a whole number from 0; `store.read_json` has seen to it that it is not too large."""
    return type(value) is int and value >= 0


def _is_number(value: object) -> bool:
    return type(value) in (int, float)


def _is_of(name: str, value: object) -> bool:
    """Whether a fact has the type of its column; of columns that the schema does not know any will do."""
    schema = TABLES["runs"]
    kind = schema.field(name).type if name in schema.names else None
    if kind is None:
        return isinstance(value, str | int | float)
    return isinstance(value, str) if pa.types.is_string(kind) else _is_number(value)
