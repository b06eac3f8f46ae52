"""Units and segments: the building blocks of plans for structured topologies.

Source: `ppa`, section IV-C1. A structured topology may have very many MC-trees, where merged input meets split output
or other merged input. It is cut there into units with few; an MC-tree within a unit, counted as a topology of its own,
is a segment, and segments of neighbouring units that are connected make up MC-trees of the topology.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from experiments.errors import BadInput
from models.fidelity import Scorer, worst_case
from models.replication.mc_trees import count_mc_trees, mc_trees
from models.replication.parts import part
from models.replication.ties import descending
from models.topology import InputCorrelation, Partitioning, Topology, TopologyStream

MOST_CELLS = 100_000_000  # bytes of the segments over the tasks; planning takes some seven times as much


@dataclass(frozen=True)
class Unit:
    """A unit of a topology.

    segments  boolean, (segments, tasks of the topology), by the output fidelity that each has alone in the unit, the
              best first; ties go to the earlier tasks
    """

    operators: frozenset[str]
    segments: npt.NDArray[np.bool_]


def units(topology: Topology) -> list[Unit]:
    """The units of a structured topology, each with all of its segments.

    Raises `BadInput` where all of the segments over all tasks would take more than `MOST_CELLS`.
    """
    found = dict.fromkeys(_unit_of(topology).values())
    segments = sum(sum(count_mc_trees(part(topology, operators).topology).values()) for operators in found)
    if segments * len(topology.tasks) > MOST_CELLS:
        size = f"{segments} segments of MC-trees over {len(topology.tasks)} tasks"
        raise BadInput("topology", size, f"a product of at most {MOST_CELLS}; greedy has no such limit")
    return [Unit(operators, _segments(topology, operators)) for operators in found]


def boundaries(topology: Topology) -> list[TopologyStream]:
    """The streams between the units of a structured topology."""
    unit_of = _unit_of(topology)
    return [stream for stream in topology.streams if unit_of[stream.source] != unit_of[stream.target]]


def connected(topology: Topology, stream: TopologyStream, up: Unit, down: Unit) -> npt.NDArray[np.bool_]:
    """Which segments of the two units at the ends of a stream it connects, (segments of up, segments of down)."""
    sources, targets = topology.links(stream)
    return up.segments[:, sources].astype(np.float32) @ down.segments[:, targets].T.astype(np.float32) > 0


def _unit_of(topology: Topology) -> dict[str, frozenset[str]]:
    """The operators of the unit of each operator: those that streams connect which need not be cut.

    Unless that would put both ends of one that must be cut into one unit.
    """
    cut = _must_be_cut(topology)
    unit_of = {operator.name: frozenset([operator.name]) for operator in topology.operators}
    for stream in topology.streams:
        united = unit_of[stream.source] | unit_of[stream.target]
        if not any(s.source in united and s.target in united for s in cut):
            unit_of |= dict.fromkeys(united, united)
    return unit_of


def _must_be_cut(topology: Topology) -> list[TopologyStream]:
    """The streams that would multiply the segments of a unit.

    The paper cuts a Merge stream into an operator that splits its output, and one into a join. Merged input that
    reaches such an operator through others on the way multiplies the MC-trees just as much. So this cuts every stream
    that brings more than one segment of its unit to a task of such an operator: the paper's streams, and those.
    """
    brought: dict[str, int] = {}  # the most segments of its unit that end at one task of an operator
    found = []
    for operator in topology.operators:
        streams = topology.inputs_of[operator.name]
        many = {s: _fan_in(topology, s) * brought[s.source] for s in streams}
        cut = [s for s in streams if many[s] > 1 and _multiplies(topology, operator.name)]
        brought[operator.name] = max(1, sum(many[s] for s in streams if s not in cut))
        found.extend(cut)
    return found


def _multiplies(topology: Topology, name: str) -> bool:
    """Whether the operator combines what one input stream brings with other input, or with split output."""
    joins = topology.operator[name].inputs is InputCorrelation.CORRELATED and len(topology.inputs_of[name]) > 1
    return joins or any(s.partitioning is Partitioning.SPLIT for s in topology.outputs_of[name])


def _fan_in(topology: Topology, stream: TopologyStream) -> int:
    """The most substreams of a stream that a task receives."""
    return int(np.bincount(topology.links(stream)[1]).max())


def _segments(topology: Topology, operators: frozenset[str]) -> npt.NDArray[np.bool_]:
    unit = part(topology, operators)
    found = list(dict.fromkeys(mc_trees(unit.topology)))
    alone = np.zeros((len(found), unit.tasks.size), dtype=bool)
    for row, segment in zip(alone, found, strict=True):
        row[list(segment)] = True
    segments = np.zeros((len(found), len(topology.tasks)), dtype=bool)
    segments[:, unit.tasks] = alone[descending(Scorer(unit.topology).output_fidelity(worst_case(alone)))]
    return segments
