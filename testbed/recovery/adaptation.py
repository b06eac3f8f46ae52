"""A replication plan that follows the load (`ppa`, section V-C, which leaves it to future work)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from experiments.errors import BadInput
from models.fidelity import score
from models.replication.planners import PLANNERS
from models.topology import Topology
from testbed.core.dataflow.layout import Layout
from testbed.topology import topology_of

LEAST_GAIN = 0.05


@dataclass(frozen=True)
class NewPlan:
    """The partitions that shall have a copy from now on; and the output fidelity in the worst case under the present
    rates, with this plan and with the one that held before."""

    partitions: frozenset[int]
    fidelity: float
    fidelity_before: float


class Adaptation:
    """Asked every so often with the rates of all partitions, it says whether others shall have a copy.

    Making copies costs a restore each, so a new plan replaces the present one only if it is worth it: if its output
    fidelity in the worst case, under the rates as they are now, is higher by more than `least_gain`. Rates that
    fluctuate by less than what separates two plans then change nothing.

    present   the plan that holds
    """

    def __init__(
        self, layout: Layout, planner: str, budget: int, present: frozenset[int], least_gain: float = LEAST_GAIN
    ) -> None:
        """`budget`: how many partitions may have a copy. Raises `BadInput`."""
        if planner not in PLANNERS:
            raise BadInput("replication_planner", planner, ", ".join(PLANNERS))
        if not 0 <= least_gain < 1:
            raise BadInput("least_gain", least_gain, "0 to below 1")
        self._layout, self._planner, self._budget, self._least_gain = layout, planner, budget, least_gain
        self._names = {each.name: each.number for each in layout.partitions}
        self.present = present

    def next(self, rates: Mapping[str, float]) -> NewPlan | None:
        """A plan that is worth it, given the output of each partition by its name [records/s]; None if there is none.

        Raises `BadInput` if the planner cannot plan under these rates.
        """
        topology = topology_of(self._layout, rates)
        found = PLANNERS[self._planner](topology, self._budget).replicated
        plan = frozenset(self._names[name] for name, copied in zip(topology.tasks, found, strict=True) if copied)
        after, before = self._fidelity(topology, plan), self._fidelity(topology, self.present)
        if after - before <= self._least_gain:
            return None
        self.present = plan
        return NewPlan(plan, after, before)

    def _fidelity(self, topology: Topology, plan: Iterable[int]) -> float:
        """Output fidelity if everything fails that has no copy."""
        copied = {self._layout.partitions[number].name for number in plan}
        return score(topology, topology.mask(name for name in topology.tasks if name not in copied)).output_fidelity
