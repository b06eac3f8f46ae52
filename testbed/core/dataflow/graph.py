"""A dataflow as it is declared: a graph of operators, in a few lines.

    flow = Dataflow("winners")
    bids = flow.source("bids", BIDS, parallelism=2, time="at_ns")
    dear = bids.filter("dear", lambda batch: pc.greater(batch.column("price"), 100))
    dear.aggregate("count", key="bidder", aggregations=(Aggregation("bids", "count"),)).sink("out")

Every stream knows its schema, so that a mistake is refused where it is made. `layout.lay_out` checks the whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from experiments.errors import BadInput
from testbed.operators import Aggregate, Aggregation, Delivery, Emit, Filter, Join, Map, Operator, Sink, Source, Windows
from testbed.operators.interface import require_column
from testbed.operators.stateless import Predicate, Transform

Element = Source | Operator | Sink


@dataclass(frozen=True)
class Node:
    """An operator of the graph: what it does, and how many partitions do it."""

    name: str
    element: Element
    parallelism: int


@dataclass(frozen=True)
class Edge:
    """A stream from one operator to a port of another, partitioned by the column `key`.

    Without a key it is as the partitions lie: one to one, merged into fewer, or split over more.

    fed   whether `Stream.feed` made it: without such edges there is no cycle
    """

    sender: str
    receiver: str
    port: int
    key: str | None
    schema: pa.Schema
    fed: bool = False


@dataclass
class Dataflow:
    """A graph under construction. Every method that adds to it raises `BadInput` for what can't work."""

    name: str
    nodes: dict[str, Node] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)

    def source(
        self, name: str, schema: pa.Schema, parallelism: int = 1, time: str | None = None, due: str | None = None
    ) -> Stream:
        """A source; it is cut into batches by its event time, or by `due` if windows are not used."""
        self._add(name, Source(schema, time, due or time), parallelism)
        return Stream(self, name, schema)

    def operator(self, name: str, operator: Operator, *inputs: Stream, parallelism: int | None = None) -> Stream:
        """Any operator, with one stream for each of its ports."""
        if len(inputs) != len(operator.keys):
            raise BadInput(f"inputs of {name}", len(inputs), f"{len(operator.keys)}, one for each port")
        for each in inputs:
            if each.flow is not self:
                raise BadInput(f"inputs of {name}", each.name, f"streams of the dataflow {self.name}")
        schema = operator.schema(*(each.schema for each in inputs))
        for each, key in zip(inputs, operator.keys, strict=True):
            if key is not None:
                _check_key(key, require_column("key", each.schema, key))
        self._add(name, operator, parallelism or self.nodes[inputs[0].name].parallelism)
        for port, (each, key) in enumerate(zip(inputs, operator.keys, strict=True)):
            self._connect(each, name, port, key)
        return Stream(self, name, schema)

    def readers(self) -> dict[str, set[str]]:
        """For each operator those that read what it emits."""
        after: dict[str, set[str]] = {name: set() for name in self.nodes}
        for edge in self.edges:
            after[edge.sender].add(edge.receiver)
        return after

    def on_cycle(self) -> set[str]:
        """The operators that a record can come back to."""
        after = self.readers()
        return {name for name in self.nodes if name in reachable(after, after[name])}

    def _add(self, name: str, element: Element, parallelism: int) -> None:
        if name in self.nodes or not name or set(name) & set("./ "):
            raise BadInput("name of an operator", name, "a name that is not taken, without dot, slash and blank")
        if parallelism < 1:
            raise BadInput(f"parallelism of {name}", parallelism, "1 or more")
        self.nodes[name] = Node(name, element, parallelism)

    def _connect(self, stream: Stream, receiver: str, port: int, key: str | None, fed: bool = False) -> None:
        self.edges.append(Edge(stream.name, receiver, port, key, stream.schema, fed))


