"""Units and segments: the building blocks of plans for structured topologies.

Source: `ppa`, section IV-C1. A structured topology may have very many MC-trees, where merged input meets split output
or other merged input. It is cut there into units with few; an MC-tree within a unit, counted as a topology of its own,
is a segment, and segments of neighbouring units that are connected make up MC-trees of the topology.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import product

import numpy as np
import numpy.typing as npt

from models.fidelity import Scorer, worst_case
from models.replication.parts import part
from models.replication.ties import descending
from models.topology import Inputs, Partitioning, Stream, Topology

_Segment = frozenset[int]  # indices of tasks


@dataclass(frozen=True)
class Unit:
    """A unit of a topology.

    segments  boolean, (segments, tasks of the topology), by the output fidelity that each has alone in the unit, the
              best first; ties go to the earlier tasks
    """

    operators: frozenset[str]
    segments: npt.NDArray[np.bool_]


def units(topology: Topology) -> list[Unit]:
    """The units of a structured topology, each with all of its segments."""
    return [Unit(operators, _segments(topology, operators)) for operators in _cut(topology)]


def boundaries(topology: Topology) -> list[Stream]:
    """The streams at which a structured topology is cut into units.

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
    joins = topology.operator[name].inputs is Inputs.CORRELATED and len(topology.inputs_of[name]) > 1
    return joins or any(s.partitioning is Partitioning.SPLIT for s in topology.outputs_of[name])


def _fan_in(topology: Topology, stream: Stream) -> int:
    return int(np.bincount(topology.links(stream)[1]).max())


def _cut(topology: Topology) -> list[frozenset[str]]:
    """The operators of each unit: those that streams other than boundaries connect."""
    unit = {operator.name: frozenset([operator.name]) for operator in topology.operators}
    cut = set(boundaries(topology))
    for stream in topology.streams:
        if stream not in cut:
            united = unit[stream.source] | unit[stream.target]
            unit |= dict.fromkeys(united, united)
    return list(dict.fromkeys(unit.values()))


def _segments(topology: Topology, operators: frozenset[str]) -> npt.NDArray[np.bool_]:
    unit = part(topology, operators)
    ending = _ending(unit.topology)
    found = list(dict.fromkeys(s for o in unit.topology.sinks for s in _at(unit.topology, ending, o.name)))
    alone = np.zeros((len(found), unit.tasks.size), dtype=bool)
    for row, segment in zip(alone, found, strict=True):
        row[list(segment)] = True
    segments = np.zeros((len(found), len(topology.tasks)), dtype=bool)
    segments[:, unit.tasks] = alone[descending(Scorer(unit.topology).output_fidelity(worst_case(alone)))]
    return segments


def _at(topology: Topology, ending: list[list[_Segment]], name: str) -> list[_Segment]:
    """The segments that end at a task of the operator."""
    span = topology.span[name]
    return [segment for segments in ending[span] for segment in segments]


def _ending(topology: Topology) -> list[list[_Segment]]:
    """For each task, the sets of tasks that are just enough for it to have output: one for each MC-tree up to it."""
    ending: list[list[_Segment]] = [[frozenset([task])] for task in range(len(topology.tasks))]
    for operator in topology.operators:
        feeds = [_feeds(topology, stream) for stream in topology.inputs_of[operator.name]]
        span = topology.span[operator.name]
        for task in range(span.start, span.stop) if feeds else ():
            by_stream = [[s for up in feed[task] for s in ending[up]] for feed in feeds]
            if operator.inputs is Inputs.INDEPENDENT:
                by_stream = [[s for segments in by_stream for s in segments]]
            ending[task] = [reduce(frozenset.union, combined, frozenset([task])) for combined in product(*by_stream)]
    return ending


def _feeds(topology: Topology, stream: Stream) -> dict[int, list[int]]:
    """The upstream tasks of each downstream task of a stream."""
    feeds: dict[int, list[int]] = {}
    for up, down in zip(*(ends.tolist() for ends in topology.links(stream)), strict=True):
        feeds.setdefault(down, []).append(up)
    return feeds


def connected(topology: Topology, stream: Stream, up: Unit, down: Unit) -> npt.NDArray[np.bool_]:
    """Which segments of the two units at the ends of a stream it connects, (segments of up, segments of down)."""
    sources, targets = topology.links(stream)
    return up.segments[:, sources].astype(np.float32) @ down.segments[:, targets].T.astype(np.float32) > 0
