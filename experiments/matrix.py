"""A matrix of experiments: workloads x engines x protections x faults x seeds, as a nightly regression runs them.

Each entry of an axis is a part of an experiment, under a name; a cell joins one entry of each axis with what all cells
have in common, and is named by the names of its entries.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from experiments import spec
from experiments.documents import kinds
from experiments.documents.field_types import Spelling
from experiments.documents.kinds import DocumentKind
from experiments.documents.parsing import Spec, parse, read_mapping, user_path
from experiments.documents.repetition import repeated
from experiments.errors import BadInput, in_file

MATRICES = Path(__file__).parent / "matrices"
MOST_CELLS = 1024  # as many tasks as Airflow makes of one (core.max_map_length)
MOST_ROWS = 16 * MOST_CELLS  # combinations of the axes
AXES = ("workloads", "engines", "protections", "faults")
OLD_NAME, NEW_NAME = "protocols", "protections"  # of an axis: a recovery is no protocol
OF_CELLS = ("name", "seed")  # what a cell is given, and no part of it may set

Name = Annotated[str, Spelling(r"^[a-z0-9][a-z0-9-]*$", "small letters, digits and hyphens, no hyphen first")]
Part = dict[str, Any]
Axis = Annotated[dict[Name, Part], Field(min_length=1)]


class Skip(Spec):
    """Cells that are left out: those with all of the entries named."""

    workloads: Name | None = None
    engines: Name | None = None
    protections: Name | None = None
    faults: Name | None = None


class Matrix(Spec):
    """The axes, what all cells have in common, and which cells are left out."""

    common: Part = Field(default_factory=dict)
    workloads: Axis
    engines: Axis
    protections: Axis
    faults: Axis
    seeds: Annotated[tuple[Annotated[int, Field(ge=0, lt=2**63)], ...], Field(min_length=1)]
    skip: tuple[Skip, ...] = ()


def load(source: str = "nightly") -> list[spec.Experiment]:
    """The experiments of a matrix file, or of one that ships with the project by its name, in order.

    All cells of the first seed come before those of the second: what changes in the course of a night, such as how
    fast the machine is, then disturbs all entries alike, and a night that is broken off can still be compared.

    Raises `BadInput` for the first problem: of the file, or of a cell that is no experiment, which is named.
    """
    path = MATRICES / f"{source}.yaml" if re.fullmatch(r"[a-z0-9-]+", source) else user_path(source)
    known = ", ".join(sorted(path.stem for path in MATRICES.glob("*.yaml")))
    document = read_mapping(path, "matrix", source, f", or one of {known}")
    kinds.require(DocumentKind.MATRIX, document, "matrix", source)
    with in_file(source):
        _refuse_old_name(document)
        return cells(parse(Matrix, document, "matrix"))


def _refuse_old_name(document: dict[str, Any]) -> None:
    """Raise `BadInput` for a file that names an axis as it was called before."""
    skips = document.get("skip")
    parts = {"": document} | {
        f"skip.{index}.": skip for index, skip in enumerate(skips if isinstance(skips, list) else ())
    }
    for where, part in parts.items():
        if isinstance(part, dict) and OLD_NAME in part:
            raise BadInput(
                f"{where}{OLD_NAME}", part[OLD_NAME], f"the same under {NEW_NAME}, as this axis is called now"
            )


def cells(matrix: Matrix) -> list[spec.Experiment]:
    """The experiments of a matrix; raises `BadInput` as `load` does."""
    _check_skips(matrix)
    for seed in repeated(matrix.seeds):
        raise BadInput("seeds", seed, "each seed once")
    axes = [getattr(matrix, axis) for axis in AXES]
    if (every := math.prod(map(len, axes))) > MOST_ROWS:
        raise BadInput("matrix", f"{every} combinations of its axes", f"at most {MOST_ROWS}, with those skipped")
    skipped = {tuple(skip.model_dump().values()) for skip in matrix.skip}
    kept = [names for names in itertools.product(*axes) if skipped.isdisjoint(_fitting(names))]
    if not 0 < len(kept) * len(matrix.seeds) <= MOST_CELLS:
        raise BadInput("matrix", f"{len(kept) * len(matrix.seeds)} cells", f"1 to {MOST_CELLS}")
    found = [_cell(matrix, names, seed) for seed in matrix.seeds for names in kept]
    _check_distinct(found)
    return found


def _fitting(names: tuple[str, ...]) -> Iterator[tuple[str | None, ...]]:
    """The entries of `skip` that would leave out the cells of these names: each name, or none, of every axis."""
    return itertools.product(*((name, None) for name in names))


def _check_skips(matrix: Matrix) -> None:
    for index, skip in enumerate(matrix.skip):
        if skip == Skip():
            raise BadInput(f"skip.{index}", {}, f"an entry of {', '.join(AXES)}")
        for axis, name in skip.model_dump(exclude_none=True).items():
            if name not in getattr(matrix, axis):
                raise BadInput(f"skip.{index}.{axis}", name, ", ".join(getattr(matrix, axis)))


def _cell(matrix: Matrix, names: tuple[str, ...], seed: int) -> spec.Experiment:
    parts = {f"{axis}.{name}": getattr(matrix, axis)[name] for axis, name in zip(AXES, names, strict=True)}
    _check_writers({"common": {key: matrix.common[key] for key in OF_CELLS if key in matrix.common}} | parts)
    document = functools.reduce(_joined, parts.values(), matrix.common)
    name = "-".join(names)
    try:
        return spec.validate(document | {"name": name, "seed": seed})
    except BadInput as error:
        raise BadInput(f"{name}: {error.field}", error.value, error.allowed, error.source) from None


def _check_writers(parts: dict[str, Part]) -> None:
    """Each field is set by one of the parts, and name and seed by none."""
    writers = dict.fromkeys(OF_CELLS, "the matrix itself")
    for where, part in parts.items():
        for path, value in _leaves(part):
            if path in writers:
                raise BadInput(f"{where}.{path}", value, f"a field that {writers[path]} does not set")
            writers[path] = where


def _leaves(part: Part, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in part.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _joined(first: Part, second: Part) -> Part:
    """Both parts in one; where both have a value, that of the second."""
    joined = {**first, **second}
    for key in first.keys() & second.keys():
        if isinstance(first[key], dict) and isinstance(second[key], dict):
            joined[key] = _joined(first[key], second[key])
    return joined


def _check_distinct(found: list[spec.Experiment]) -> None:
    """Two cells are neither the same experiment nor of one name: `a-b` and `c` are joined as `a` and `b-c` are."""
    seen: dict[str, str] = {}
    for name, _ in repeated((each.name, each.seed) for each in found):
        raise BadInput("matrix", name, "cells with different names: rename an entry, since hyphens join the names")
    for experiment in found:
        document = json.dumps(experiment.model_dump(mode="json", exclude={"name"}), sort_keys=True)
        if document in seen:
            raise BadInput("matrix", experiment.name, f"cells that differ; this one is what {seen[document]} is")
        seen[document] = experiment.name
