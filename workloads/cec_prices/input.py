"""The input of the average prices of `cec`, section IV: purchases of items, 100 bytes each.

A partition of the input has all purchases of its items. Count windows depend on the order of the records, which is
therefore the same for every protocol and for the oracle.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum, auto

import numpy as np
import pyarrow as pa

from experiments.workloads.cec_prices import MOST_PRICE, CecPricesSpec
from workloads.json_records import PLACE, values
from workloads.nexmark.counters import below, bits
from workloads.schedule import NS_PER_MS, Integers, Schedule

PRICE, RECORD_BYTES = "price", 100
NUMBERS = (PLACE, "at_ns", "item", PRICE)
PRICES = pa.schema([*((name, pa.int64()) for name in NUMBERS), ("padding", pa.string())])
PADDING = "x" * (RECORD_BYTES - 8 * len(NUMBERS))


class PriceDraw(IntEnum):
    """What a random number is for."""

    ITEM, PRICE = auto(), auto()


def prices(spec: CecPricesSpec, schedule: Schedule, start: int, stop: int, source: int | None = None) -> pa.RecordBatch:
    """The purchases at positions `start` to before `stop`, each a function of the seed, its position and its source.

    at_ns   when it is due [ns], a whole millisecond as in Kafka
    item    0 to `spec.items` - 1
    price   1 to `MOST_PRICE`

    Args:
        source: the partition of the input that has all of them; by default they are dealt to the partitions in turn.
    """
    positions = np.arange(start, stop, dtype=np.int64)
    of = positions % schedule.partitions if source is None else np.full_like(positions, source)
    columns = (positions, schedule.all_due_ms(positions) * NS_PER_MS, *_drawn(spec, positions, of, schedule.partitions))
    return pa.RecordBatch.from_arrays([*map(pa.array, columns), pa.repeat(PADDING, positions.size)], schema=PRICES)


def records(spec: CecPricesSpec, schedule: Schedule) -> Callable[[int, int], list[bytes]]:
    """The workload's input: values by position; when a purchase is due is its Kafka timestamp."""
    told = [name for name in PRICES.names if name != "at_ns"]
    return lambda start, stop: values({PRICE: prices(spec, schedule, start, stop).select(told)})


def _drawn(spec: CecPricesSpec, positions: Integers, source: Integers, sources: int) -> tuple[Integers, Integers]:
    """Items and prices. Partition p of P has the items p, p + P, p + 2 P and so on; of fewer items than partitions
    several have one."""
    steps = min(sources, spec.items)
    first = source % steps
    item = below(bits(spec.stream_seed, PriceDraw.ITEM, positions), (spec.items - first + steps - 1) // steps)
    return first + steps * item, 1 + below(bits(spec.stream_seed, PriceDraw.PRICE, positions), MOST_PRICE)
