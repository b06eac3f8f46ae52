"""The trigger form: an experiment's models flattened into one typed Airflow param for each leaf field, and back.

The form has the fields of every workload; those that the chosen one does not have are left out on the way back.

A param is named by its path (`engine.checkpoint_interval_s`) and carries that field's JSON schema, so the form shows
a number, a switch or a drop-down where a nested object would only be a text box of JSON.
"""

from __future__ import annotations

import functools
from typing import Any

from experiments.errors import BadInput
from experiments.gate import MOST_DEPTH
from experiments.spec import Experiment
from experiments.workloads import own_fields

# Airflow checks each schema again for every task whenever it reads the DAG: by this draft in a quarter of the time that
# jsonschema's default takes. No schema has a keyword that only a later draft knows.
DRAFT = "http://json-schema.org/draft-07/schema#"
RUN_ID = {
    "$schema": DRAFT,
    "default": None,
    "type": ["string", "null"],
    "pattern": "^[a-z0-9][a-z0-9-]{0,127}$",
    "title": "run id",
    "description_md": "Name of the run; made from the experiment's name and the time if left empty.",
    "section": "run",
}


def fields(experiment: Experiment) -> dict[str, dict[str, Any]]:
    """`{param name: JSON schema with default, title and section}`; the defaults are the given experiment's values."""
    schema = Experiment.model_json_schema()
    values = flatten(experiment)
    leaves = _leaves(schema, schema["$defs"], "")
    chosen = {path: values.get(path, leaf.get("default")) for path, leaf in leaves.items()}
    return {path: _field(path, leaf, chosen[path]) for path, leaf in leaves.items()} | {"run_id": RUN_ID}


def flatten(experiment: Experiment) -> dict[str, Any]:
    """Every leaf of an experiment by its path, as JSON values."""
    schema = Experiment.model_json_schema()
    document, flat = experiment.model_dump(mode="json"), {}
    for path in _leaves(schema, schema["$defs"], ""):
        *parents, leaf = path.split(".")
        node = functools.reduce(lambda inner, part: inner[part], parents, document)
        if leaf in node:  # a field of another workload is not
            flat[path] = node[leaf]
    return flat


def fold(params: dict[str, Any]) -> dict[str, Any]:
    """The experiment document that params describe; `run_id` is no part of it. Raises `BadInput` about a param.

    The params of a DAG run are those of the form and whatever else its configuration names.
    """
    document: dict[str, Any] = {}
    for path, value in params.items():
        if path != "run_id":
            _put(document, path, value)
    if isinstance(document.get("workload"), dict):
        document["workload"] = own_fields(document["workload"])
    return document


def _put(document: dict[str, Any], path: str, value: Any) -> None:
    *parents, leaf = path.split(".", MOST_DEPTH + 1)
    node = document
    for parent in parents:
        node = node.setdefault(parent, {})
        if not isinstance(node, dict):
            raise BadInput(path, value, f"a field below a mapping; {parent} is a value")
    if leaf in node:
        raise BadInput(path, value, "a field that is given once: by its own param, or by those below it")
    node[leaf] = value


def _leaves(schema: dict[str, Any], definitions: dict[str, Any], prefix: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name, field in schema["properties"].items():
        path, models = f"{prefix}{name}", _models(field, definitions)
        if not models:
            found[path] = _inline(field, definitions)
        for model in models:
            for below, leaf in _leaves(model, definitions, f"{path}.").items():
                found[below] = _either(found[below], leaf) if below in found else leaf
    return found


def _models(field: dict[str, Any], definitions: dict[str, Any]) -> list[dict[str, Any]]:
    """The models that a field may have: one, several to choose from by name, or none if it is a leaf."""
    targets = [definitions.get(form.get("$ref", "").rpartition("/")[2], {}) for form in field.get("oneOf", [field])]
    return [target for target in targets if "properties" in target]


def _either(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """The schema of a field that several models have: the names of all, or else what the first one says."""
    if "const" not in second:
        return first
    rest = {key: value for key, value in first.items() if key != "const"}
    return {**rest, "enum": [*first.get("enum", [first.get("const")]), second["const"]]}


def _inline(schema: Any, definitions: dict[str, Any]) -> Any:
    """The schema with every reference replaced by what it refers to: a param's schema must stand alone."""
    if isinstance(schema, list):
        return [_inline(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    target = definitions[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else {}
    merged = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
    return {key: _inline(value, definitions) for key, value in merged.items()}


def _field(path: str, leaf: dict[str, Any], value: Any) -> dict[str, Any]:
    section, _, name = path.rpartition(".")
    field = _one_type({key: item for key, item in leaf.items() if key not in ("default", "description", "title")})
    if value is None and isinstance(field.get("type"), str):  # required, but by a workload that is not chosen
        field["type"] = [field["type"], "null"]
    hints = [leaf.get("description", "").partition("\n")[0], _bounds(field)]
    return {
        "$schema": DRAFT,
        **field,
        "default": value,
        "title": _title(name),
        "description_md": "; ".join(filter(None, [f"`{path}`", *hints])),
        "section": section or "experiment",
    }


def _one_type(field: dict[str, Any]) -> dict[str, Any]:
    """Pydantic writes an optional value as `anyOf`; the form shows the right input only for a list of types."""
    options = field.get("anyOf", [])
    if not options or any(option["type"] in ("object", "array") for option in options):
        return field
    merged = {key: value for option in options for key, value in option.items()}
    if "enum" in merged and {"type": "null"} in options:  # a choice that may be left open
        merged["enum"] = [*merged["enum"], None]
    rest = {key: value for key, value in field.items() if key != "anyOf"}
    return {**rest, **merged, "type": [option["type"] for option in options]}


def _title(name: str) -> str:
    """The field's name in words, its unit in brackets."""
    units = {"_s": "s", "_mb": "MB"}
    ending = next((ending for ending in units if name.endswith(ending)), "")
    unit = units.get(ending) or {"rate": "1/s", "duration": "s"}.get(name)
    return name.removesuffix(ending).replace("_", " ") + (f" [{unit}]" if unit else "")


def _bounds(field: dict[str, Any]) -> str:
    words = {"exclusiveMinimum": ">", "minimum": "≥", "exclusiveMaximum": "<", "maximum": "≤"}
    return ", ".join(f"{sign} {field[key]:g}" for key, sign in words.items() if key in field)
