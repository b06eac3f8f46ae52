"""The input of the window tree (`ppa`, figure 6): tuples of numbers, and what the numbers mean to its operators.

From the paper are the shape of the tree, the windows, that the state of an operator is its input of the window, and
that half of its input goes on. What the operators compute is ours. The `mark` of a tuple decides how far it gets: an
operator passes on tuples whose mark is below `limit`, with the next mark of a random sequence. To the `value` it adds
the values of the whole window. So which tuples get where depends on their marks alone, but each result depends on the
state of every operator on its way. Numbers are integers, and the sum of any window fits in 64 bits: results are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum, auto
from functools import partial

import numpy as np
import pyarrow as pa

from experiments.workloads.window_tree import QUARTERS, WindowTreeSpec
from workloads import by_position
from workloads.json_records import PLACE
from workloads.nexmark.counters import below, bits, chosen
from workloads.schedule import Integers, Schedule

TUPLE, TUPLES = "tuple", pa.schema([(name, pa.int64()) for name in (PLACE, "at_ns", "mark", "value")])
# The next mark is FACTOR x mark mod MARKS: a full sequence of 1 to MARKS - 1 (Park, Miller and Stockmeyer, CACM 1993).
MARKS, FACTOR = 2**31 - 1, 48_271
VALUES = 1_000_000
STOPPED = 7 / 8  # share of the tuples of a source outside the quarter that has the load: they get nowhere


class TreeDraw(IntEnum):
    """What a random number is for."""

    MARK, VALUE, STOPPED = auto(), auto(), auto()


def limit(spec: WindowTreeSpec) -> int:
    """The lowest mark with which a tuple goes no further."""
    return 1 + round(spec.selectivity * (MARKS - 1))


def tuples(spec: WindowTreeSpec, schedule: Schedule, start: int, stop: int) -> pa.RecordBatch:
    """The tuples at positions `start` to before `stop`, each a function of the seed and its position.

    at_ns   when it is due [ns], a whole millisecond as in Kafka
    mark    1 to MARKS - 1
    value   0 to VALUES - 1
    """
    return by_position.events(TUPLES, partial(_drawn, spec), schedule, start, stop)


def records(spec: WindowTreeSpec, _schedule: Schedule) -> Callable[[int, int], list[bytes]]:
    """The workload's input: values by position, with mark and value; when a tuple is due is its Kafka timestamp."""
    return by_position.records(TUPLE, partial(_drawn, spec))


def _drawn(spec: WindowTreeSpec, positions: Integers) -> dict[str, Integers]:
    marks, values, stopped = (bits(spec.stream_seed, draw, positions) for draw in TreeDraw)
    mark = 1 + below(marks, MARKS - 1)
    if spec.moves_every is not None:
        bar = limit(spec)
        elsewhere = _quarter(spec, positions) != positions // spec.moves_every % QUARTERS
        mark = np.where(elsewhere & chosen(stopped, STOPPED), bar + below(marks, MARKS - bar), mark)
    return {"mark": mark, "value": below(values, VALUES)}


def _quarter(spec: WindowTreeSpec, positions: Integers) -> Integers:
    """To which quarter of the sources the one belongs that has these positions: neighbours are in one."""
    found: Integers = positions % spec.sources * QUARTERS // spec.sources
    return found
