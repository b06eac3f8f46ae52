"""Notes of the steps of a live run: when each began, what the current one waits for, and which one came to its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter

from experiments.errors import AftershockError
from results.runs import store


@dataclass(frozen=True)
class Awaited:
    """What a step waits for, since when [ns UTC], and how long that usually takes [s]."""

    what: str
    since_ns: int
    usual_s: float | None


@dataclass(frozen=True)
class StepNotes:
    """When each step began [ns UTC], in their order, what the last one of them waits for at this moment, and the last
    one that ended without an error."""

    began_ns: dict[str, int]
    awaited: Awaited | None = None
    last_done: str | None = None


def read(run_id: str) -> StepNotes:
    """The notes of a run; empty before its first step, or if the file is damaged: no run depends on it."""
    try:
        return TypeAdapter(StepNotes).validate_python(store.read_json(_path(run_id)))
    except (FileNotFoundError, AftershockError, ValueError):  # pydantic's ValidationError is a ValueError
        return StepNotes({})


def begin(run_id: str, step: str) -> None:
    """Note that a step begins now. If a step is repeated, only its last beginning counts."""
    notes = read(run_id)
    earlier = {name: began_ns for name, began_ns in notes.began_ns.items() if name != step}
    _write(run_id, StepNotes(earlier | {step: time.time_ns()}, last_done=notes.last_done))


@contextmanager
def going_on(run_id: str, step: str) -> Iterator[None]:
    """Note within this context that a step is going on; does nothing if the run has no directory."""
    path = _current_path(run_id)
    if store.live(run_id).root.exists():
        store.write_json(path, {"step": step})
        begin(run_id, step)
    try:
        yield
        _write(run_id, replace(read(run_id), last_done=step))
    finally:
        path.unlink(missing_ok=True)


def current(run_id: str) -> str | None:
    """The name of the current step, or None. A step whose process was killed counts until the next one begins."""
    try:
        return str(store.read_json(_current_path(run_id))["step"])
    except FileNotFoundError:
        return None


@contextmanager
def waiting(run_id: str, what: str = "", usual_s: float | None = None) -> Iterator[Callable[[str], None]]:
    """Note within this context what the current step waits for; what it yields is called when that changes."""

    def tell(what: str, usual_s: float | None = None) -> None:
        _note_awaited(run_id, Awaited(what, time.time_ns(), usual_s))

    if what:
        tell(what, usual_s)
    try:
        yield tell
    finally:
        _note_awaited(run_id, None)


def _note_awaited(run_id: str, awaited: Awaited | None) -> None:
    _write(run_id, replace(read(run_id), awaited=awaited))


def _current_path(run_id: str) -> Path:
    return store.live_directory(run_id) / "step.json"


def _path(run_id: str) -> Path:
    return store.live_directory(run_id) / "steps.json"


def _write(run_id: str, notes: StepNotes) -> None:
    """Does nothing for a run without a directory, such as one that was torn down meanwhile.

    Nor does it fail: a full disk must not keep a teardown from its cluster.
    """
    if _path(run_id).parent.is_dir():
        with suppress(OSError):
            store.write_json(_path(run_id), asdict(notes))
