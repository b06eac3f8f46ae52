"""Shared by the commands that read a topology: the file, and lists of tasks."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from models.topology import Topology


def add_topology(declared: argparse.ArgumentParser) -> None:
    """Give a command the argument that names a topology file."""
    declared.add_argument(
        "topology", metavar="TOPOLOGY.json", help="operators and streams (docs/reference/topologies.md)"
    )


def add_failed(declared: argparse.ArgumentParser) -> None:
    """Give a command the option `--failed`, which it requires."""
    declared.add_argument("--failed", required=True, metavar="all|O2.1,O3.0", help="the failed tasks")


def failed_tasks(topology: Topology, text: str) -> npt.NDArray[np.bool_]:
    """The tasks of `all`, or of a list such as `O2.1,O3.0`; spaces around a name and an empty list are fine."""
    names = topology.tasks if text == "all" else [name.strip() for name in text.split(",") if name.strip()]
    return topology.mask(names, "--failed")


def by_operator(topology: Topology, chosen: npt.NDArray[np.bool_]) -> list[str]:
    """A line for each operator with chosen tasks, such as `  join    join.0, join.1   (2 of 4)`."""
    width = max(len(operator.name) for operator in topology.operators)
    lines = []
    for operator in topology.operators:
        found = chosen[topology.span[operator.name]]
        if found.any():
            tasks = ", ".join(f"{operator.name}.{i}" for i in found.nonzero()[0])
            lines.append(f"  {operator.name:{width}}  {tasks}   ({found.sum()} of {found.size})")
    return lines


def proof(optimal: bool) -> str:
    """How sure it is that there is no better plan."""
    return "proved to be the highest" if optimal else "not proved to be the highest"