@dataclass(frozen=True)
class Stream:
    """What an operator emits; the start of every further line of a declaration."""

    flow: Dataflow
    name: str
    schema: pa.Schema

    def map(self, name: str, function: Transform, parallelism: int | None = None) -> Stream:
        """Pass each batch of this stream through a function; raises `BadInput` for a name that is taken.

        The parallelism is by default that of this stream, here and in the other methods.
        """
        return self.flow.operator(name, Map(function), self, parallelism=parallelism)

    def filter(self, name: str, predicate: Predicate) -> Stream:
        """Keep the records for which the predicate is true, in as many partitions as this stream has.

        Raises `BadInput` for a name that is taken.
        """
        return self.flow.operator(name, Filter(predicate), self)

    def aggregate(
        self,
        name: str,
        key: str,
        aggregations: tuple[Aggregation, ...],
        windows: Windows | None = None,
        emit: Emit = Emit.RUNNING,
        parallelism: int | None = None,
    ) -> Stream:
        """Aggregate by key, over windows if there are any; raises `BadInput` for a name that is taken."""
        return self.flow.operator(name, Aggregate(key, aggregations, windows, emit), self, parallelism=parallelism)

    def join(
        self,
        other: Stream,
        name: str,
        keys: tuple[str, str],
        windows: tuple[Windows, Windows] | None = None,
        parallelism: int | None = None,
    ) -> Stream:
        """Join with another stream on `keys` (this stream's column, the other's), within windows if there are any.

        Raises `BadInput` for a name that is taken.
        """
        return self.flow.operator(name, Join(*keys, windows), self, other, parallelism=parallelism)

    def sink(self, name: str, delivery: Delivery = Delivery.EXACTLY_ONCE, parallelism: int | None = None) -> None:
        """End the stream in a sink; raises `BadInput` for a name that is taken."""
        self.flow._add(name, Sink(delivery), parallelism or self.flow.nodes[self.name].parallelism)
        self.flow._connect(self, name, 0, None)

    def feed(self, operator: Stream, port: int) -> None:
        """Lead this stream, too, into a port of an operator that is there: this is how a cycle is closed."""
        feeding = [each for each in self.flow.edges if (each.receiver, each.port) == (operator.name, port)]
        if operator.flow is not self.flow or not feeding:
            raise BadInput("feed", f"{operator.name}, port {port}", "a port of an operator of the same dataflow")
        if self.schema != feeding[0].schema:
            raise BadInput(f"feed of {operator.name}", str(self.schema), f"the port's schema, {feeding[0].schema}")
        self.flow._connect(self, operator.name, port, feeding[0].key, fed=True)


def check(flow: Dataflow) -> None:
    """Raises `BadInput` for a graph without source or sink, with loose ends, or with windows behind a cycle."""
    for kind in (Source, Sink):
        if not any(isinstance(node.element, kind) for node in flow.nodes.values()):
            raise BadInput(f"dataflow {flow.name}", f"no {kind.__name__.lower()}", "one source and one sink at least")
    after, sinks = flow.readers(), {node.name for node in flow.nodes.values() if isinstance(node.element, Sink)}
    for name in flow.nodes:
        if not reachable(after, {name}) & sinks:
            raise BadInput(f"dataflow {flow.name}", f"{name} leads nowhere", "operators that lead to a sink")
    _check_windows(flow)


def reachable(after: dict[str, set[str]], start: set[str]) -> set[str]:
    """The names that can be reached from these, themselves included."""
    seen, pending = set(start), list(start)
    while pending:
        new = after[pending.pop()] - seen
        seen |= new
        pending.extend(new)
    return seen


def _check_key(key: str, kind: pa.DataType) -> None:
    """Equal keys must be one key everywhere: 0.0 equals -0.0 but goes to another partition, and nan equals nothing."""
    if pa.types.is_nested(kind) or pa.types.is_floating(kind) or pa.types.is_dictionary(kind):
        allowed = "a column of single values, not floats, and not encoded by a dictionary"
        raise BadInput("key", f"{key} of type {kind}", allowed)


def _check_windows(flow: Dataflow) -> None:
    """The watermark stands still on and behind a cycle, and without an event time there is none."""
    timeless = {n.name for n in flow.nodes.values() if isinstance(n.element, Source) and n.element.time is None}
    stopped = reachable(flow.readers(), flow.on_cycle() | timeless)
    for node in flow.nodes.values():
        if isinstance(node.element, Operator) and node.element.windowed and node.name in stopped:
            raise BadInput(f"windows of {node.name}", "no watermark", "sources with an event time, and no cycle before")
