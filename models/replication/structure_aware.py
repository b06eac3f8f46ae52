"""The structure-aware planner: whole MC-trees first, then always what raises output fidelity most for each task.

Source: `ppa`, section IV-C3, algorithm 5, with the paper's numbers of lines. What it prints and must mean otherwise:

- lines 7 and 8 plan with resources R_i, which nothing defines: the initial plan of a sub-topology may take what the
  initial plans of the others leave, and an expansion of it what is left;
- line 10 charges the number of operators for an initial plan: where branches of a sub-topology are alternatives the
  plan may have fewer tasks, and those count;
- lines 3 and 4 give up where the budget is below the number of operators, as a plan of all of their MC-trees does not
  fit; `plan_as_printed` does so. Where an operator has independent inputs or there are several sinks, an MC-tree does
  without the other branches: then `plan` starts from the branches that fit (see `models.replication.branches`). As a
  budget that reaches every operator starts from all of them, it can do worse than one a little smaller;
- it has one sub-topology plan without regard to the others, as if Full streams were all that is between them. There may
  be others too, and operators may have several outputs: then the initial plans need not meet in an MC-tree. Where they
  still have no output together once they have grown, the plan starts again from a smallest MC-tree (see
  `models.replication.smallest_tree`), and is empty only where none is found that fits;
- line 15 passes over an expansion that does not fit: a smaller one of the same sub-topology may, and is looked for;
- line 16 leaves `usage` as it is, so that line 18 would end the loop after one expansion: an expansion is charged.

The gain of a sub-topology is that of its output fidelity as a topology of its own, as in the paper.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from models.fidelity import Scorer, worst_case
from models.replication.branches import affordable
from models.replication.full_topology import FullPlanner
from models.replication.parts import Part, PartKind, part, sub_topologies
from models.replication.plan import ReplicationPlan, require_budget
from models.replication.smallest_tree import smallest_mc_tree
from models.replication.structured_topology import StructuredPlanner
from models.replication.ties import first_highest
from models.topology import Topology

Plan = npt.NDArray[np.bool_]


class _SubPlan:
    """The plan of a sub-topology as it grows, and the expansion that it would take next."""

    def __init__(self, sub_topology: Part) -> None:
        self.part = sub_topology
        planner = FullPlanner if sub_topology.kind is PartKind.FULL else StructuredPlanner
        self._planner, self._scorer = planner(sub_topology.topology), Scorer(sub_topology.topology)
        self.replicated = np.zeros(sub_topology.tasks.size, dtype=bool)
        self._next = self.replicated

    @property
    def cost(self) -> int:
        """The number of tasks of the next expansion; 0 where there is none."""
        return int(self._next.sum())

    @property
    def density(self) -> float:
        """The rise in output fidelity for each task of the next expansion."""
        plans = np.stack([self.replicated, self.replicated | self._next])
        before, after = self._scorer.output_fidelity(worst_case(plans))
        return max(0.0, float(after - before)) / max(1, self.cost)

    def look_ahead(self, available: int) -> None:
        """Find the next expansion that fits."""
        self._next = self._planner.expansion(self.replicated, available)

    def expand(self) -> int:
        """Take the next expansion; the number of its tasks."""
        self.replicated = self.replicated | self._next
        return self.cost


def plan(topology: Topology, budget: int) -> ReplicationPlan:
    """Replicate whole MC-trees, always what raises output fidelity most for each task (algorithm 5).

    At most `budget` tasks; fewer where no expansion of the sub-topologies in the plan fits and helps (one through
    others is not looked for). Beyond the paper, a budget below the number of operators buys what it can. Raises
    `BadInput` for a budget below 0, and for a structured part that is too large (see `models.replication.units`).
    """
    require_budget(topology, budget)
    sub_plans = [_SubPlan(sub_topology) for sub_topology in sub_topologies(topology)]
    replicated = _grown(sub_plans, _initial(topology, sub_plans, budget), budget)
    if not Scorer(topology).output_fidelity(worst_case(replicated)):
        replicated = _grown(sub_plans, smallest_mc_tree(topology, budget), budget)
    return ReplicationPlan(replicated, optimal=False)


def plan_as_printed(topology: Topology, budget: int) -> ReplicationPlan:
    """As `plan`, but the empty plan where the budget is below the number of operators (lines 3 and 4 of algorithm 5).

    Raises `BadInput` as `plan` does.
    """
    require_budget(topology, budget)
    return plan(topology, budget if budget >= len(topology.operators) else 0)


def _initial(topology: Topology, sub_plans: list[_SubPlan], budget: int) -> Plan:
    """The initial plans of the sub-topologies, over all tasks."""
    operators = affordable(topology, budget)
    if not operators:
        return np.zeros(len(topology.tasks), dtype=bool)
    if len(operators) < len(topology.operators):
        return _started(part(topology, operators), budget, len(topology.tasks))
    _start(sub_plans, budget)
    return _united(sub_plans, len(topology.tasks))


def _grown(sub_plans: list[_SubPlan], replicated: Plan, budget: int) -> Plan:
    """A plan with the expansions of the sub-topologies that it has tasks of."""
    for sub_plan in sub_plans:
        sub_plan.replicated = replicated[sub_plan.part.tasks]
    _grow([sub_plan for sub_plan in sub_plans if sub_plan.replicated.any()], budget)
    return _united(sub_plans, replicated.size)


def _started(within: Part, budget: int, width: int) -> Plan:
    """The initial plans of the sub-topologies of a part, over all tasks of the whole."""
    sub_plans = [_SubPlan(sub_topology) for sub_topology in sub_topologies(within.topology)]
    _start(sub_plans, budget)
    started = np.zeros(width, dtype=bool)
    started[within.tasks[_united(sub_plans, within.tasks.size)]] = True
    return started


def _start(sub_plans: list[_SubPlan], budget: int) -> None:
    """Give every sub-topology its initial plan, with what the operators of those after it leave."""
    left = budget - sum(len(sub_plan.part.topology.operators) for sub_plan in sub_plans)
    for sub_plan in sub_plans:
        left += len(sub_plan.part.topology.operators)
        sub_plan.look_ahead(left)
        left -= sub_plan.expand()


def _grow(sub_plans: list[_SubPlan], budget: int) -> None:
    """Expand the plan of the sub-topology with the highest profit density until nothing helps or fits."""
    left = budget - sum(int(sub_plan.replicated.sum()) for sub_plan in sub_plans)
    outdated = sub_plans
    while outdated:
        for sub_plan in outdated:
            sub_plan.look_ahead(left)
        best = sub_plans[first_highest(np.array([sub_plan.density for sub_plan in sub_plans]))]
        left -= best.expand()
        outdated = [s for s in sub_plans if s is best or s.cost > left] if best.cost else []


def _united(sub_plans: list[_SubPlan], width: int) -> Plan:
    """The plans of the sub-topologies, over all `width` tasks of what they are parts of."""
    replicated = np.zeros(width, dtype=bool)
    for sub_plan in sub_plans:
        replicated[sub_plan.part.tasks] = sub_plan.replicated
    return replicated
