"""Compute one reproduction, write what it shows, and judge it."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from experiments.errors import BadInput
from experiments.locks import locked
from models.inputs import require_count
from reproductions.beside_published import as_written, beside_published
from reproductions.catalogue import CATALOGUE
from reproductions.judging import verdicts_of
from reproductions.reproduction import Computed, Progress, Reproduction
from results.checks.rules import NotEnough
from results.damage import Damaged
from results.runs.machine import machine_class
from results.runs.store import home, located, write_json
from results.runs.versions import versions
from results.verdict import Verdict, worst
from results.views.gallery import KINDS
from results.views.style import write_figure

if TYPE_CHECKING:
    from experiments.spec import Experiment

REPORT_EVERY_S = 5.0
VERDICTS = "verdicts.json"


@dataclass(frozen=True)
class Reproduced:
    """What one reproduction came to.

    verdicts  one row a check: check, verdict, observed, expected, detail (None or text each), and the planted error
              that it notices
    files     what was written: parquet, csv, png, svg (those only when there is a table), verdicts; nothing if there is
              no table but an earlier one, which then stays with its verdicts
    published  this table beside the one that came with the repository: verdict, observed, expected and detail; None
               where none was published. It is about this installation, not about the paper: `verdict` leaves it out
    published_runs  how many of the runs of the table are published ones, which another installation has made
    is_judged_again  the table is an earlier one that had lost its verdicts; its size and its making are not known
    """

    reproduction: Reproduction
    size: int | None
    verdicts: list[dict[str, str | None]]
    files: dict[str, Path]
    published: dict[str, str | None] | None = None
    published_runs: int = 0
    is_judged_again: bool = False

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of its checks."""
        return worst(str(row["verdict"]) for row in self.verdicts)

    def document(self) -> dict[str, Any]:
        """The result as a JSON document."""
        about = {"id": self.reproduction.id, "what": self.reproduction.what, "kind": self.reproduction.kind.value}
        files = {kind: str(path) for kind, path in self.files.items()}
        judged = {"size": self.size, "verdict": self.verdict.value, "verdicts": self.verdicts}
        made: dict[str, Any] = {}
        if not self.is_judged_again:
            made = {"command": self.command, "machine": machine_class(), "versions": versions()}
        beside = {"published": self.published, "published_runs": self.published_runs}
        return about | judged | made | beside | {"files": files}

    @property
    def command(self) -> str:
        """What makes it again."""
        default = self.reproduction.size and self.reproduction.size.default
        size = "" if self.size == default else f" --size {self.size}"
        return f"aftershock reproduce {self.reproduction.id}{size}"


def reproduce(id: str, out: Path | None = None, size: int | None = None) -> Reproduced:
    """Compute a table or figure of a paper, and write OUT/NAME.parquet, .csv, .png, .svg and .verdicts.json.

    `out` is reproductions/ID below the home of Aftershock unless given; NAME is the id with a hyphen for the slash.
    `size` counts what `Reproduction.size` says. Long ones tell their progress on standard error. Without a table the
    verdicts alone are written, and not even those if there is an earlier table with its verdicts, since they are not
    about it. An earlier table without verdicts is judged again: a process was killed while it was written. If it cannot
    be read, it is removed. Processes that make the same table at once write it one after the other.
    Raises `BadInput` for an unknown id, or for a size that is too small, or given where there is none to choose.
    """
    reproduction = find(id)
    chosen = _size(reproduction, size)
    folder = folder_of(id, out)
    evidence = _compute(reproduction, chosen)
    with tempfile.TemporaryDirectory(prefix=f".{reproduction.name}-", dir=folder) as scratch:
        names = [] if evidence.table is None else _write(Path(scratch), reproduction, evidence.table)
        verdicts = verdicts_of(reproduction, evidence)
        beside = beside_published(reproduction, chosen, Path(scratch))
        with locked(folder / f".{reproduction.name}.lock", f"the files of {id}", stays=False):
            if not names and all(_file(folder, reproduction, kind).is_file() for kind in ("parquet", VERDICTS)):
                return Reproduced(reproduction, chosen, verdicts, {}, beside)
            if not names and (earlier := _judged_again(folder, reproduction)) is not None:
                return earlier
            files, others = _files(folder, reproduction, names), _published_runs(evidence)
            result = Reproduced(reproduction, chosen, verdicts, files, beside, others)
            write_json(_file(Path(scratch), reproduction, VERDICTS), result.document())
            _publish(Path(scratch), folder, reproduction)
    return result


def verdicts_of_stored(reproduction: Reproduction, path: Path) -> list[dict[str, str | None]]:
    """What the checks of today make of the table in a Parquet file; raises `FileNotFoundError` and `Damaged`."""
    return verdicts_of(reproduction, Computed(reproduction.name, as_written(path), is_stored=True))


