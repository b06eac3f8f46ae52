"""Puts results of this installation into the repository's `published/`: `aftershock results publish`.

Runs of examples are for show, and have their plots. Other runs are parts of a measured table that is continued in
another installation (`reproductions.measured`), which needs their tables only.

A result is written beside its place, and takes it by a rename when it is whole. An earlier version is removed after
that. If the two cannot change places in one step, the earlier one is moved aside, and it is put back if the publication
fails or is killed. The bytes follow from the result alone, so that publishing the same one again changes nothing.
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from experiments import spec
from experiments.documents.plain_files import read_whole
from experiments.errors import BadInput
from results.damage import Damaged
from results.runs import published, store
from results.runs.exchange import exchange
from results.runs.machine import experiment_digest
from results.runs.scratch import scratch, sweep
from results.runs.state import RunState
from results.runs.store import Run
from results.runs.versions import versions
from results.summary import index
from results.tables.reading import read_arrow
from results.tables.schema import SCHEMA_VERSION
from results.views import gallery
from results.views.gallery import StoredReproduction

MOST_BYTES = 2**24  # of one file
MOST_LISTED_BYTES = 2**19  # of a table as CSV: people do not read longer ones, and Parquet needs a tenth of the size
OF_THIS_INSTALLATION = ("dag_run", "attempt", "error", "recomputed_ns")  # what is left out of a run's status
OF_THE_RESULT = ("command", "machine", "versions")  # what a reproduction records of how it came about
MEASUREMENTS = ("run_id", "measured_at")  # columns that tell the runs or measurements of a table apart
MOST_HOST_NAME = 4  # shorter names of machines are words of other things, too
PATH = re.compile(
    r"(?:^|[\s\"'=(,\[]|file:(?://)?)(/(?:etc|home|mnt|opt|private|root|srv|tmp|Users|usr|var|work)/[^\s\"']*)"
)


@dataclass(frozen=True)
class Published:
    """What a publication did: the ids whose files changed, and those that were published so already.

    left_out  tables that were not asked for by name, and are of fewer runs than the published ones
    """

    changed: list[str]
    unchanged: list[str]
    left_out: list[str]


@dataclass(frozen=True)
class _Result:
    """What is to be published of one result, by names below its place."""

    id: str
    place: Path
    files: dict[str, bytes]
    about: dict[str, Any]

    def all_files(self) -> dict[str, bytes]:
        about = {"format": published.FORMAT, **self.about, "files": published.digests(self.files)}
        return self.files | {published.ABOUT: _json(about)}


def publish_results(ids: Iterable[str]) -> Published:
    """Publish runs, and tables and figures (PAPER/FIGURE); without ids, all that this installation can publish.

    What else is published stays, but a run takes the place of an earlier one of the same example. Raises `BadInput` for
    what cannot be published, before anything is changed. Such is a table of fewer runs than the published one.
    """
    sweep(published.folder())
    named = list(dict.fromkeys(ids))
    chosen, left_out = (named, []) if named else _chosen_here()
    results = [_reproduction(id) if "/" in id else _run(id) for id in chosen]
    for id in named:
        _refuse_fewer_runs(id)
    _refuse_two_of_an_example(results)
    for result in results:
        _refuse_traces(result)
    changed = [result.id for result in results if _write(result)]
    for result in results:
        _remove_earlier_runs(result)
    return Published(changed, [result.id for result in results if result.id not in changed], left_out)


def published_table(id: str) -> Path:
    """The Parquet file of a published table or figure; raises `BadInput` where there is none that can be used."""
    sweep(published.folder())  # a killed publication may have moved it aside
    found = gallery.published_reproduction(id)
    path = found.file("parquet") if found else None
    if found is None or found.lack or path is None:
        why = f" ({found.lack})" if found and found.lack else ""
        raise BadInput("id", id, f"a table or figure of which a table is published{why}")
    return path


def publish_verdicts(judged: Mapping[str, dict[str, Any]]) -> Published:
    """Put new verdicts beside published tables: by id, the fields of the document of verdicts that they replace.

    All else stays, and `judged_again` tells the day. Where nothing else is said than before, no file changes. Raises
    `BadInput` for an id without a published table, and for a result that is not whole, before anything is changed.
    """
    results = {id: _judged_again(id, fields) for id, fields in judged.items()}
    changed = {id: result for id, result in results.items() if result is not None}
    for result in changed.values():
        _refuse_traces(result)
    for result in changed.values():
        _write(result)
    return Published([*changed], [id for id in results if id not in changed], [])


def _judged_again(id: str, fields: dict[str, Any]) -> _Result | None:
    """A published result with these fields of its verdicts; None if they are the same already."""
    place = published_table(id).parent
    about, files = published.read(place, id), published.contents(place)
    if spoiled := published.spoiled(about, files):
        told = f"{spoiled[0]} is not the file that was published; restore it, or delete the folder {place}"
        raise BadInput("id", id, f"a result whose files are as {published.ABOUT} has them: {told}")
    del files[published.ABOUT]
    verdicts = place / f"{id.replace('/', '-')}.verdicts.json"
    document = store.read_json(verdicts, id)
    if document | fields == document:
        return None
    kept = {name: value for name, value in about.to_json().items() if name not in ("format", "files")}
    today = datetime.now(UTC).date().isoformat()
    return _Result(id, place, files | {verdicts.name: _json(document | fields)}, kept | {"judged_again": today})


def _chosen_here() -> tuple[list[str], list[str]]:
    """What this installation can publish: the newest run of each example, and every table and figure.

    Tables of fewer runs than the published ones are left out; they are the second list.
    """
    chosen: list[str] = [*_newest_runs().values()]
    left_out: list[str] = []
    for own in gallery.all_reproduced():
        if not own.is_published and not own.lack and own.file("parquet"):
            here, there = _runs_of_both(own)
            (left_out if here < there else chosen).append(own.id)
    return chosen, left_out


def _refuse_fewer_runs(id: str) -> None:
    """Raise `BadInput` for a table of fewer runs than the published one."""
    if "/" not in id:
        return
    here, there = _runs_of_both(gallery.reproduced(*id.split("/", 1)))
    if here < there:
        place = published.folder() / "reproductions" / id
        told = f"a table of no fewer runs than the published one: it is of {here}, that one in {place} of {there}"
        more = f"`aftershock reproduce {id}` makes missing runs, and more of them with a larger --size"
        raise BadInput("id", id, f"{told}; {more}; delete that folder only to withdraw the published table")


def _runs_of_both(own: StoredReproduction) -> tuple[int, int]:
    """How many runs a table is of, and how many the published one; of what is computed it is 0."""
    other = gallery.published_reproduction(own.id)
    try:
        published_runs = _runs_of(other.file("parquet")) if other else 0
    except Damaged:
        published_runs = 0
    return _runs_of(own.file("parquet")), published_runs


def _runs_of(path: Path | None) -> int:
    """How many runs or measurements a table is of."""
    if path is None:
        return 0
    table = read_arrow(path)
    found: list[object] = next((table[name].to_pylist() for name in MEASUREMENTS if name in table.column_names), [])
    return len(set(found) - {None})


def examples_not_published() -> list[str]:
    """The examples of which no run is published that is of this version and of the example as it is now."""
    places = (about.parent for about in (published.folder() / "runs").glob(f"*/{published.ABOUT}"))
    runs = [Run(place.name, place, is_published=True) for place in places]
    done = {_example_of(run) for run in runs if run.known_status().state == RunState.DONE}
    return [name for name in spec.available() if name not in done]


def examples_to_run() -> list[str]:
    """Those of `examples_not_published` of which this installation has no run either that it could publish."""
    here = _newest_runs()
    return [name for name in examples_not_published() if name not in here]


def _newest_runs() -> dict[str, str]:
    """The newest run of each example that this installation can publish."""
    newest: dict[str, str] = {}
    for row in index.rows():
        if row.state == RunState.DONE and row.schema_version == SCHEMA_VERSION:
            example = _example_of(store.finished(row.run_id))
            newest.setdefault(example, row.run_id) if example else None
    return newest


def _run(run_id: str) -> _Result:
    run = store.finished(run_id)
    status = run.status()
    if status.state != RunState.DONE:
        raise BadInput("id", run_id, "a run that is done")
    store.require_present_version("id", run_id, status.schema_version)
    example = _example_of(run)
    kept = {name: value for name, value in status.to_json().items() if name not in OF_THIS_INSTALLATION}
    files = {"status.json": _json(kept), "experiment.json": _json(run.experiment())}
    files |= {f"tables/{path.name}": _bytes(path) for path in sorted(run.tables.glob("*.parquet"))}
    files |= {f"plots/{path.name}": _bytes(path) for path in _smaller_plots(run)} if example else {}
    recorded = {"versions": status.versions, "versions_of": "result"}
    about = {
        "command": f"aftershock benchmark published/runs/{run_id}/experiment.json",
        "machine": status.machine,
        **(recorded if status.versions else {"versions": versions(), "versions_of": "publication"}),
        "example": example,
    }
    return _Result(run_id, published.folder() / "runs" / run_id, files, about)


def _example_of(run: Run) -> str | None:
    """The example that a run executed: the one of its name, if its present version is the same except for the seed."""
    try:
        ran = spec.validate(run.experiment())
        example = spec.load(ran.name) if ran.name in spec.available() else None
    except (BadInput, Damaged, FileNotFoundError):
        return None
    return ran.name if example and experiment_digest(example) == experiment_digest(ran) else None


def _smaller_plots(run: Run) -> list[Path]:
    """Each plot once, as PNG or SVG: whichever is smaller."""
    smallest: dict[str, Path] = {}
    for path in sorted(run.plots.glob("*"), key=lambda path: (path.stat().st_size, path.name)):
        if path.suffix in (".png", ".svg"):
            smallest.setdefault(path.stem, path)
    return sorted(smallest.values())


def _reproduction(id: str) -> _Result:
    paper, _, figure = id.partition("/")
    found = gallery.reproduced(paper, figure)
    again = f"`aftershock reproduce {id}` makes it"
    if found.is_published or found.lack or found.file("parquet") is None:
        raise BadInput("id", id, f"a table or figure that was computed in this installation; {again}")
    place = published.folder() / "reproductions" / paper / figure
    document = store.read_json(found.verdicts_path, id)
    if not all(document.get(name) for name in OF_THE_RESULT):
        raise BadInput("id", id, f"a table or figure that says how it was computed; {again}")
    about = {name: document.pop(name) for name in OF_THE_RESULT} | {"versions_of": "result"}
    document.pop("files", None)
    document.pop("published", None)
    document.pop("published_runs", None)
    files = {found.verdicts_path.name: _json(document)} | _drawn_and_listed(found)
    return _Result(id, place, files, about)


def _drawn_and_listed(found: StoredReproduction) -> dict[str, bytes]:
    """The table for programs, and unless it is long for people, and the plot; a PNG would show the same as the SVG."""
    paths = (path for kind in ("parquet", "csv", "svg") if (path := found.file(kind)) is not None)
    return {path.name: _bytes(path) for path in paths if not _is_too_long(path)}


def _is_too_long(path: Path) -> bool:
    return path.suffix == ".csv" and path.stat().st_size > MOST_LISTED_BYTES


def _bytes(path: Path) -> bytes:
    return read_whole(path, MOST_BYTES)


def _json(document: Any) -> bytes:
    return f"{json.dumps(document, indent=1, sort_keys=True)}\n".encode()


def _refuse_two_of_an_example(results: Iterable[_Result]) -> None:
    """Raise `BadInput` for two runs of one example: each would take the other's place."""
    ids: dict[str, str] = {}
    for result in results:
        if (example := result.about.get("example")) and ids.setdefault(example, result.id) != result.id:
            raise BadInput("id", result.id, f"one run of the example {example}: {ids[example]} is named, too")


