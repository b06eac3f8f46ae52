"""The operator partitions and channels of a dataflow."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from testbed.core.dataflow.graph import Dataflow, Edge, Element, check


@dataclass(frozen=True)
class Channel:
    """An ordered way from one partition to another.

    on_cycle    whether what is sent on it can come back
    returning   whether it closes a cycle: without these channels there would be none
    """

    id: int
    sender: int
    receiver: int
    port: int
    schema: pa.Schema
    on_cycle: bool
    returning: bool = False


@dataclass(frozen=True)
class Route:
    """Where the output of a partition goes for one stream: to the channel of the key, to the only one, or without a key
    to several, by content (`partitioning`)."""

    key: str | None
    channels: tuple[Channel, ...]


@dataclass(frozen=True)
class PartitionLayout:
    """One operator partition: its number in the dataflow, its name `operator.index`, and its channels."""

    number: int
    operator: str
    index: int
    element: Element
    inputs: tuple[Channel, ...]
    routes: tuple[Route, ...]

    @cached_property
    def name(self) -> str:
        """Its name, `operator.index`."""
        return f"{self.operator}.{self.index}"

    def slot(self, slots: int) -> int:
        """Which of `slots` slots hosts it: partitions with the same index of all operators are in one slot."""
        return self.index % slots

    @cached_property
    def outputs(self) -> tuple[Channel, ...]:
        """The channels of all of its routes, in their order."""
        return tuple(channel for route in self.routes for channel in route.channels)


@dataclass(frozen=True)
class Layout:
    """All partitions and channels, each at the index that is its number."""

    name: str
    partitions: tuple[PartitionLayout, ...]
    channels: tuple[Channel, ...]
    cyclic: bool

    def with_upstream(self, numbers: Iterable[int]) -> frozenset[int]:
        """These partitions, and every one on whose output one of them depends."""
        found = set(numbers)
        pending = list(found)
        while pending:
            new = {channel.sender for channel in self.partitions[pending.pop()].inputs} - found
            found |= new
            pending += new
        return frozenset(found)


def lay_out(flow: Dataflow) -> Layout:
    """The layout of a dataflow; raises `BadInput` as `graph.check` does."""
    check(flow)
    first = _first_numbers(flow)
    cycle = flow.on_cycle()
    channels: list[Channel] = []
    routes: dict[int, list[Route]] = {}
    for edge in flow.edges:
        on_cycle = edge.sender in cycle and edge.receiver in cycle
        marks = edge.port, edge.schema, on_cycle, on_cycle and edge.fed
        for index in range(flow.nodes[edge.sender].parallelism):
            ends = [first[edge.receiver] + i for i in _receivers(flow, edge, index)]
            sender, at = first[edge.sender] + index, len(channels)
            new = [Channel(at + i, sender, end, *marks) for i, end in enumerate(ends)]
            channels += new
            routes.setdefault(sender, []).append(Route(edge.key, tuple(new)))
    return Layout(flow.name, _partitions(flow, first, channels, routes), tuple(channels), bool(cycle))


def _first_numbers(flow: Dataflow) -> dict[str, int]:
    numbers, at = {}, 0
    for node in flow.nodes.values():
        numbers[node.name] = at
        at += node.parallelism
    return numbers


def _receivers(flow: Dataflow, edge: Edge, index: int) -> range | list[int]:
    """The receiving partitions of one sending partition: all for a key, else those that lie beside it.

    With n senders and m receivers, sender i has receiver floor(i m / n). If there are more receivers than senders, it
    has all j with floor(j n / m) = i. These are the papers' one-to-one, merge and split.
    """
    sending, receiving = flow.nodes[edge.sender].parallelism, flow.nodes[edge.receiver].parallelism
    if edge.key is not None:
        return range(receiving)
    if sending >= receiving:
        return [index * receiving // sending]
    return [j for j in range(receiving) if j * sending // receiving == index]


def _partitions(
    flow: Dataflow, first: dict[str, int], channels: list[Channel], routes: dict[int, list[Route]]
) -> tuple[PartitionLayout, ...]:
    inputs: dict[int, list[Channel]] = {}
    for channel in channels:
        inputs.setdefault(channel.receiver, []).append(channel)
    return tuple(
        PartitionLayout(
            number, node.name, index, node.element, tuple(inputs.get(number, ())), tuple(routes.get(number, ()))
        )
        for node in flow.nodes.values()
        for index, number in enumerate(range(first[node.name], first[node.name] + node.parallelism))
    )
