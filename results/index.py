"""The index of finished runs: one row for each, computed once, so that a thousand runs are listed at once.

Runs are immutable: a row holds for as long as the run's `status.json` is the same file, last written at the same time.
The index can be lost or damaged at any moment, since it is only a copy of what the runs say.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from experiments.errors import AftershockError, EnvironmentFailure
from results import store
from results.findings import Utilization, number, table_or_empty, the_run, utilizations
from results.metrics import METRICS, metrics_of
from results.schema import SCHEMA_VERSION
from results.store import Run
from results.verdict import WORST_FIRST, Verdict, worst

log = logging.getLogger(__name__)
VERSION = f"2 {SCHEMA_VERSION} {' '.join(METRICS)}"  # an index of another version is built again
UNREADABLE = "unreadable"
NOTHING_MEASURED = Utilization(None, None, None, None, None)
READERS = 4
ABOUT = ("ended_ns", "error", "dag_run", "machine", "experiment_digest", "schema_version")  # of the status


@dataclass(frozen=True)
class Row:
    """What lists show of one run.

    state     "done", "failed", or "unreadable" (its status or a table cannot be read; `error` says why)
    facts     its row of the table `runs`; empty if it did not get as far
    verdicts  how many checks came to each verdict, the worst first
    metrics   what it measured, by the names of `results.metrics.METRICS`
    """

    run_id: str
    state: str
    experiment: str | None
    started_ns: int
    ended_ns: int | None = None
    error: str | None = None
    dag_run: str | None = None
    machine: str | None = None
    experiment_digest: str | None = None
    schema_version: int | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    utilization: Utilization = NOTHING_MEASURED
    verdicts: dict[str, int] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict:
        """The worst of its verdicts; unknown also for a run that failed or was not judged."""
        found = worst(self.verdicts)
        return Verdict.UNKNOWN if self.state != "done" and found is Verdict.PASS else found

    @property
    def engine(self) -> str | None:
        return self.facts.get("engine")

    @property
    def protocol(self) -> str | None:
        """How its engine comes back after a fault."""
        return self.facts.get("protocol") or self.facts.get("recovery")


def rows() -> list[Row]:
    """The row of every finished run, newest first; only runs that the index does not know yet are read."""
    known, stamps = _load(), _stamps()
    kept = {run_id: entry for run_id, entry in known.items() if entry["stamp"] == stamps.get(run_id)}
    new = [run_id for run_id in stamps if run_id not in kept]
    with ThreadPoolExecutor(READERS) as readers:
        made = dict(zip(new, readers.map(row_of, map(store.finished, new)), strict=True))
    if made or len(kept) < len(known):
        readable = {run_id: each for run_id, each in made.items() if each.state != UNREADABLE}  # others are tried again
        fresh = {run_id: {"stamp": stamps[run_id], "row": asdict(each)} for run_id, each in readable.items()}
        _save(kept | fresh)
    found = [_from_json(entry["row"]) for entry in kept.values()] + list(made.values())
    return sorted(found, key=lambda each: (each.started_ns, each.run_id), reverse=True)


def row_of(run: Run) -> Row:
    """Read what lists show of a run; one that cannot be read has a row that says so."""
    try:
        status = run.status()
        about = {name: status.get(name) for name in ABOUT}
        head = Row(run.run_id, status["state"], status.get("experiment"), int(status["started_ns"]), **about)
    except (EnvironmentFailure, KeyError, TypeError, ValueError, AttributeError) as error:
        why = str(error) if isinstance(error, AftershockError) else f"status.json is damaged ({error!r})"
        return Row(run.run_id, UNREADABLE, None, 0, error=why)
    try:
        return replace(head, **_measured(run))
    except (EnvironmentFailure, KeyError) as error:
        why = (
            str(error)
            if isinstance(error, AftershockError)
            else f"its tables are of another version: one lacks {error}"
        )
        return replace(head, state=UNREADABLE, error=why)


def _measured(run: Run) -> dict[str, Any]:
    facts, counts = the_run(run), Counter(table_or_empty(run, "verdicts")["verdict"])
    return {
        "facts": {} if facts is None else {name: _plain(value) for name, value in facts.items()},
        "utilization": utilizations(run),
        "verdicts": {word.value: counts[word] for word in WORST_FIRST if word in counts},
        "metrics": metrics_of(run),
    }


def _plain(value: Any) -> Any:
    """A table's value as JSON knows it: None for null, NaN and infinity."""
    return value if isinstance(value, str | int) else number(value)


def _path() -> Path:
    return store.home() / "runs-index.json"


def _stamps() -> dict[str, list[int]]:
    """When the status of each finished run was written [ns], and as which file, by run id."""
    stamps: dict[str, list[int]] = {}
    folder = store.home() / "runs"
    for entry in os.scandir(folder) if folder.is_dir() else ():
        status = Path(entry.path, "status.json")
        if store.RUN_ID.fullmatch(entry.name) and status.is_file():
            found = status.stat()
            stamps[entry.name] = [found.st_mtime_ns, found.st_ino]
    return stamps


def _load() -> dict[str, Any]:
    try:
        document = store.read_json(_path())
        entries = document["runs"] if document["version"] == VERSION else {}
        for entry in entries.values():
            _from_json(entry["row"]), entry["stamp"]
    except FileNotFoundError:
        return {}
    except (OSError, EnvironmentFailure, KeyError, TypeError, AttributeError) as error:
        log.warning("the index of runs is built again: %s", error)
        return {}
    return entries


def _save(entries: dict[str, Any]) -> None:
    try:
        store.write_json(_path(), {"version": VERSION, "runs": entries})
    except OSError as error:
        log.warning("the index of runs cannot be kept: %s", error)


def _from_json(document: dict[str, Any]) -> Row:
    return Row(**document | {"utilization": Utilization(**document["utilization"])})