def _refuse_traces(result: _Result) -> None:
    """Raise `BadInput` for a result that contains a path or the name of this machine: both must not be published."""
    for name, content in result.all_files().items():
        if name.endswith(".png"):
            continue
        text = _texts_of(content) if name.endswith(".parquet") else content.decode("utf-8", "replace")
        if (trace := trace_of_machine(text)) is not None:
            raise BadInput("id", result.id, f"a result that names nothing of the machine: {name} has {trace!r}")


def trace_of_machine(text: str) -> str | None:
    """The first path below a folder that machines have, or name of this machine, that a text contains."""
    if found := PATH.search(text):
        return found[1]
    name = socket.gethostname()
    if len(name) < MOST_HOST_NAME or name == "localhost":
        return None
    return name if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) else None


def _texts_of(content: bytes) -> str:
    """The texts of a Parquet table, one a line."""
    with scratch(published.folder()) as folder:
        path = folder / "table.parquet"
        path.write_bytes(content)
        table = read_arrow(path)
    texts = [column for column in table.columns if str(column.type) in ("string", "large_string")]
    return "\n".join(text for column in texts for text in column.unique().to_pylist() if text)


def _write(result: _Result) -> bool:
    """Put a result in its place, unless it is there already; returns whether anything changed."""
    files = result.all_files()
    if published.contents(result.place) == files:
        return False
    with scratch(published.folder()) as folder:
        new = folder / result.place.relative_to(published.folder())
        for name, content in files.items():
            (new / name).parent.mkdir(parents=True, exist_ok=True)
            (new / name).write_bytes(content)
        result.place.parent.mkdir(parents=True, exist_ok=True)
        if result.place.exists():
            exchange(new, result.place)
        else:
            new.rename(result.place)
    return True


def _remove_earlier_runs(result: _Result) -> None:
    """Remove the published runs of the example whose run this is."""
    example = result.about.get("example")
    for about in (published.folder() / "runs").glob(f"*/{published.ABOUT}") if example else ():
        if about.parent != result.place and _published_example(about.parent) == example:
            with scratch(published.folder()) as folder:
                about.parent.rename(folder / "old")


def _published_example(place: Path) -> str | None:
    """The example of a published run; of one that this version cannot read it is not known."""
    try:
        return published.read(place, place.name).example
    except Damaged:
        return None
