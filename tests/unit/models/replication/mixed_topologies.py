"""Topologies for tests: written in a line, and drawn at random with every kind of operator and stream in one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from models.topology import InputCorrelation, Partitioning, Topology, parse_topology


def topology_of(
    operators: Mapping[str, int | Sequence[float]], streams: Iterable[str], joins: Iterable[str] = ()
) -> Topology:
    """Operators as their parallelism or the rates of their tasks, streams as "O1 merge O2"."""
    documents = [
        {"name": name, "inputs": InputCorrelation.CORRELATED if name in set(joins) else InputCorrelation.INDEPENDENT}
        | ({"parallelism": tasks} if isinstance(tasks, int) else {"parallelism": len(tasks), "output_rates": tasks})
        for name, tasks in operators.items()
    ]
    split = [stream.split() for stream in streams]
    return parse_topology(
        {"operators": documents, "streams": [{"from": s, "partitioning": p, "to": t} for s, p, t in split]}
    )


def mixed_topology(rng: np.random.Generator, *, most_operators: int, tree: bool) -> Topology:
    """Operators of both kinds, streams of every partitioning, and unless it is a tree several sinks and diamonds."""
    count = int(rng.integers(1, most_operators, endpoint=True))
    tasks = rng.integers(1, 4, endpoint=True, size=count).tolist()
    operators = {f"O{i}": np.round(rng.uniform(0.5, 4.0, size), 3).tolist() for i, size in enumerate(tasks)}
    if tree:
        pairs = [(i, int(rng.integers(i + 1, count))) for i in range(count - 1)]
    else:
        pairs = [(i, j) for i in range(count) for j in range(i + 1, count) if rng.random() < 0.4]
    streams = [f"O{i} {_partitioning(rng, tasks[i], tasks[j])} O{j}" for i, j in pairs]
    return topology_of(operators, streams, [name for name in operators if rng.random() < 0.4])


def _partitioning(rng: np.random.Generator, up: int, down: int) -> Partitioning:
    if rng.random() < 0.4:
        return Partitioning.FULL
    return Partitioning.MERGE if up > down else Partitioning.SPLIT if up < down else Partitioning.ONE_TO_ONE
