"""Documents that users write: every example with changes in its bytes, and structures that Hypothesis draws."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from hypothesis import strategies as st
from pydantic import BaseModel

from aftershock.airflow import trigger_form
from chaos.plan import plan
from experiments import spec
from experiments.documents import plain_yaml
from experiments.documents.gate import NotPlain
from experiments.documents.parsing import parse
from experiments.errors import BadInput
from experiments.external_cluster import ExternalCluster
from experiments.faults import FaultSpec
from experiments.inventory import Inventory
from experiments.matrix import Matrix, cells
from models.topology import parse_topology
from tests.fuzz.examples import Kind, kinds
from tests.fuzz.mutation import mutated
from tests.fuzz.session import Fuzzer, Session

LONGEST_LINE = 3000
FEW = 500.0  # faults that a plan may hold to be drawn here
WHOLE_NUMBER = f"{plain_yaml.TAG}int"


def answer(read: Callable[[], object]) -> str:
    """How a reader answered; raises unless it read its input, or refused it in one line that is safe to print."""
    try:
        found = read()
    except BadInput as refusal:
        line = str(refusal)
        if not line.isprintable() or len(line) > LONGEST_LINE or "allowed: " not in line:
            raise AssertionError(f"not a line to print: {line!r}") from refusal
        return "refused"
    if isinstance(found, BaseModel) and "\\u0000" in found.model_dump_json().replace("\\\\", ""):  # or half a character
        raise AssertionError("a text with NUL was read")
    return "read"


def feed_mutated(name: str) -> Callable[[Session], None]:
    """A fuzzer of one kind of document."""

    def feed(session: Session) -> None:
        with tempfile.TemporaryDirectory() as folder:
            kind = kinds(Path(folder))[name]
            for random in session.draws():
                data = mutated(random, kind.examples)
                with session.feeding(data):
                    session.outcomes[answer(lambda data=data: _read(kind, Path(folder), data))] += 1

    return feed


def _read(kind: Kind, folder: Path, data: bytes) -> object:
    path = folder / kind.file
    path.write_bytes(data)
    found = kind.read(path)
    return _drawn(found) if isinstance(found, FaultSpec) else found


def _drawn(found: FaultSpec) -> FaultSpec:
    if found.duration is None or found.failure_rate * found.duration < FEW:
        plan(found, 1)
    return found


def names_in(schema: Any) -> set[str]:
    """Every name of a field in a JSON schema, those of its definitions included."""
    if isinstance(schema, list):
        return {name for item in schema for name in names_in(item)}
    if not isinstance(schema, dict):
        return set()
    return set(schema.get("properties", {})) | {name for item in schema.values() for name in names_in(item)}


SCHEMA = spec.Experiment.model_json_schema()
NAMES = sorted(names_in(SCHEMA) | {"operators", "streams", "parallelism", "from", "to", "seeds", "skip", "common"})
WORDS = ["kill", "slow", "worker-1", "worker-9", "gateway", "nexmark", "own-job", "q5", "dataflow", "rate", "netns"]
TEXTS = st.sampled_from([*WORDS, "", "a\0", "\ud800", "\x1b[31m", "a\nb", "\u202e", "²", "a" * 300, "s3://a/b", "~x/y"])
WIDE = [1e-320, 1e308, float("nan"), float("inf"), 2**63, 10**399, 10**401]
NUMBERS = st.sampled_from([0, -1, 1, 2, 8, 0.5, 30.0, -0.0, *WIDE])
LEAVES = st.none() | st.booleans() | NUMBERS | st.integers() | st.floats() | TEXTS | st.text(max_size=8)
KEYS = st.sampled_from(NAMES) | TEXTS
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5), max_leaves=12
)
PATHS = st.lists(st.sampled_from([*NAMES, "0", "1", "²", "-1", "", "<<"]), min_size=1, max_size=5).map(".".join)
FORM = sorted(trigger_form.fields())


def feed_structures(session: Session) -> None:
    """Values of any shape as every kind of document, and as an experiment in which one field is changed."""

    def read(drawn: tuple[str, Any, Any]) -> None:
        place, value, document = drawn
        mine = document if isinstance(document, dict) else {"faults": document}
        for validate in (
            lambda: spec.validate(_changed(place, value)),
            lambda: spec.validate(mine),
            lambda: cells(parse(Matrix, mine, "matrix")),
            lambda: _drawn(parse(FaultSpec, mine, "faults")),
            lambda: parse_topology(mine),
            lambda: parse(Inventory, mine, "hosts"),
            lambda: parse(ExternalCluster, mine, "cluster"),
        ):
            session.outcomes[answer(validate)] += 1

    session.hypothesis(st.tuples(PATHS, VALUES, VALUES), read)


def _changed(place: str, value: Any) -> dict[str, Any]:
    *parents, leaf = place.split(".")
    document: dict[str, Any] = {}
    node = document
    for parent in parents:
        node = node.setdefault(parent, {})
    node[leaf] = value
    return document


def feed_forms(session: Session) -> None:
    """Configurations of DAG runs: fields of the form, paths that it does not have, values of any shape."""
    fields = st.sampled_from(FORM) | PATHS | st.sampled_from(FORM).map(lambda path: f"{path}.x") | TEXTS

    def read(params: dict[str, Any]) -> None:
        session.outcomes[answer(lambda: spec.validate(trigger_form.fold(params)))] += 1

    one = st.dictionaries(st.sampled_from(FORM), TEXTS | NUMBERS, min_size=1, max_size=1)
    session.hypothesis(one | st.dictionaries(fields, VALUES, max_size=5), read)


def feed_overrides(session: Session) -> None:
    """What `--set` is given."""
    values = st.sampled_from(["1", "2", "true", "[]", "{}", "a: 1", "&a [*a]", "!!bool x", "2026-02-30", "1:30", "[["])
    places = st.sampled_from(FORM) | PATHS | TEXTS
    texts = st.tuples(places, st.sampled_from(["=", "=", "=", ""]), values | TEXTS | st.text(max_size=12))

    def read(overrides: list[tuple[str, str, str]]) -> None:
        words = ["".join(parts) for parts in overrides]
        session.outcomes[answer(lambda: spec.load("soak", words))] += 1

    session.hypothesis(st.lists(texts, min_size=1, max_size=3), read)


OF_ALL_FORMS = b"""a: &x {b: [1, 0x1F, 017, 1_000, 1:30, 1.5e+3, .inf, ~, yes, 'no']}
c: {<<: *x, d: e}
? f
: >-
  g
