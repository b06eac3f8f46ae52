"""JSON schemas for the fields of an experiment, in a form that Airflow's trigger form shows well.

Airflow shows a list of types as the first of them that is not null. Of several it makes a text box, which stays empty
for an empty value; what is no text comes through it as YAML.
"""

from __future__ import annotations

from typing import Any

from experiments.spec import Experiment

# Airflow checks each schema again for every task whenever it reads the DAG: by this draft in a quarter of the time that
# jsonschema's default takes. No schema has a keyword that only a later draft knows.
DRAFT = "http://json-schema.org/draft-07/schema#"
FAULTS = "faults"
YES_OR_NO = {"yes": True, "no": False}  # a switch could not be left empty, and of a drop-down Airflow shows texts only
EMPTY = {"null": "as in the experiment"}


def leaves() -> dict[str, dict[str, Any]]:
    """The schema of each field by its path; the fault spec comes as a whole, and then its fields."""
    schema = Experiment.model_json_schema()
    return _leaves(schema, schema["$defs"], "")


def optional(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of the same field when it may be left empty, which it is by default."""
    dropped = ("default", "description", "title")
    field = _one_type({key: item for key, item in schema.items() if key not in dropped})
    types = [name for name in _types(field) if name != "null"]
    if types == ["boolean"]:
        field, types = {"enum": list(YES_OR_NO)}, ["string"]
    if "object" in types or ("array" in types and field.get("items", {}).get("type") != "string"):
        types = [*types, "string"]
    field |= {"$schema": DRAFT, "type": [*types, "null"], "default": None}
    if "enum" in field:
        field |= {"enum": [*filter(None, field["enum"]), None], "values_display": EMPTY}
    return field


def takes_yaml(schema: dict[str, Any]) -> bool:
    """Whether a text in this field stands for a list or a mapping."""
    return "string" in schema["type"] and not {"array", "object"}.isdisjoint(schema["type"])


def is_switch(schema: dict[str, Any]) -> bool:
    """Whether the field is one of yes and no."""
    return schema.get("enum") == [*YES_OR_NO, None]


def bounds(field: dict[str, Any]) -> str:
    """The bounds of a number, such as `≥ 1, ≤ 64`."""
    words = {"exclusiveMinimum": ">", "minimum": "≥", "exclusiveMaximum": "<", "maximum": "≤"}
    return ", ".join(f"{sign} {field[key]:,}" for key, sign in words.items() if key in field)


def _leaves(schema: dict[str, Any], definitions: dict[str, Any], prefix: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name, field in schema["properties"].items():
        path, models = f"{prefix}{name}", _models(field, definitions)
        if not models or path == FAULTS:
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


def _one_type(field: dict[str, Any]) -> dict[str, Any]:
    """Pydantic writes an optional value as `anyOf`; the form shows the right input only for a list of types."""
    options = field.get("anyOf", [])
    if not options or any(option["type"] in ("object", "array") for option in options):
        return field
    merged = {key: value for option in options for key, value in option.items()}
    rest = {key: value for key, value in field.items() if key != "anyOf"}
    return {**rest, **merged, "type": [option["type"] for option in options]}


def _types(field: dict[str, Any]) -> list[str]:
    given = field.get("type", [])
    return [given] if isinstance(given, str) else list(given)
