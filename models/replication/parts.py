"""Parts of a topology: structured and full sub-topologies, each counted as a topology of its own.

Source: `ppa`, section IV-C. In a structured topology no stream between two of its operators is partitioned Full; in a
full topology every one is. What crosses from one part to another is left out of both: what comes in counts as
complete, and an operator whose output goes out is an output operator of its part.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from models.topology import Partitioning, Topology, TopologyStream


class PartKind(StrEnum):
    """How the streams inside a topology are partitioned: none is Full, or all are."""

    STRUCTURED = "structured"
    FULL = "full"


@dataclass(frozen=True)
class Part:
    """A part as a topology of its own; `tasks` says where its tasks are in a vector over all tasks of the whole."""

    topology: Topology
    tasks: npt.NDArray[np.intp]

    @property
    def kind(self) -> PartKind:
        """Full also for a single operator. Meaningful for the parts of `sub_topologies` only."""
        inside = self.topology.streams
        return PartKind.FULL if all(s.partitioning is Partitioning.FULL for s in inside) else PartKind.STRUCTURED


def part(whole: Topology, operators: Collection[str]) -> Part:
    """The part of a topology that consists of the named operators and the streams between them."""
    outputs = {o.name for o in whole.sinks} | {s.source for s in whole.streams if s.target not in operators}
    members = [o for o in whole.operators if o.name in operators]
    streams = tuple(s for s in whole.streams if s.source in operators and s.target in operators)
    own = tuple(o.model_copy(update={"output": o.name in outputs}) for o in members)
    return Part(Topology(own, streams), np.r_[tuple(whole.span[o.name] for o in members)])


def sub_topologies(topology: Topology) -> list[Part]:
    """Cut a topology into structured and full parts, from the sinks up, by depth-first searches (section IV-C3).

    Two neighbouring parts have at least one Full stream between them, and there are as few parts as these searches
    find. The paper has a search stop short of the *downstream* operators of one that does not fit, where it must mean
    upstream; this search also follows streams that are not Full downstream, since a topology may have several sinks.
    """
    free = {operator.name for operator in topology.operators}
    found = []
    for operator in reversed(topology.operators):  # the last one free is a sink, or was refused by all parts below it
        if operator.name in free:
            members = _search(topology, operator.name, free)
            free -= members
            found.append(part(topology, members))
    return found


def _search(topology: Topology, start: str, free: set[str]) -> set[str]:
    """The part around `start`, out of the operators that are free: structured where it can be, else full."""
    structured = _has_pattern(topology, start, free)
    members, unvisited = {start}, [start]
    while unvisited:
        for stream, other in _neighbours(topology, unvisited.pop(), free - members):
            if structured:
                fits = stream.partitioning is not Partitioning.FULL and not _full_between(topology, other, members)
            else:
                fits = not _has_pattern(topology, other, free)
            if fits and other not in members:
                members.add(other)
                unvisited.append(other)
    return members


def _neighbours(topology: Topology, name: str, among: Collection[str]) -> Iterator[tuple[TopologyStream, str]]:
    """The streams of an operator to and from others, and those others."""
    for stream in topology.outputs_of[name]:
        if stream.target in among:
            yield stream, stream.target
    for stream in topology.inputs_of[name]:
        if stream.source in among:
            yield stream, stream.source


def _has_pattern(topology: Topology, name: str, among: Collection[str]) -> bool:
    """Whether a stream between the operator and one of the others is not Full."""
    return any(s.partitioning is not Partitioning.FULL for s, _ in _neighbours(topology, name, among))


def _full_between(topology: Topology, name: str, members: Collection[str]) -> bool:
    return any(s.partitioning is Partitioning.FULL for s, _ in _neighbours(topology, name, members))
