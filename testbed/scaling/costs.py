"""The costs of operations on a worker: measured by `measure`, used by `cluster`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

Point = tuple[float, float, float]  # how many, how much is in them, and what it cost


class Linear(NamedTuple):
    """A cost that is fixed for each thing, and grows with what is in it."""

    fixed: float
    each: float

    def of(self, count: float, size: float) -> float:
        """The cost of `count` things with `size` in them altogether."""
        return self.fixed * count + self.each * size


def fitted(points: Iterable[Point]) -> Linear:
    """The costs, none below nothing, from which these points are least off, each by its own measure.

    So what is small counts as much as what is large, and what was disturbed and took many times as long counts little.
    """
    rows = np.array([point for point in points if point[0]], dtype=float)
    if not len(rows):
        return Linear(0.0, 0.0)
    counts, costs = rows[:, 0], rows[:, 2]
    unit = np.where(costs > 0, costs, counts)
    found, _ = nnls(rows[:, :2] / unit[:, None], costs / unit)
    return Linear(*map(float, found))


@dataclass(frozen=True)
class OperatorCosts:
    """One operator's, taken with its input from one channel and its output to one channel a stream.

    step_s        CPU seconds by message and record read (of a source: made)
    rows_out      records that come out for each that goes in
    sent_bytes    bytes by message and record that it sends, without what a protocol adds
    log_s         CPU seconds of the log by message and record sent
    log_bytes     bytes of the log by message and record sent
    state_bytes   bytes of a checkpoint by checkpoint and record read since the one before
    """

    step_s: Linear
    rows_out: float
    sent_bytes: Linear
    log_s: Linear
    log_bytes: Linear
    state_bytes: Linear


@dataclass(frozen=True)
class Costs:
    """All that a simulated cluster is made of.

    operators      by name
    split_s        CPU seconds for each further message that a batch is split into by key
    send_s         CPU seconds by message and byte that leaves for another worker
    receive_s      CPU seconds by message and byte that comes from another worker
    checkpoint_s   CPU seconds of taking a checkpoint
    write_s        seconds by object and byte that a store takes; workers don't disturb each other there
    read_s         seconds by object and byte for reading it again
    connect_s      seconds until a worker has a connection to another one
    hop_s          seconds that a message or an order is under way between two workers
    """

    operators: dict[str, OperatorCosts]
    split_s: float
    send_s: Linear
    receive_s: Linear
    checkpoint_s: float
    write_s: Linear
    read_s: Linear
    connect_s: float
    hop_s: float
