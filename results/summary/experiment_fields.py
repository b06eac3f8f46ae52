"""The fields in which the experiments of runs differ, as their files state them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from results.damage import Damaged
from results.runs.store import Run

NO_DIFFERENCE = "seed"  # repeats of one experiment differ in it


def fields_apart(runs: Sequence[Run]) -> dict[str, list[Any]]:
    """By dotted path, the value that each run's experiment has, of every field that differs, except the seed.

    None stands for null, and for a field that an experiment does not have, such as one of another workload. Nothing is
    known, and so nothing returned, if the experiment of a run is missing or damaged.
    """
    try:
        found = _apart("", [run.experiment() for run in runs])
    except (Damaged, FileNotFoundError):
        return {}
    return {path: found[path] for path in sorted(found) if path != NO_DIFFERENCE}


def _apart(path: str, values: list[Any]) -> dict[str, list[Any]]:
    if all(value == values[0] for value in values):
        return {}
    below = _below(values)
    if not below:
        return {path: values}
    found = (_apart(f"{path}.{name}" if path else name, each) for name, each in below.items())
    return {name: each for part in found for name, each in part.items()}


def _below(values: list[Any]) -> dict[str, list[Any]]:
    """The values of each part of objects, or of lists of one length; nothing of other values."""
    if all(isinstance(value, dict) for value in values):
        names = dict.fromkeys(name for value in values for name in value)
        return {name: [value.get(name) for value in values] for name in names}
    if all(isinstance(value, list) for value in values) and len(set(map(len, values))) == 1:
        return {str(place): list(each) for place, each in enumerate(zip(*values, strict=True))}
    return {}
