"""The page of the experiment's fields, by the JSON schema of its models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from aftershock.reference.markdown import code, page, table
from experiments.spec import Experiment

Schema = dict[str, Any]
TEXT = """An experiment is a YAML file; [examples](examples.md) come with the project. The option
`aftershock benchmark --set FIELD=VALUE` sets a single field. Every field can be left out unless its default is
"required". If the default is empty, the meaning says what holds without the field, if anything does. Times are in
seconds, rates per second.

An unknown field is refused. Some combinations of fields are refused as well; the message names the field, its value and
what is allowed. The table of a workload has the fields that apply if `workload.name` has the name in its heading."""
SECTIONS = (  # title, path, definition
    ("Experiment", "", ""),
    ("Cluster", "cluster", "ClusterSpec"),
    ("Workload wordcount", "workload", "WordCountSpec"),
    ("Workload nexmark", "workload", "NexmarkSpec"),
    ("Workload reachability", "workload", "ReachabilitySpec"),
    ("Workload window-tree", "workload", "WindowTreeSpec"),
    ("Workload top-100", "workload", "Top100Spec"),
    ("Workload incidents", "workload", "IncidentsSpec"),
    ("Workload hashtags", "workload", "HashtagsSpec"),
    ("Workload cec-prices", "workload", "CecPricesSpec"),
    ("Workload own-job", "workload", "OwnJobSpec"),
    ("Input topic of an own job", "workload.inputs.TOPIC", "InputSpec"),
    ("Engine", "engine", "EngineSpec"),
    ("Load", "load", "LoadSpec"),
    ("Faults", "faults", "FaultSpec"),
    ("Fault process", "faults.processes.N", "FaultProcess"),
    ("Listed fault", "faults.events.N", "ListedFault"),
    ("Burst", "faults.bursts.N", "HostBurst"),
    ("Uniform delay", "heal_after", "UniformDelay"),
    ("Lognormal delay", "heal_after", "LognormalDelay"),
    ("Tolerances", "tolerances", "ToleranceSpec"),
)
HEAD = ("field", "value", "default", "meaning")
TITLES = {name: title for title, _, name in SECTIONS}
BOUNDS = (("exclusiveMinimum", "above"), ("minimum", "at least"), ("exclusiveMaximum", "below"), ("maximum", "at most"))
WORDS = {"integer": "integer", "number": "number", "string": "text", "boolean": "boolean", "null": "nothing"}


def experiment() -> str:
    """The page as Markdown; a section is a model of the spec, a row one of its fields."""
    schema = Experiment.model_json_schema()
    found = {"": schema, **schema["$defs"]}
    return page("Fields of an experiment", "experiments/spec.py", TEXT, *_sections(found))


def _sections(found: dict[str, Schema]) -> Iterator[str]:
    shown: dict[tuple[str, ...], str] = {}
    for title, path, name in SECTIONS:
        fields = (field for field, each in found[name]["properties"].items() if "const" not in each)
        rows = {field: _field(path, field, found[name], found) for field in fields}
        earlier = {field: shown[field, *row[1:]] for field, row in rows.items() if (field, *row[1:]) in shown}
        rows_here = [row for field, row in rows.items() if field not in earlier]
        yield "\n\n".join([f"## {title}", table(HEAD, rows_here), *_as_in(earlier)])
        shown = {(field, *row[1:]): title for field, row in rows.items() if path.startswith("faults.")} | shown


def _as_in(earlier: dict[str, str]) -> Iterator[str]:
    """Where the fields are that a section above has as well."""
    for title in dict.fromkeys(earlier.values()):
        fields = ", ".join(code(field) for field, place in earlier.items() if place == title)
        yield f"Also {fields} of a {_link(title)}."


def _field(path: str, name: str, model: Schema, found: dict[str, Schema]) -> tuple[str, ...]:
    schema = model["properties"][name]
    default = "required" if name in model.get("required", []) else _default(schema)
    workload = model["properties"].get("name", {}).get("const")  # which the heading names already
    meaning = schema.get("description", "").removeprefix(f"{workload}: ")
    return (code(f"{path}.{name}".lstrip(".")), _value(schema, found), default, meaning)


def _default(schema: Schema) -> str:
    default = schema.get("default")
    if isinstance(default, dict) and default:
        return "see there"
    if default is None or default in ([], {}):
        return ""
    return code(
        str(default).lower() if isinstance(default, bool) else f"{default:g}" if _is_round(default) else default
    )


def _number(bound: float) -> str:
    return f"{int(bound):,}" if bound == int(bound) else f"{bound:g}"


def _is_round(default: object) -> bool:
    return isinstance(default, float) and default == float(f"{default:g}")


def _value(schema: Schema, found: dict[str, Schema]) -> str:
    """What a field takes, in words."""
    if "$ref" in schema:
        return _defined(schema["$ref"].rpartition("/")[2], found)
    if "const" in schema:
        return code(schema["const"])
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(_value(each, found) for each in schema[several] if each != {"type": "null"})
    if schema["type"] == "array":
        return f"list of: {_value(schema['items'], found)}"
    if schema["type"] == "object":
        return f"mapping to: {_value(_content(schema), found)}"
    return ", ".join([WORDS[schema["type"]], *_limits(schema)])


def _defined(name: str, found: dict[str, Schema]) -> str:
    if name in TITLES:
        return _link(TITLES[name])
    return ", ".join(map(code, found[name]["enum"]))


def _link(title: str) -> str:
    return f"[{title.lower().removeprefix('workload ')}](#{title.lower().replace(' ', '-')})"


def _content(schema: Schema) -> Schema:
    return next(iter(schema.get("patternProperties", {"": schema.get("additionalProperties")}).values()))


def _limits(schema: Schema) -> Iterable[str]:
    if {"minimum", "maximum"} <= set(schema):
        yield f"{_number(schema['minimum'])} to {_number(schema['maximum'])}"
    else:
        yield from (f"{words} {_number(schema[bound])}" for bound, words in BOUNDS if bound in schema)
    if "pattern" in schema:
        yield f"as {code(schema['pattern'])}"
