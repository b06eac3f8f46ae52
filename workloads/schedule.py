"""When records are due, for one record or many, as generators and workloads compute it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Integers: TypeAlias = NDArray[np.int64]
NS_PER_MS = 1_000_000


@dataclass(frozen=True)
class Schedule:
    """Record number p is due at `start_ns + p / rate`, and goes to partition p mod P at offset p div P.

    Moments are whole nanoseconds in 64 bits: the last one is in the year 2262. From `end_ns` on, nothing is due.
    """

    start_ns: int
    rate: float
    partitions: int = 1
    end_ns: int | None = None

    def ending(self, end_ns: int) -> Schedule:
        """The same schedule, with nothing due from `end_ns` on."""
        return replace(self, end_ns=end_ns)

    def then(self, start_ns: int, rate: float) -> Schedule:
        """What follows a schedule that ends: the records after its last are due from `start_ns` on, at another rate.

        Its own `start_ns` is when the first record of all would have been due at that rate.
        """
        sent = self.due_count(start_ns)
        return replace(self, start_ns=start_ns - round(sent / rate * 1e9), rate=rate, end_ns=None)

    def turn(self, number: int, of: int) -> Schedule:
        """The schedule of the records with this number, from 0, in every group of `of` records."""
        return replace(self, start_ns=self.start_ns + int(number / self.rate * 1e9), rate=self.rate / of)

    def due_ms(self, position: int) -> int:
        """When the record is due [ms since the epoch, rounded down]: its timestamp in Kafka."""
        return (self.start_ns + int(position / self.rate * 1e9)) // NS_PER_MS

    def all_due_ms(self, positions: Integers) -> Integers:
        """The same for many positions; equal to `due_ms` of each."""
        return (self.start_ns + (positions / self.rate * 1e9).astype(np.int64)) // NS_PER_MS

    def in_full_batches(self, count: int, batch_records: int) -> int:
        """How many of the first `count` records are in full batches; a batch has `batch_records` of one partition."""
        return count - count % (batch_records * self.partitions)

    def due_count(self, now_ns: int) -> int:
        """How many records are due before `now_ns`."""
        until_ns = now_ns if self.end_ns is None else min(now_ns, self.end_ns)
        return max(0, ceil((until_ns - self.start_ns) / 1e9 * self.rate))
