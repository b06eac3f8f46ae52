"""A dataflow in the form of the replication and recovery models: operators with tasks, and streams between them."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

from models.topology import InputCorrelation, Partitioning, Topology, parse_topology
from testbed.core.dataflow.layout import Layout, PartitionLayout, Route
from testbed.operators import Operator


def topology_of(layout: Layout, rates: Mapping[str, float]) -> Topology:
    """The topology of a layout without cycles; each partition is a task of the same name.

    `rates`: output of partitions in any unit, by their names. If one partition of an operator has none, or its rate is
    not known, all of them count with the mean of those that are known. Raises `BadInput` for a dataflow with a cycle.
    """
    by_operator: dict[str, list[PartitionLayout]] = {}
    for partition in layout.partitions:
        by_operator.setdefault(partition.operator, []).append(partition)
    return parse_topology(
        {
            "operators": [_operator(name, partitions, rates) for name, partitions in by_operator.items()],
            "streams": [
                {"from": name, "to": target, "partitioning": _partitioning(route, len(partitions), width)}
                for name, partitions in by_operator.items()
                for target, route in _streams(layout, partitions[0]).items()
                for width in [len(by_operator[target])]
            ],
        }
    )


def even_rates(layout: Layout) -> dict[str, float]:
    """Output of partitions [records/s] if every source partition emits one record a second and nothing is filtered."""
    rates = [0.0 if each.inputs else 1.0 for each in layout.partitions]
    for each in layout.partitions:  # senders come before their receivers
        for route in each.routes:
            for channel in route.channels:
                rates[channel.receiver] += rates[each.number] / len(route.channels)
    return {each.name: rates[each.number] for each in layout.partitions}


def _operator(name: str, partitions: list[PartitionLayout], rates: Mapping[str, float]) -> dict[str, object]:
    known = [float(rates[each.name]) for each in partitions if each.name in rates]
    mean = fmean(known or [0.0]) or 1.0
    element = partitions[0].element
    joins = isinstance(element, Operator) and element.joins
    return {
        "name": name,
        "parallelism": len(partitions),
        "inputs": (InputCorrelation.CORRELATED if joins else InputCorrelation.INDEPENDENT).value,
        "output_rates": known if len(known) == len(partitions) and min(known) > 0 else [mean] * len(partitions),
    }


def _streams(layout: Layout, partition: PartitionLayout) -> dict[str, Route]:
    """By receiving operator the route to it; two streams between the same operators are one, by key if either is."""
    by_key_last = sorted(partition.routes, key=lambda route: route.key is not None)
    return {layout.partitions[route.channels[0].receiver].operator: route for route in by_key_last}


def _partitioning(route: Route, senders: int, receivers: int) -> str:
    if route.key is not None:
        return Partitioning.FULL.value
    if senders == receivers:
        return Partitioning.ONE_TO_ONE.value
    return (Partitioning.MERGE if senders > receivers else Partitioning.SPLIT).value
