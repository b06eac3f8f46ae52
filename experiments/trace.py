"""A fault trace: faults that happened somewhere, or a plan that was drawn before, replayed at their times.

A trace is read once, when a spec is loaded. From then on its faults are listed in the spec. So the spec stays valid and
the same, on any machine, even if the file is changed or deleted.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from experiments.documents.gate import TRACE
from experiments.documents.parsing import parse, read_csv, read_json, user_path
from experiments.documents.repetition import repeated
from experiments.errors import BadInput
from experiments.fault_kinds import FaultOptions
from experiments.faults import FaultSpec, ListedFault
from experiments.misfits.faults import MOST_FAULTS, listed_misfits
from experiments.wording import exact

COLUMNS = ("at", "targets", "kind", "heal_after", "cause", *FaultOptions._fields)  # the first two must be there
LISTS = ("targets", "peers")
SEPARATOR = ";"


def with_trace(spec: FaultSpec, field: str = "trace") -> FaultSpec:
    """The spec with the faults of its trace among the listed ones, as far as they fall within the duration.

    A CSV file has the columns at [s], targets (hosts, separated by semicolons) and, where wanted, kind, heal_after [s],
    cause, and the options of kinds: peers (like targets), direction, cpu_share, delay [s]. A JSON file has
    {"events": [...]}, as `aftershock plan faults --json` prints it. Raises `BadInput` about `field` for a trace that
    cannot be read, is out of order, names a host that the spec does not have, or lies beyond the duration as a whole.
    """
    if spec.trace is None:
        return spec
    faults = list(_read(spec, user_path(spec.trace), field))
    listed = [fault for fault in faults if spec.duration is None or fault.at < spec.duration]
    if faults and not listed:
        first = f"{spec.trace}, the first fault at {exact(faults[0].at)}"
        raise BadInput(field, first, f"a trace with a fault before the duration of {exact(spec.duration_s)} s is over")
    return spec.model_copy(update={"trace": None, "events": (*spec.events, *listed)})


def _read(spec: FaultSpec, path: Path, field: str) -> Iterator[ListedFault]:
    last_s = 0.0
    rows = _csv_rows(path, field) if path.suffix.lower() == ".csv" else _json_rows(path, field)
    if len(rows) > MOST_FAULTS:
        raise BadInput(field, f"{path}, {len(rows):,} faults", f"at most {MOST_FAULTS:,} faults")
    for number, row in enumerate(rows, 1):
        place = f"{path}, fault {number}"
        fault = _fault(row, field, place)
        if fault.at < last_s:
            raise BadInput(
                field,
                f"{place}: at {exact(fault.at)}",
                f"faults in the order of their times, {exact(last_s)} or later",
            )
        for misfit in listed_misfits(spec, fault):
            raise BadInput(field, f"{place}: {misfit.field} {misfit.value!r}", str(misfit))
        last_s = fault.at
        yield fault


def _fault(row: dict[str, Any], field: str, place: str) -> ListedFault:
    try:
        return parse(ListedFault, {"cause": "trace"} | row, "fault")
    except BadInput as problem:
        raise BadInput(field, f"{place}: {problem.field} {problem.value!r}", problem.allowed) from None


def _json_rows(path: Path, field: str) -> list[dict[str, Any]]:
    rows = read_json(path, field, TRACE).get("events")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise BadInput(field, str(path), 'a JSON object with a list "events" of faults, or a file that ends in .csv')
    return rows


def _csv_rows(path: Path, field: str) -> list[dict[str, Any]]:
    names, rows = read_csv(path, field, MOST_FAULTS)
    if repeated(names) or not set(COLUMNS[:2]) <= set(names) <= set(COLUMNS):
        raise BadInput(field, f"{path}: {', '.join(names)}", f"the columns {', '.join(COLUMNS[:2])} and any of "
                       f"{', '.join(COLUMNS[2:])}")  # fmt: skip
    return [_filled(row) for row in rows]


def _filled(row: dict[str | None, Any]) -> dict[str, Any]:
    """The cells of a row that say something; surplus cells stay, under a name that is refused."""
    cells = {name or "surplus cells": value for name, value in row.items() if value}
    for name in LISTS:
        if name in cells:
            cells[name] = [host.strip() for host in cells[name].split(SEPARATOR)]
    return cells
