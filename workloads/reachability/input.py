"""The cyclic workload of `checkmate`: a graph whose links and source nodes come and go, and what can be reached in it.

In each block of 20 events, 12 create a link, 3 create a source node, 4 delete a link and 1 deletes a source node (60,
15, 20 and 5 %, section VII of the paper). In a steady graph 8 create and 8 delete links, 2 and 2 sources.
Their order is drawn for each block. Every event follows from seed and position alone: the deletions of a group of
blocks take links and sources of the group before, each at most once. As long as there is nothing to delete, more links
are created instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from enum import IntEnum, auto
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from experiments.workloads.catalogue import STEADY_GROUP, ReachabilitySpec
from workloads.json_records import PLACE, values
from workloads.nexmark.counters import below, bits
from workloads.schedule import Integers, Schedule

LINKS = pa.schema([(name, pa.int64()) for name in ("link", "start", "end", "change")])
SOURCES = pa.schema([("root", pa.int64()), ("node", pa.int64()), ("path", pa.string()), ("change", pa.int64())])
THEN = ">"  # between the nodes of a path

CYCLE = 20
SHUFFLE, STRIDE = 7, 343  # prime to 20; prime to what every mix creates in a group

Path: TypeAlias = tuple[int, int, str]
Columns: TypeAlias = pa.RecordBatch | pa.Table
Chosen: TypeAlias = tuple[NDArray[np.bool_], pa.RecordBatch]
"""Which of the events are of a kind, (events,), and those."""


class Mix(NamedTuple):
    """How many events of a block of 20 are of each kind, by their rank in this order.

    group   so many blocks delete only what as many blocks before have created
    """

    links: int
    sources: int
    deleted_links: int
    deleted_sources: int
    group: int

    @property
    def first_deleted(self) -> int:
        """The rank of the first event that deletes."""
        return self.links + self.sources

    @property
    def first_deleted_source(self) -> int:
        """The rank of the first event that deletes a source."""
        return self.first_deleted + self.deleted_links


GROWING, STEADY = Mix(12, 3, 4, 1, group=16), Mix(8, 2, 8, 2, group=STEADY_GROUP)


class GraphDraw(IntEnum):
    """What a random number is for."""

    ORDER, LINK_START, LINK_END, SOURCE_NODE, LINK_TURN, SOURCE_TURN = (auto() for _ in range(6))


def records(spec: ReachabilitySpec, schedule: Schedule) -> Callable[[int, int], list[bytes]]:
    """The workload's input: values by position, the columns of `events_of` with `kind` link or source."""

    def made(start: int, stop: int) -> list[bytes]:
        positions, cycle, rank = _drawn(spec, start, stop)
        kinds = {"link": _links(spec, cycle, rank), "source": _sources(spec, cycle, rank)}
        return values({kind: of.append_column(PLACE, pa.array(positions[at])) for kind, (at, of) in kinds.items()})

    return made


def events_of(spec: ReachabilitySpec, kind: str, start: int, stop: int) -> pa.RecordBatch:
    """The events of a kind, links or sources, at positions `start` to before `stop`.

    links     link, the nodes at its start and end
    sources   root, its node, and the path from it, which is that node

    `change` is 1 for one that is created and -1 for one that is deleted.
    """
    _, cycle, rank = _drawn(spec, start, stop)
    return (_links if kind == "links" else _sources)(spec, cycle, rank)[1]


def _drawn(spec: ReachabilitySpec, start: int, stop: int) -> tuple[Integers, Integers, Integers]:
    """Returns for each event its position, the number of its block of 20 events, and its rank in the block; (events,).

    The rank decides what the event does.
    """
    positions = np.arange(start, stop, dtype=np.int64)
    cycle, place = np.divmod(positions, CYCLE)
    rank = (place * SHUFFLE + below(bits(spec.stream_seed, GraphDraw.ORDER, cycle), CYCLE)) % CYCLE
    return positions, cycle, rank


def mix_of(spec: ReachabilitySpec) -> Mix:
    """The mix of a workload's events."""
    return STEADY if spec.steady else GROWING


