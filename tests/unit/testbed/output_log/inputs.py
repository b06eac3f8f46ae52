"""Small operators with an output log, and input for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import pyarrow as pa

from testbed.operators import Aggregation, Emit, sliding, tumbling
from testbed.operators.count_windows import CountWindows
from testbed.operators.parted_aggregate import PartedAggregate
from testbed.operators.parted_join import PartedJoin
from testbed.operators.parts import Parted

PRICES = pa.schema([("item", pa.int64()), ("price", pa.int64()), ("at_ns", pa.int64())])
NAMED = pa.schema([("item", pa.string()), ("price", pa.int64()), ("at_ns", pa.int64())])
SUMS = (Aggregation("records", "count"), Aggregation("total", "sum", "price"), Aggregation("least", "min", "price"))
RECORDS = 48


@dataclass(frozen=True)
class Records:
    """Input on a port."""

    port: int
    batch: pa.RecordBatch


@dataclass(frozen=True)
class Watermark:
    at_ns: int


Event = Records | Watermark


@dataclass(frozen=True)
class Case:
    """An operator and its inputs. `make` gives an empty one that is open, with the schema of its rows."""

    make: Callable[[], tuple[Parted, pa.Schema]]
    inputs: tuple[pa.Schema, ...]

    def events(self, seed: int) -> list[Event]:
        """Batches of up to 5 records with event times that ascend but for some that are late, and watermarks."""
        random, events, number = Random(seed), list[Event](), 0
        while number < RECORDS:
            port, count = random.randrange(len(self.inputs)), random.randint(1, 5)
            times = [max(0, each - random.choice((0, 0, 0, 9))) for each in range(number, number + count)]
            rows = [self._row(random, port, at_ns) for at_ns in times]
            events.append(Records(port, pa.RecordBatch.from_pylist(rows, schema=self.inputs[port])))
            number += count
            if random.random() < 0.4:
                events.append(Watermark(number - 2))
        return events

    def _row(self, random: Random, port: int, at_ns: int) -> dict:
        item = random.choice((0, 0, 0, 1, 1, 2, 3))  # 0 has fast windows, 3 slow ones
        name = item if self.inputs[port].field("item").type == pa.int64() else f"item {item}"
        return {"item": name, "price": random.randrange(100), "at_ns": at_ns}


def _made(operator: Parted, *inputs: pa.Schema) -> tuple[Parted, pa.Schema]:
    rows = operator.schema(*inputs)
    operator.open()
    return operator, rows


def _count(size: int) -> Case:
    return Case(lambda: _made(CountWindows("item", "price", size, ("at_ns",)), PRICES), (PRICES,))


def _aggregate(schema: pa.Schema, *arguments: object) -> Case:
    return Case(lambda: _made(PartedAggregate("item", SUMS, *arguments), schema), (schema,))


def _join() -> Case:
    windows = sliding("at_ns", 12, 6), sliding("at_ns", 12, 6)
    return Case(lambda: _made(PartedJoin("item", "item", windows), PRICES, PRICES), (PRICES, PRICES))


CASES = {
    "windows of 1 record": _count(1),
    "windows of 3 records": _count(3),
    "windows of 10 records": _count(10),
    "time windows": _aggregate(PRICES, tumbling("at_ns", 10), Emit.ON_CLOSE),
    "time windows, running": _aggregate(NAMED, tumbling("at_ns", 10)),
    "sliding windows": _aggregate(NAMED, sliding("at_ns", 12, 4), Emit.ON_CLOSE),
    "without windows": _aggregate(PRICES),
    "join": _join(),
}
