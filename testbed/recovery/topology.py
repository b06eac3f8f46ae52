"""A dataflow's layout as the topology that `models/replication` plans for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from models.topology import Inputs, Partitioning, Topology, parse_topology
from testbed.core.layout import Layout
from testbed.operators import Join


def topology_of(layout: Layout, rates: Mapping[int, float] | None = None) -> Topology:
    """The topology whose task `O.i` is partition i of operator O.

    `rates`: the output of each partition [records/s]. Without them every source partition emits as much as any other,
    and operators pass on all that they take in. Joins have correlated inputs.
    """
    rates = even_rates(layout) if rates is None else rates
    operators: dict[str, dict[str, Any]] = {}
    for each in layout.partitions:
        joins = isinstance(each.element, Join)
        found = operators.setdefault(
            each.operator,
            {
                "name": each.operator,
                "parallelism": 0,
                "inputs": Inputs.CORRELATED if joins else Inputs.INDEPENDENT,
                "output_rates": [],
            },
        )
        found["parallelism"] += 1
        found["output_rates"].append(float(rates[each.number]))
    streams: dict[tuple[str, str], bool] = {}
    for each in layout.partitions:
        for route in each.routes:
            receiver = layout.partitions[route.channels[0].receiver].operator
            pair = each.operator, receiver
            streams[pair] = streams.get(pair, False) or route.key is not None
    sizes = {name: found["parallelism"] for name, found in operators.items()}
    described = [
        {"from": sender, "to": receiver, "partitioning": _partitioning(sizes[sender], sizes[receiver], by_key)}
        for (sender, receiver), by_key in streams.items()
    ]
    return parse_topology({"operators": list(operators.values()), "streams": described})


def even_rates(layout: Layout) -> dict[int, float]:
    """The output of each partition if every source partition emits 1 record/s and nothing is filtered."""
    rates = {each.number: 0.0 if each.inputs else 1.0 for each in layout.partitions}
    for each in layout.partitions:  # senders come before their receivers
        for route in each.routes:
            for channel in route.channels:
                rates[channel.receiver] += rates[each.number] / len(route.channels)
    return rates


def _partitioning(senders: int, receivers: int, by_key: bool) -> Partitioning:
    if by_key:
        return Partitioning.FULL
    if senders == receivers:
        return Partitioning.ONE_TO_ONE
    return Partitioning.MERGE if senders > receivers else Partitioning.SPLIT
