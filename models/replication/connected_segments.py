"""Connected segments: extends one segment of a structured topology to a set that may form an MC-tree.

Source: `ppa`, section IV-C1, lines 10 to 15 of algorithm 3.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from models.replication.units import boundaries, connected, units
from models.topology import Topology

Plans = npt.NDArray[np.bool_]
Segments = npt.NDArray[np.intp]  # places in the list of all segments; -1 is none
Counts = npt.NDArray[np.intp]
_Found = tuple[int, Segments]  # a unit, and the segment of it that each of several searches found there


class _Side(NamedTuple):
    """A boundary as a unit sees it.

    beyond  the unit beyond it
    links   which segments of that unit are connected to each of this one
    best    the best of these, for each segment of this unit
    """

    beyond: int
    links: npt.NDArray[np.bool_]
    best: Segments


class SegmentGraph:
    """The segments of a structured topology, unit by unit and the best of a unit first, and how they are connected.

    segments  boolean, (segments, tasks): the tasks of each
    """

    def __init__(self, topology: Topology) -> None:
        found = units(topology)
        self.segments = np.concatenate([unit.segments for unit in found])
        ends = np.cumsum([len(unit.segments) for unit in found]).tolist()
        self._units = [range(end - len(unit.segments), end) for unit, end in zip(found, ends, strict=True)]
        self._sides: list[list[_Side]] = [[] for _ in found]
        place = {name: u for u, unit in enumerate(found) for name in unit.operators}
        for stream in boundaries(topology):
            up, down = place[stream.source], place[stream.target]
            links = connected(topology, stream, found[up], found[down])
            self._sides[up].append(self._side(down, links))
            self._sides[down].append(self._side(up, links.T))

    def _side(self, beyond: int, links: npt.NDArray[np.bool_]) -> _Side:
        return _Side(beyond, links, np.where(links.any(axis=1), self._units[beyond].start + links.argmax(axis=1), -1))

    def search(self, starts: Segments, new_tasks: Counts, available: int) -> Plans:
        """The tasks of the connected segments that a breadth-first search finds from each start, (starts, tasks).

        Every boundary that a found segment touches brings the best connected segment beyond it, unless one of those
        found is connected. A search stops at the first segment that has more new tasks (given for every segment) than
        are still `available`.
        """
        plans = np.zeros((starts.size, self.segments.shape[1]), dtype=bool)
        for unit, members in enumerate(self._units):
            rows = (starts >= members.start) & (starts < members.stop)
            if rows.any():
                found = self._search_from(unit, starts[rows], new_tasks, available)
                plans[rows] = np.logical_or.reduce([self.segments[f] & (f >= 0)[:, None] for _, f in found])
        return plans

    def _search_from(self, unit: int, starts: Segments, new_tasks: Counts, available: int) -> list[_Found]:
        """What searches from segments of one unit find, side by side: at each stop the same unit."""
        found = [(unit, starts)]
        room = available - new_tasks[starts]
        for at, segments in found:  # grows while it is walked
            own = np.maximum(segments - self._units[at].start, 0)
            for side in self._sides[at]:
                wanted = (segments >= 0) & ~self._has_connected(side, own, found)
                across = np.where(wanted, side.best[own], -1)
                room = np.where(across >= 0, room - new_tasks[across], room)
                across[room < 0] = -1
                if (across >= 0).any():
                    found.append((side.beyond, across))
        return found

    def _has_connected(self, side: _Side, own: Segments, found: list[_Found]) -> npt.NDArray[np.bool_]:
        """In which searches a segment beyond the boundary that is connected with the own one was found already."""
        has = np.zeros(own.size, dtype=bool)
        for unit, segments in found:
            if unit == side.beyond:
                has |= side.links[own, np.maximum(segments - self._units[unit].start, 0)] & (segments >= 0)
        return has