def _links(spec: ReachabilitySpec, cycle: Integers, rank: Integers) -> Chosen:
    mix = mix_of(spec)
    early = (cycle < mix.group) & (rank >= mix.first_deleted)  # nothing is there to delete
    created = rank < mix.links
    deleted = (rank >= mix.first_deleted) & (rank < mix.first_deleted_source) & ~early
    nth = rank - mix.first_deleted
    targets = _deleted(spec, GraphDraw.LINK_TURN, cycle, nth, mix.deleted_links, mix.links)
    spare = -1 - (cycle * (CYCLE - mix.first_deleted) + nth)
    link = np.where(early, spare, np.where(created, cycle * mix.links + rank, targets))
    chosen = early | created | deleted
    ends = [
        below(bits(spec.stream_seed, draw, link), spec.nodes) for draw in (GraphDraw.LINK_START, GraphDraw.LINK_END)
    ]
    columns = (link, *ends, np.where(deleted, -1, 1))
    return chosen, pa.RecordBatch.from_arrays([pa.array(column[chosen]) for column in columns], schema=LINKS)


def _sources(spec: ReachabilitySpec, cycle: Integers, rank: Integers) -> Chosen:
    mix = mix_of(spec)
    created = (rank >= mix.links) & (rank < mix.first_deleted)
    deleted = (rank >= mix.first_deleted_source) & (cycle >= mix.group)
    nth = rank - mix.first_deleted_source
    targets = _deleted(spec, GraphDraw.SOURCE_TURN, cycle, nth, mix.deleted_sources, mix.sources)
    chosen = created | deleted
    root = np.where(created, cycle * mix.sources + rank - mix.links, targets)[chosen]
    node = below(bits(spec.stream_seed, GraphDraw.SOURCE_NODE, root), spec.nodes)
    columns = (root, node, node.astype(str), np.where(deleted, -1, 1)[chosen])
    return chosen, pa.RecordBatch.from_arrays([pa.array(column) for column in columns], schema=SOURCES)


def _deleted(
    spec: ReachabilitySpec, draw: GraphDraw, cycle: Integers, number: Integers, deletions: int, creations: int
) -> Integers:
    """What is deleted, (events,): the n-th deletion of a group takes one of the group before, another for every n."""
    blocks = mix_of(spec).group
    group = cycle // blocks - 1
    turn = below(bits(spec.stream_seed, draw, group), blocks * creations)
    nth = cycle % blocks * deletions + number
    return group * blocks * creations + (nth * STRIDE + turn) % (blocks * creations)


def reachable(spec: ReachabilitySpec, events: int) -> Counter[Path]:
    """The result after the first `events` events: for every remaining source, each path without a repeated node.

    A row is root, the node at the end, the path.
    """
    return paths(events_of(spec, "links", 0, events), events_of(spec, "sources", 0, events))


def paths(links: Columns, sources: Columns) -> Counter[Path]:
    """The rows of `reachable` for these events, by depth-first search, which shares nothing with the query.

    Events are given with start, end and change, and with root, node and change, each for itself or as sums. What is
    deleted and was never created counts as -1.
    """
    after: dict[int, Counter[int]] = {}
    for start, end, change in _rows(links, "start", "end", "change"):
        after.setdefault(start, Counter())[end] += change
    roots: Counter[tuple[int, int]] = Counter()
    for root, node, change in _rows(sources, "root", "node", "change"):
        roots[root, node] += change
    found: Counter[Path] = Counter()
    pending: list[tuple[int, tuple[int, ...], int]] = [
        (root, (node,), times) for (root, node), times in roots.items() if times
    ]
    while pending:
        root, path, times = pending.pop()
        for end, copies in after.get(path[-1], {}).items():
            if copies and end not in path:
                found[root, end, THEN.join(map(str, (*path, end)))] += times * copies
                pending.append((root, (*path, end), times * copies))
    return found


def _rows(events: Columns, *names: str) -> Iterator[tuple[int, ...]]:
    return zip(*(events.column(name).to_pylist() for name in names), strict=True)
