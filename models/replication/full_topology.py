"""Growing a plan for a full topology: one task of every operator first, then task by task.

Source: `ppa`, section IV-C2, algorithm 4, with the paper's numbers of lines. What it prints and must mean otherwise:

- line 14 adds a task to a plan of the operator, `P_i`, where it must be the plan;
- the text has it rank single tasks of the whole topology by their increase alone, where the listing compares plans, as
  this does;
- lines 10 to 16 go on (`while usage < R`) until the resources are used up. Algorithm 5 weighs the expansions of several
  sub-topologies against each other, so here a call is one of them: the tasks of lines 4 to 8, or one more task.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from models.fidelity import MOST_AT_ONCE, Scorer, worst_case
from models.replication.ties import descending, first_highest, rises
from models.topology import Topology

Plan = npt.NDArray[np.bool_]


class FullPlanner:
    """Expands plans of one full topology; what depends on the topology alone is computed once, here."""

    def __init__(self, topology: Topology) -> None:
        self._scorer = Scorer(topology)
        self._ranked = [span.start + descending(self._increases(span)) for span in topology.span.values()]

    def expansion(self, replicated: Plan, available: int) -> Plan:
        """The tasks to add to a plan: one of each operator to an empty plan, else the one that helps most.

        None where they are more than `available`, or where no task helps.
        """
        if not replicated.any():
            return self._only([ranked[0] for ranked in self._ranked], available)
        remaining = [ranked[~replicated[ranked]] for ranked in self._ranked]
        next_of_each = [ranked[0] for ranked in remaining if ranked.size]
        plans = np.repeat(replicated[None], len(next_of_each) + 1, axis=0)
        plans[np.arange(len(next_of_each)), next_of_each] = True
        *after, before = fidelity = self._scorer.output_fidelity(worst_case(plans))
        best = first_highest(fidelity)
        return self._only([next_of_each[best]] if rises(before, np.array(after)).any() else [], available)

    def _increases(self, span: slice) -> npt.NDArray[np.float64]:
        """Delta of an operator's tasks: the output fidelity if all of its tasks but one, and no others, have failed."""
        width, tasks = span.stop - span.start, len(self._scorer.topology.tasks)
        found = []
        for alive in np.array_split(np.arange(width), 1 + width * tasks // MOST_AT_ONCE):
            failed = np.zeros((alive.size, tasks), dtype=bool)
            failed[:, span] = alive[:, None] != np.arange(width)
            found.append(self._scorer.output_fidelity(failed))
        return np.concatenate(found)

    def _only(self, tasks: list[np.intp], available: int) -> Plan:
        added = np.zeros(len(self._scorer.topology.tasks), dtype=bool)
        if len(tasks) <= available:
            added[tasks] = True
        return added
