"""The trigger form: an experiment's models flattened into one typed Airflow param for each leaf field, and back.

A param is named by its path (`engine.checkpoint_interval_s`) and carries that field's JSON schema, so the form shows
a number, a switch or a drop-down where a nested object would only be a text box of JSON.
"""

from __future__ import annotations

from typing import Any

from experiments.spec import Experiment

RUN_ID = {
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
    leaves = dict(_leaves(schema, schema["$defs"], ""))
    return {path: _field(path, leaf, values[path]) for path, leaf in leaves.items()} | {"run_id": RUN_ID}


def flatten(experiment: Experiment) -> dict[str, Any]:
    """Every leaf of an experiment by its path, as JSON values."""
    return _flatten(experiment.model_dump(mode="json"), Experiment.model_json_schema())


def fold(params: dict[str, Any]) -> dict[str, Any]:
    """The experiment document that params describe; `run_id` is no part of it."""
    document: dict[str, Any] = {}
    for path, value in params.items():
        *parents, leaf = path.split(".")
        node = document
        for parent in parents:
            node = node.setdefault(parent, {})
        node[leaf] = value
    document.pop("run_id", None)
    return document


def _leaves(schema: dict[str, Any], definitions: dict[str, Any], prefix: str) -> list[tuple[str, dict[str, Any]]]:
    found = []
    for name, field in schema["properties"].items():
        model = _model(field, definitions)
        path = f"{prefix}{name}"
        found += _leaves(model, definitions, f"{path}.") if model else [(path, _inline(field, definitions))]
    return found


def _model(field: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any] | None:
    target = definitions.get(field.get("$ref", "").rpartition("/")[2], {})
    return target if "properties" in target else None


def _flatten(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    flat = {}
    for path, _ in _leaves(schema, schema["$defs"], ""):
        value: Any = document
        for part in path.split("."):
            value = value[part]
        flat[path] = value
    return flat


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
    hints = [leaf.get("description", "").partition("\n")[0], _bounds(field)]
    return {
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
