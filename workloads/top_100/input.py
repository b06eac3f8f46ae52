"""The input of the top-100 query (`ppa`, section VI-B, Q1): requests for the entries of a web site.

The paper replays one day of the log of the World Cup site of 1998, 48 times as fast.
The log itself is not part of this project. Popularity follows a Zipf law. An entry's number is its
rank. Partition i of the topic is the log of server i, and all servers get equally many requests.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum, auto
from functools import lru_cache, partial

import numpy as np
import pyarrow as pa

from experiments.workloads.ppa_queries import Binding, Top100Spec
from workloads import by_position
from workloads.json_records import PLACE
from workloads.nexmark.counters import bits
from workloads.popularity import Weighted, dealt, zipf
from workloads.schedule import Integers, Schedule

REQUEST, REQUESTS = "request", pa.schema([(name, pa.int64()) for name in (PLACE, "at_ns", "entry")])
TOP = 100


class RequestDraw(IntEnum):
    """What a random number is for."""

    SERVER, ENTRY = auto(), auto()


def requests(spec: Top100Spec, schedule: Schedule, start: int, stop: int) -> pa.RecordBatch:
    """The requests at positions `start` to before `stop`, each a function of the seed and its position.

    at_ns   when it is due [ns], a whole millisecond as in Kafka
    entry   1 to `spec.entries`, in the order of popularity
    """
    return by_position.events(REQUESTS, partial(_drawn, spec), schedule, start, stop)


def records(spec: Top100Spec, _schedule: Schedule) -> Callable[[int, int], list[bytes]]:
    """The workload's input: values by position, with the entry; when a request is due is its Kafka timestamp."""
    return by_position.records(REQUEST, partial(_drawn, spec))


def _drawn(spec: Top100Spec, positions: Integers) -> dict[str, Integers]:
    """Position p is a request to server p mod (servers)."""
    draws, servers = bits(spec.stream_seed, RequestDraw.ENTRY, positions), spec.sources
    found = np.empty(positions.size, np.int64)
    for server, entries in enumerate(_entries_of_servers(spec)):
        its = positions % servers == server
        found[its] = entries.drawn(draws[its])
    return {"entry": found}


@lru_cache(maxsize=4)
def _entries_of_servers(spec: Top100Spec) -> list[Weighted]:
    """The entries that each server gives out.

    If entries are bound to servers, the popularity within a server is in proportion to that within the site.
    """
    entries, shares = np.arange(1, spec.entries + 1), zipf(spec.entries, spec.skew)
    if spec.binding is Binding.SPREAD:
        return [Weighted.of(entries, shares)] * spec.sources
    home = dealt(spec.stream_seed, RequestDraw.SERVER, spec.entries, spec.sources)
    return [Weighted.of(entries[home == server], shares[home == server]) for server in range(spec.sources)]