def _judged_again(folder: Path, reproduction: Reproduction) -> Reproduced | None:
    """The earlier table, with verdicts in the place of those that it lost; None if there is none that can be read."""
    try:
        verdicts = verdicts_of_stored(reproduction, _file(folder, reproduction, "parquet"))
    except (FileNotFoundError, Damaged):
        return None
    files = _files(folder, reproduction, [kind for kind in KINDS if _file(folder, reproduction, kind).is_file()])
    beside = beside_published(reproduction, None, folder)
    found = Reproduced(reproduction, None, verdicts, files, beside, is_judged_again=True)
    write_json(files["verdicts"], found.document())
    return found


def folder_of(id: str, out: Path | None = None) -> Path:
    """The folder that `reproduce` writes to, made if it is not there; raises `BadInput` where none can be."""
    path = home() / "reproductions" / id if out is None else Path(out).absolute()
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise BadInput("out", str(path), "a folder, or a path where one can be made") from None
    return path


def find(id: str) -> Reproduction:
    """The reproduction of this id; raises `BadInput` when there is none."""
    if id not in CATALOGUE:
        raise BadInput("id", id, f"one of {', '.join(CATALOGUE)}")
    return CATALOGUE[id]


def missing_runs(id: str, size: int | None = None) -> list[Experiment]:
    """The experiments without whose runs a table or figure lacks something, as far as that can be told by now.

    There are none for what is computed. Raises `BadInput` as `reproduce` does.
    """
    from reproductions import measured  # brings the whole spec of experiments, which what is computed does without

    return measured.missing(_needed(id, size))


def next_run(id: str, size: int | None, after: Experiment) -> Experiment | None:
    """The experiment that stands right after this one among those that a table or figure needs, if it lacks its run.

    None after one that is not needed. Raises `BadInput` as `reproduce` does.
    """
    from reproductions import measured

    needed = _needed(id, size)
    following = needed[needed.index(after) + 1 :][:1] if after in needed else []
    return next(iter(measured.missing(following)), None)


def _needed(id: str, size: int | None) -> Sequence[Experiment]:
    reproduction = find(id)
    chosen = _size(reproduction, size)
    return reproduction.needs(chosen or 1) if reproduction.needs else []


def measure_missing(id: str, size: int | None = None, out: Path | None = None) -> None:
    """Measure what a table or figure lacks of what is measured in this process, which may take minutes.

    Nothing is to be done for what is computed, or measured in runs. Raises `BadInput` as `reproduce` does.
    """
    reproduction = find(id)
    chosen = _size(reproduction, size)
    if reproduction.bench:
        folder_of(id, out)  # before it takes minutes
        reproduction.bench.measure_missing(chosen or 1, teller(id))


def _size(reproduction: Reproduction, size: int | None) -> int | None:
    if reproduction.size is None:
        if size is not None:
            raise BadInput("size", size, f"none: {reproduction.id} is always computed in full")
        return None
    if size is None:
        return reproduction.size.default
    require_count("size", size, reproduction.size.least)
    return size


def _compute(reproduction: Reproduction, size: int | None) -> Computed:
    try:
        return Computed(reproduction.name, reproduction.compute(size or 1, teller(reproduction.id)))
    except NotEnough as lack:
        return Computed(reproduction.name, None, str(lack))


def _published_runs(evidence: Computed) -> int:
    """How many runs of a table are published ones."""
    if evidence.table is None or "run_id" not in evidence.table:
        return 0
    return sum(located(run_id).is_published for run_id in evidence.table["run_id"].dropna().unique())


def _write(folder: Path, reproduction: Reproduction, table: pd.DataFrame) -> list[str]:
    """Write the table and the plot; returns the kinds of the files."""
    table.to_parquet(folder / f"{reproduction.name}.parquet", index=False)
    table.to_csv(folder / f"{reproduction.name}.csv", index=False)
    write_figure(folder, reproduction.name, partial(reproduction.plot, table))
    return ["parquet", "csv", "png", "svg"]


def _files(folder: Path, reproduction: Reproduction, kinds: list[str]) -> dict[str, Path]:
    written = {kind: _file(folder, reproduction, kind) for kind in kinds}
    return written | {"verdicts": _file(folder, reproduction, VERDICTS)}


def _file(folder: Path, reproduction: Reproduction, kind: str) -> Path:
    return folder / f"{reproduction.name}.{kind}"


def _publish(scratch: Path, folder: Path, reproduction: Reproduction) -> None:
    """Put the new files in the place of all that an earlier time left.

    The old verdicts go first and the new ones come last. So after a kill at any moment, verdicts that are there are
    those of the table beside them.
    """
    verdicts = f"{reproduction.name}.{VERDICTS}"
    for path in sorted(folder.glob(f"{reproduction.name}.*"), key=lambda path: path.name != verdicts):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for path in sorted(scratch.iterdir(), key=lambda path: path.name == verdicts):
        path.rename(folder / path.name)


def teller(id: str) -> Progress:
    """Say on standard error how far a reproduction is, but not more often than every few seconds."""
    said = time.monotonic()

    def tell(done: int, total: int) -> None:
        nonlocal said
        if time.monotonic() - said >= REPORT_EVERY_S:
            said = time.monotonic()
            print(f"{id}: {done} of {total}", file=sys.stderr, flush=True)

    return tell