h: [*x, !!str 1, !!float 1, ! 2]
"""


class CoreLoader(yaml.CSafeLoader):
    """PyYAML's own loader, with the numbers of YAML 1.2."""


CoreLoader.yaml_implicit_resolvers = plain_yaml.CoreResolver.yaml_implicit_resolvers
CoreLoader.add_constructor(WHOLE_NUMBER, lambda loader, node: plain_yaml.VALUES[WHOLE_NUMBER](node))


def feed_yaml(session: Session) -> None:
    """What is read of YAML is what PyYAML's own loader reads of it, but for numbers."""
    with tempfile.TemporaryDirectory() as folder:
        examples = [data for kind in kinds(Path(folder)).values() for data in kind.examples]
    examples.append(OF_ALL_FORMS)
    for random in session.draws():
        data = mutated(random, examples)
        with session.feeding(data):
            session.outcomes[_compared(data)] += 1


def _compared(data: bytes) -> str:
    try:
        found = plain_yaml.load(text := data.decode())
    except (NotPlain, BadInput, yaml.YAMLError, UnicodeDecodeError):
        return "refused"
    try:
        expected = yaml.load(text, Loader=CoreLoader)
    except yaml.constructor.ConstructorError as error:
        if "merge" not in str(error):  # PyYAML has no value for << where it is none of a mapping's keys
            raise
        return "read"
    if repr(found) != repr(expected):
        raise AssertionError(f"{found!r} instead of {expected!r}")
    return "read"


FUZZERS = [
    *(Fuzzer(name, feed_mutated(name)) for name in ("experiment", "matrix", "fault spec", "topology", "inventory")),
    *(Fuzzer(name, feed_mutated(name)) for name in ("existing cluster", "trace (CSV)", "trace (JSON)")),
    Fuzzer("structures", feed_structures, weight=0.5),
    Fuzzer("forms", feed_forms, weight=0.5),
    Fuzzer("overrides", feed_overrides, weight=0.5),
    Fuzzer("yaml", feed_yaml),
]
