"""Growing a plan for a structured topology: by a segment, or by connected segments of several units.

Source: `ppa`, section IV-C1, algorithm 3, with the paper's numbers of lines. What it prints and must mean otherwise:

- line 18 intersects the plan with the best candidate: it must unite them;
- line 19 returns after the first candidate, which is the one expansion that algorithm 5 weighs; where no candidate
  helps, the loop would go on without end: the plan stays as it is;
- line 13 compares with `usage` what must fit into the resources that are left, and line 4 lets usage reach R before
  the last expansion;
- line 16 unites the candidates with the tasks of a set of segments: the set becomes one candidate;
- of a set of segments only the tasks that are not replicated yet count, in line 13 too (the text says so);
- a single segment that raises the output fidelity is a candidate only if it fits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from models.fidelity import Failures, Scorer, worst_case
from models.replication.connected_segments import SegmentGraph
from models.replication.ties import first_highest, rises
from models.topology import Topology

Plan = npt.NDArray[np.bool_]
Metric = Callable[[Scorer, Failures], npt.NDArray[np.float64]]


class StructuredPlanner:
    """Expands plans of one structured topology; what depends on the topology alone is computed once, here.

    metric  what an expansion is to raise; figure 12 of the paper compares another one with output fidelity
    """

    def __init__(self, topology: Topology, metric: Metric = Scorer.output_fidelity) -> None:
        self._worth = partial(metric, Scorer(topology))
        self._graph = SegmentGraph(topology)

    def expansion(self, replicated: Plan, available: int) -> Plan:
        """The tasks to add to a plan: the candidate of the highest profit density; none where none helps and fits."""
        new_tasks = np.count_nonzero(self._graph.segments & ~replicated, axis=1)
        segments = np.flatnonzero((new_tasks > 0) & (new_tasks <= available))
        candidates = self._graph.segments[segments]
        searched = self._rise(replicated, candidates) == 0
        candidates[searched] = self._graph.search(segments[searched], new_tasks, available)
        added = candidates & ~replicated
        density = self._rise(replicated, candidates) / np.maximum(np.count_nonzero(added, axis=1), 1)
        if not density.any():
            return np.zeros_like(replicated)
        return added[first_highest(density)]

    def _rise(self, replicated: Plan, candidates: Plan) -> npt.NDArray[np.float64]:
        """By how much each candidate raises what a plan is worth; 0 where only rounding does."""
        before, *_ = after = self._worth(worst_case(np.vstack([replicated, candidates | replicated])))
        return np.where(rises(before, after), after - before, 0.0)[1:]
