"""What pairs of queries reach from a start that leaves little room.

`Candidates` keeps the cost and the density of every query under each of its plans. Late in an extension few queries
still fit, and one that does not fit never fits later (see `Candidates.step`). So here a plan keeps only those that may
fit. Which blocks the best plan recovers is left to `Candidates`: few pairs are worth more than the best plan so far.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.recovery.greedy import CLOSED, Blocks, Indices, missing, places
from models.recovery.neighbours import MARGIN
from models.recovery.pair_bounds import Start, marked
from models.recovery.problem import Floats, Mask

CROWD = 1 / 8  # of the queries: where more may fit, it is as fast to keep all of them


class FinalSteps:
    """The extensions of pairs of queries from one start."""

    def __init__(self, start: Start) -> None:
        self._start, self._of = start, start.plan.of
        nothing, of = start.plan, start.plan.of
        added = marked(start.recovered & ~nothing.recovered[:, :-1])
        # by how much each kind of query lowers the cost of each query, and by how much that is lowered to nothing
        self._lowered = ((added * of.costs[:-1]) @ of.incidence().T).toarray()
        self._whole = np.where(nothing.density[0] == CLOSED, np.inf, nothing.cost[0] * (1 - MARGIN))

    def reached(self, one: Indices, other: Indices, floor: float) -> Floats | None:
        """The priority that each pair reaches, or less if that is at most `floor`; None where many queries may fit."""
        start, nothing = self._start, self._start.plan
        one, other = start.kinds[one], start.kinds[other]
        recovered = np.ones((one.size, nothing.recovered.shape[1]), dtype=bool)
        np.logical_or(start.recovered[one], start.recovered[other], out=recovered[:, :-1])
        plans, added = places(recovered[:, :-1] & ~nothing.recovered[:, :-1])
        room = nothing.room - np.bincount(plans, self._of.costs[added], one.size)
        lowered = self._lowered[one]
        lowered += self._lowered[other]  # what both recover counts twice, so no cost is lowered by more
        may_fit = lowered >= self._whole - room[:, None]
        if np.count_nonzero(may_fit) > CROWD * may_fit.size:
            return None
        plans, queries = places(may_fit)
        cost, density = nothing.cost[0, queries], nothing.density[0, queries]
        touched = lowered[plans, queries] > 0
        cost[touched], density[touched] = self._of.left(recovered, plans[touched], queries[touched])
        ends = _Extensions(self._of, recovered, room, np.repeat(nothing.value, one.size), plans, queries, cost, density)
        while ends.keep_what_fits():
            ends.take_the_densest(floor)
        return ends.value


@dataclass
class _Extensions:
    """Plans, and the queries that are kept of each.

    recovered       (plans, blocks + 1), as that of `Candidates`; room and value, (plans,), too
    plans, queries  (kept,), plan after plan; cost and density of each of these queries under its plan likewise
    """

    of: Blocks
    recovered: Mask
    room: Floats
    value: Floats
    plans: Indices
    queries: Indices
    cost: Floats
    density: Floats

    def keep_what_fits(self) -> bool:
        """Count the queries that are recovered, and keep the others that fit; whether there are any."""
        done = self.cost == 0  # every block costs something
        self.value += np.bincount(self.plans[done], self.of.priorities[self.queries[done]], self.value.size)
        self._keep(~done & (self.cost <= self.room[self.plans]))
        return self.plans.size > 0

    def take_the_densest(self, floor: float) -> None:
        """Recover the densest query of each plan; the plans that cannot get above `floor` are given up."""
        begins = np.flatnonzero(np.r_[True, self.plans[1:] != self.plans[:-1]])
        sizes, plans = np.diff(begins, append=self.plans.size), self.plans[begins]
        densest = np.maximum.reduceat(self.density, begins)
        with np.errstate(over="ignore"):  # room for more than there is
            going = self.value[plans] + densest * self.room[plans] * (1 + MARGIN) > floor
        self._keep(np.repeat(going, sizes))
        sizes = sizes[going]
        taken = self.queries[self.density == np.repeat(densest[going], sizes)]  # no two are equal
        self._recover(plans[going], taken)
        lowered = np.flatnonzero(self.of.share_a_block[np.repeat(taken, sizes), self.queries])
        left = self.of.left(self.recovered, self.plans[lowered], self.queries[lowered])
        self.cost[lowered], self.density[lowered] = left

    def _keep(self, kept: Mask) -> None:
        self.plans, self.queries = self.plans[kept], self.queries[kept]
        self.cost, self.density = self.cost[kept], self.density[kept]

    def _recover(self, plans: Indices, queries: Indices) -> None:
        needed = self.of.needs[queries]
        which, place = places(missing(self.recovered, plans, needed))
        plans, added = plans[which], needed[which, place]
        self.recovered[plans, added] = True
        self.room -= np.bincount(plans, self.of.costs[added], self.room.size)
