"""The trigger form: an experiment to start from, and one typed param for each field that may differ from it.

A param is named by the field's path (`engine.checkpoint_interval_s`). Every param may be empty: then the experiment
from which the run starts decides. Common faults are plain fields; the fault spec as a whole is one text.
"""

from __future__ import annotations

import functools
from typing import Any

from aftershock.airflow import common_faults, field_help, starting_points
from aftershock.airflow.param_schemas import FAULTS, YES_OR_NO, bounds, is_switch, leaves, optional, takes_yaml
from experiments.documents.gate import MOST_DEPTH
from experiments.documents.parsing import parse_value
from experiments.errors import BadInput
from experiments.spec import Experiment

RUN_ID = "run_id"
NO_FIELDS = {RUN_ID, starting_points.EXAMPLE, starting_points.FILE, *common_faults.FIELDS}
# The form has them only as part of `faults`.
OF_THE_WHOLE_SPEC = ("faults.hosts", *(f"faults.{part}" for part in common_faults.PARTS))
TRACE = "faults.trace"  # the faults in the file; racks may be said beside it
OPEN = ("window_s", "seed", "name")  # in the first section, with what says where to start and which faults are common
PARTS = ("load", "engine", "workload", "cluster", FAULTS, "tolerances")
EXPERTS = "fault spec in full, for experts"
OTHER_UNITS = {"faults.duration": "s", "load.rate": "records/s"}  # those that the field's name does not tell


def fields() -> dict[str, dict[str, Any]]:
    """`{param: JSON schema with default, title and description}`, in the order of the form.

    Airflow shows the params without a section first, and opens only those.
    """
    known = _schemas()
    run_id = optional({"type": "string", "pattern": "^[a-z0-9][a-z0-9-]{0,127}$"})
    faults = {name: optional(schema) for name, schema in common_faults.FIELDS.items()}
    opened = starting_points.fields() | faults | {path: known[path] for path in OPEN} | {RUN_ID: run_id}
    form = {path: schema | _told(path, schema) for path, schema in opened.items()}
    for part in PARTS:
        below = [path for path in known if path.startswith(f"{part}.") and path not in OF_THE_WHOLE_SPEC]
        form |= {path: known[path] | _told(path, known[path]) | {"section": part} for path in below}
    return form | {FAULTS: known[FAULTS] | _told(FAULTS, known[FAULTS]) | {"section": EXPERTS}}


def flatten(experiment: Experiment) -> dict[str, Any]:
    """Every field of an experiment as params; the faults are one, and the run starts from no other experiment."""
    flat: dict[str, Any] = {starting_points.EXAMPLE: None}
    for name, value in experiment.model_dump(mode="json").items():
        below = isinstance(value, dict) and name != FAULTS
        flat |= {f"{name}.{leaf}": _word(held) for leaf, held in value.items()} if below else {name: value}
    return flat


def fold(params: dict[str, Any]) -> dict[str, Any]:
    """The experiment document that params describe; `run_id` is no part of it. Raises `BadInput` about a param.

    The params of a DAG run are those of the form and any others that its configuration names.
    """
    given = {path: _value(path, value) for path, value in params.items() if value is not None}
    asked = {path: value for path, value in given.items() if path not in NO_FIELDS}
    plain = {name: given[name] for name in common_faults.FIELDS if name in given}
    _refuse_what_is_said_twice(asked, plain)
    document = starting_points.document(given)
    for part in ("workload", "engine"):  # of another one than the example's, what is left empty has its own default
        if asked.get(f"{part}.name", document[part]["name"]) != document[part]["name"]:
            document[part] = {}
    for path, value in asked.items():
        _put(document, path, value)
    common_faults.put(document, plain)
    return document


def _refuse_what_is_said_twice(asked: dict[str, Any], plain: dict[str, Any]) -> None:
    for path, value in asked.items():
        if any(other.startswith(f"{path}.") for other in asked):
            raise BadInput(path, value, "a field that is given once: by its own param, or by those below it")
        other = next((name for name in plain if path != TRACE or name != common_faults.RACKS), None)
        if other and path in (FAULTS, TRACE, *OF_THE_WHOLE_SPEC):
            raise BadInput(path, value, f"left empty, or {other} is: both say which faults there are")


def _put(document: dict[str, Any], path: str, value: Any) -> None:
    *parents, leaf = path.split(".", MOST_DEPTH + 1)
    node = document
    for parent in parents:
        node = node.setdefault(parent, {})
        if not isinstance(node, dict):
            raise BadInput(path, value, f"a field below a mapping; {parent} is a value")
    node[leaf] = value


@functools.cache
def _schemas() -> dict[str, dict[str, Any]]:
    return {path: optional(leaf) for path, leaf in leaves().items()}


def _word(value: Any) -> Any:
    """A value as the form has it."""
    words = {value: word for word, value in YES_OR_NO.items()}
    return words[value] if isinstance(value, bool) else value


def _value(path: str, value: Any) -> Any:
    """What a text stands for in a field that takes no texts."""
    schema = _schemas().get(path)
    if schema is None or not isinstance(value, str):
        return value
    if takes_yaml(schema):
        return parse_value(value, path, value)
    return YES_OR_NO.get(value, value) if is_switch(schema) else value


def _told(path: str, schema: dict[str, Any]) -> dict[str, str]:
    """Title and description of a field: its name and unit, what it does and when to change it, and its bounds."""
    details = ", ".join(filter(None, [path, bounds(schema)]))
    sentences = field_help.SENTENCES.get(path, "")  # a field without any is seen by the tests, and costs no form
    return {"title": _title(path), "description_md": f"{sentences} ({details})"}


def _title(path: str) -> str:
    """The field's name in words, its unit in brackets."""
    name, units = path.rpartition(".")[2], {"_s": "s", "_mb": "MB"}
    ending = next((ending for ending in units if name.endswith(ending)), "")
    unit = units.get(ending) or OTHER_UNITS.get(path) or ("1/s" if name.endswith("rate") else None)
    return name.removesuffix(ending).replace("_", " ") + (f" [{unit}]" if unit else "")
