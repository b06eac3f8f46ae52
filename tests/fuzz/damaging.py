"""A small store and ways to damage its files: bytes, types and values of tables and documents, and what a file is."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from results.regression import records
from results.runs import store
from results.tables.columns import FLAG, REAL, TEXT, WHOLE
from results.tables.schema import SCHEMA_VERSION, TABLES, WORDS
from tests.fuzz.session import Session
from tests.fuzz.temporary_home import temporary_home
from tests.unit.results import synthetic

ALIKE = {"machine": "a machine", "experiment_digest": "d1", "schema_version": SCHEMA_VERSION, "cores": 2}
REGRESSION = "regression-20260921-060000-abcd"
VALUES: list[Any] = [
    None,
    0,
    -1,
    1,
    0.5,
    True,
    "",
    "x",
    "pass",
    [],
    {},
    [1],
    {"x": 1},
    -(2**63),
    2**63 - 1,
    10**30,
    1e308,
]
VALUES += [math.nan, math.inf, -1e308, 10**17, "\x1b[31m\n\0", "\ud800", "é" * 2000, "x" * 200_000, [[[[]]]], "../../x"]
TYPES = [pa.string(), pa.large_string(), pa.binary(), pa.int32(), pa.uint64(), pa.float32(), pa.float64(), pa.int64()]
TYPES += [pa.bool_(), pa.null(), pa.timestamp("ns"), pa.list_(pa.int64()), pa.decimal128(20, 3), pa.date32()]


@dataclass(frozen=True)
class Stored:
    """A run to damage, one that stays as it is, and the folder of a recorded comparison of theirs."""

    victim: store.Run
    whole: store.Run
    comparison: Path


def files_of_the_run(stored: Stored) -> list[Path]:
    """Those that lists, commands and pages read of the run to damage."""
    run = stored.victim
    return [run.root / "status.json", run.experiment_path, *run.tables.iterdir()]


def files_of(stored: Stored) -> list[Path]:
    """Those of the run to damage and those of the comparison."""
    return [*files_of_the_run(stored), *stored.comparison.iterdir()]


def feed_damaged(
    files: Callable[[Stored], list[Path]], check: Callable[[Stored, Path], str]
) -> Callable[[Session], None]:
    """A fuzzer that damages one of the files for each input, and puts it back.

    `check` gets the file that is damaged. It raises at a wrong answer and returns what a right one was.
    """

    def feed(session: Session) -> None:
        with temporary_home():
            stored = make_store()
            chosen = sorted(files(stored))
            for number, random in enumerate(session.draws()):
                path = random.choice(chosen)
                with Damage(path, random) as way, session.feeding(f"number {number}: {path.name}, {way}"):
                    session.outcomes[check(stored, path)] += 1

    return feed


def written(found: Any) -> None:
    """Raises unless it can be sent and printed: no number that JSON has not, no text that UTF-8 has not."""
    json.dumps(found, allow_nan=False, ensure_ascii=False).encode()


def in_one_line(error: Exception) -> str:
    """Raises unless a refusal can be printed as one line; returns how a fuzzer counts it."""
    if not str(error).isprintable():
        raise AssertionError(f"{error!r} is not one line of text")
    return "said to be damaged"


def make_store() -> Stored:
    runs = [_run(name) for name in ("victim", "whole")]
    where = {"experiment": "wordcount", "experiment_digest": "d1", "machine": "a machine"}
    own = {"metric": "utilization", "unit": "", "verdict": "worse"}
    row = where | own | {
        "better": "higher", "scale": "ratio", "why": "", "candidates": 5, "baseline": 9, "candidate_median": 0.712,
        "baseline_median": 0.81, "effect": -0.121, "low": -0.13, "high": -0.11, "p_value": 0.001,
    }  # fmt: skip
    change = where | own | {"run_id": "whole", "started_ns": 1, "before": 0.81, "after": 0.712, "p_value": 0.0001}
    entry = where | {"verdict": "worse", "candidates": ["whole"], "baseline": ["victim"], "pinned": False}
    document = {"regression_id": REGRESSION, "recorded_ns": 1, "verdict": "worse", "asked_for": None}
    document["experiments"] = [entry | {"sentences": ["utilization became worse"]}]
    kept = records.keep(
        records.RecordedComparison.model_validate(document), {"regression": [row], "change_points": [change]}
    )
    return Stored(*runs, kept.root)


def _run(run_id: str) -> store.Run:
    run = synthetic.make_run(store.home() / "runs", run_id=run_id, kills=(8.3,), window_s=24.0)
    synthetic.write_table(run, "probes", synthetic.probes())
    judged = [
        ("runs", "pass", "1", "1", None),
        ("ledger", "fail", "1", "2", "no"),
        ("hosts", "unknown", None, None, ""),
    ]
    verdicts = [(f"{one[0]}.values", *one) for one in judged]
    synthetic.write_table(run, "verdicts", pd.DataFrame(verdicts, columns=TABLES["verdicts"].names))
    for name in TABLES:
        if not run.has(name):
            synthetic.write_table(run, name, _made_up(name))
    store.write_json(
        run.root / "status.json",
        run.status().to_json() | ALIKE | {"others_cores": 0.3, "machine_speed": 40.0, "dag_run": "manual"},
    )
    store.write_json(run.experiment_path, {"load": {"mode": "rate"}, "engine": {"name": "structured-streaming"}})
    return run


class Damage:
    """Damages a file in one way, drawn by `random`, and puts it back."""

    def __init__(self, path: Path, random: Random) -> None:
        self.path, self.random, self.whole = path, random, path.read_bytes()

    def __enter__(self) -> str:
        values = _damage_table if self.path.suffix == ".parquet" else _damage_document
        ways: list[Callable[[Path, bytes, Random], None]] = [_damage_bytes, values, values, values]
        ways += [_be_something_else] if self.random.random() < 0.1 else []
        way = self.random.choice(ways)
        way(self.path, self.whole, self.random)
        return way.__name__

    def __exit__(self, *_: object) -> None:
        if self.path.is_dir() and not self.path.is_symlink():
            shutil.rmtree(self.path)
        self.path.unlink(missing_ok=True)
        self.path.write_bytes(self.whole)


def _damage_bytes(path: Path, whole: bytes, random: Random) -> None:
    data = bytearray(whole)
    for _ in range(random.choice([1, 1, 2, 5, 30])):
        at, length = random.randrange(len(data) + 1), random.choice([1, 1, 2, 8, 64])
        new = random.choice([b"", bytes(length), b"\xff" * length, random.randbytes(length)])
        data[at : at + random.choice([0, length])] = new
    cut = random.randrange(len(data) + 1) if random.random() < 0.1 else len(data)
    path.write_bytes(data[:cut])


def _damage_table(path: Path, whole: bytes, random: Random) -> None:
    table = pq.read_table(path)
    for _ in range(random.choice([1, 1, 1, 2, 4])):
        change = random.choice([_other_values, _other_values, _other_values, _other_type, _other_columns, _other_rows])
        table = change(table, random)
    try:
        pq.write_table(table, path)
    except pa.ArrowNotImplementedError:  # of what Parquet has no type for
        pq.write_table(table.select([]), path)


def _other_values(table: pa.Table, random: Random) -> pa.Table:
    """Some values of a column, within its type where they fit, else the whole column in a type where they do."""
    if not table.num_columns:
        return table
    at = random.randrange(table.num_columns)
    values, new = table.column(at).to_pylist(), random.choice(VALUES)
    some = range(len(values)) if random.random() < 0.3 else [random.randrange(max(len(values), 1))]
    values = [new if place in some else value for place, value in enumerate(values)]
    for kind in (table.schema.field(at).type, None):
        try:
            return table.set_column(at, table.column_names[at], pa.array(values, kind))
        except (pa.ArrowException, TypeError, OverflowError, UnicodeEncodeError, ValueError):
            continue
    return table


def _other_type(table: pa.Table, random: Random) -> pa.Table:
    if not table.num_columns:
        return table
    at, kind = random.randrange(table.num_columns), random.choice(TYPES)
    try:
        return table.set_column(at, table.column_names[at], table.column(at).cast(kind, safe=False))
    except pa.ArrowException:
        return table.set_column(at, table.column_names[at], pa.nulls(len(table), kind))


def _other_columns(table: pa.Table, random: Random) -> pa.Table:
    names = table.column_names
    if not names:
        return table
    at = random.randrange(len(names))
    return random.choice(
        [
            lambda: table.remove_column(at),
            lambda: table.append_column(names[at], table.column(at)),
            lambda: table.rename_columns([*names[:at], random.choice(["", "x\x1b", "é", "run_id"]), *names[at + 1 :]]),
            lambda: table.append_column("x", pa.nulls(len(table), random.choice([pa.date32(), pa.string()]))),
            lambda: table.select(list(range(at))),
        ]
    )()


def _other_rows(table: pa.Table, random: Random) -> pa.Table:
    return random.choice(
        [
            lambda: table.slice(0, 0),
            lambda: pa.concat_tables([table, table]),
            lambda: table.slice(random.randrange(len(table) + 1)),
            lambda: table.take(pa.array(random.sample(range(len(table)), len(table)), pa.int64())),
        ]
    )()


def _damage_document(path: Path, whole: bytes, random: Random) -> None:
    document = json.loads(whole)
    for _ in range(random.choice([1, 1, 2, 4])):
        document = _other_node(document, random)
    text = json.dumps(document)
    if random.random() < 0.05:
        text = random.choice(["[" * 100_000, '{"a":' * 50_000, "9" * 5000, "1e999", "", "\ufeff{}", "null"])
    path.write_bytes(text.encode("utf-16" if random.random() < 0.03 else "utf-8"))


def _other_node(node: Any, random: Random) -> Any:
    """The document with another value at a place in it, or without what is there."""
    if not isinstance(node, dict | list) or not node or random.random() < 0.15:
        return random.choice(VALUES)
    keys = list(node) if isinstance(node, dict) else list(range(len(node)))
    at, changed = random.choice(keys), node.copy()
    if random.random() < 0.15:
        del changed[at]
    else:
        changed[at] = _other_node(node[at], random)
    return changed


def _be_something_else(path: Path, whole: bytes, random: Random) -> None:
    path.unlink()
    aside = store.home() / "aside"
    aside.write_bytes(whole)
    random.choice(
        [
            lambda: None,
            lambda: path.mkdir(),
            lambda: os.mkfifo(path),
            lambda: path.symlink_to(aside),
            lambda: path.symlink_to(path),
            lambda: path.symlink_to("/dev/zero"),
            lambda: (path.touch(), os.truncate(path, 2**32)),
        ]
    )()


def _made_up(name: str) -> pd.DataFrame:
    """A few rows that fit a table, for one that no run has beside all the others."""
    cells: dict[pa.DataType, Any] = {TEXT: "x", WHOLE: 1, REAL: 0.5, FLAG: True}
    words = WORDS.get(name, {})
    row = {each.name: cells[each.type] for each in TABLES[name]}
    row |= {column: next(iter(choice)).value for column, choice in words.items()}
    return pd.DataFrame([row] * 3)
