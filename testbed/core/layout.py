"""The operator partitions and channels of a dataflow."""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from experiments.errors import BadInput
from testbed.core.graph import Dataflow, Edge, Element, check

Codes = npt.NDArray[np.int64]
_MIX = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


@dataclass(frozen=True)
class Channel:
    """An ordered way from one partition to another. `on_cycle`: what is sent on it can come back."""

    id: int
    sender: int
    receiver: int
    port: int
    schema: pa.Schema
    on_cycle: bool


@dataclass(frozen=True)
class Route:
    """Where the output of a partition goes for one stream: to the channel of the key, or to the only one."""

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

    @property
    def name(self) -> str:
        return f"{self.operator}.{self.index}"

    @property
    def outputs(self) -> tuple[Channel, ...]:
        return tuple(channel for route in self.routes for channel in route.channels)


@dataclass(frozen=True)
class Layout:
    """All partitions and channels, each at the index that is its number."""

    name: str
    partitions: tuple[PartitionLayout, ...]
    channels: tuple[Channel, ...]
    cyclic: bool


def lay_out(flow: Dataflow) -> Layout:
    """The layout of a dataflow; raises `BadInput` as `graph.check` does."""
    check(flow)
    first = _first_numbers(flow)
    cycle = flow.on_cycle()
    channels: list[Channel] = []
    routes: dict[int, list[Route]] = {}
    for edge in flow.edges:
        returning = edge.sender in cycle and edge.receiver in cycle
        for index in range(flow.nodes[edge.sender].parallelism):
            ends = [first[edge.receiver] + i for i in _receivers(flow, edge, index)]
            sender, at = first[edge.sender] + index, len(channels)
            new = [Channel(at + i, sender, end, edge.port, edge.schema, returning) for i, end in enumerate(ends)]
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
    """The receiving partitions of one sending partition: all for a key, else as `merge` has it in design.md."""
    sending, receiving = flow.nodes[edge.sender].parallelism, flow.nodes[edge.receiver].parallelism
    return range(receiving) if edge.key is not None else [index * receiving // sending]


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


def targets(column: pa.Array, partitions: int) -> Codes:
    """The partition, (rows,), of each key: the same on every host and in every run.

    Raises `BadInput` for a key that is missing.
    """
    if column.null_count:
        raise BadInput("key", None, "a value in every record")
    if pa.types.is_integer(column.type):
        keys = column.to_numpy().astype(np.uint64)
        mixed: Codes = ((keys * _MIX) >> _HALF).astype(np.int64) % partitions
        return mixed
    encoded = column.dictionary_encode()
    hashes = np.array([crc32(repr(value).encode()) for value in encoded.dictionary.to_pylist()], dtype=np.int64)
    codes: Codes = hashes[encoded.indices.to_numpy()] % partitions if len(column) else np.empty(0, dtype=np.int64)
    return codes


def split_by_key(batch: pa.RecordBatch, route: Route) -> list[tuple[Channel, pa.RecordBatch]]:
    """The rows for each channel of a route, in their order; channels without a row are left out."""
    if len(route.channels) == 1:
        return [(route.channels[0], batch)]
    found = targets(batch.column(route.key), len(route.channels))
    if batch.num_rows == 1:
        return [(route.channels[int(found[0])], batch)]
    order = np.argsort(found, kind="stable")
    ends = np.cumsum(np.bincount(found, minlength=len(route.channels)))
    rows = batch.take(pa.array(order))
    starts = np.r_[0, ends[:-1]]
    return [
        (channel, rows.slice(int(start), int(end - start)))
        for channel, start, end in zip(route.channels, starts, ends, strict=True)
        if end > start
    ]
