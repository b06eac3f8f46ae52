"""Topologies for tests: written in few words, and drawn by hypothesis (chains, trees, diamonds, every partitioning)."""

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from models.fidelity import Scorer, worst_case
from models.topology import Topology, parse_topology

RATES = (0.5, 1.0, 1.0, 2.0, 3.0, 7.5)


def document(operators: dict[str, int | list[float] | dict[str, Any]], *streams: str) -> dict[str, Any]:
    """Operators by parallelism, output rates, or fields; streams as `O1 full O2`."""
    found = [{"name": name, **_fields(fields)} for name, fields in operators.items()]
    words = [stream.split() for stream in streams]
    return {
        "operators": found,
        "streams": [{"from": up, "to": down, "partitioning": partitioning} for up, partitioning, down in words],
    }


def _fields(fields: int | list[float] | dict[str, Any]) -> dict[str, Any]:
    if isinstance(fields, list):
        return {"parallelism": len(fields), "output_rates": fields}
    return fields if isinstance(fields, dict) else {"parallelism": fields}


def build(operators: dict[str, int | list[float] | dict[str, Any]], *streams: str) -> Topology:
    """A topology from its document in few words."""
    return parse_topology(document(operators, *streams))


@st.composite
def topologies(
    draw: Callable[..., Any], operators: int = 5, parallelism: int = 3, tasks: int = 10, fan_out: int = 2
) -> Topology:
    """Any shape within these limits of operators and tasks; with fan_out 1, only trees to the sinks."""
    widths = draw(st.lists(st.integers(1, parallelism), min_size=1, max_size=operators))
    while sum(widths) > tasks:
        widths.pop()
    names = [f"O{i}" for i in range(len(widths))]
    drawn = {name: _operator(draw, width) for name, width in zip(names, widths, strict=True)}
    streams = []
    for i in range(len(names) - 1):
        targets = draw(st.sets(st.sampled_from(range(i + 1, len(names))), max_size=fan_out))
        for j in sorted(targets):
            natural = "one-to-one" if widths[i] == widths[j] else "split" if widths[i] < widths[j] else "merge"
            streams.append(f"{names[i]} {draw(st.sampled_from([natural, 'full']))} {names[j]}")
    return build(drawn, *streams)


def _operator(draw: Callable[..., Any], width: int) -> dict[str, Any]:
    return {
        "parallelism": width,
        "inputs": draw(st.sampled_from(["independent", "correlated"])),
        "output_rates": draw(st.lists(st.sampled_from(RATES), min_size=width, max_size=width)),
        "output": draw(st.sampled_from([False, False, False, True])),
    }


def optima(topology: Topology) -> np.ndarray:
    """The highest output fidelity at every budget from 0 on, by trying every plan."""
    tasks = len(topology.tasks)
    plans = (np.arange(2**tasks)[:, None] >> np.arange(tasks) & 1).astype(bool)
    best = np.zeros(tasks + 1)
    np.maximum.at(best, plans.sum(axis=1), Scorer(topology).output_fidelity(worst_case(plans)))
    return np.maximum.accumulate(best)
