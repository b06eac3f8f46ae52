"""Extends many candidate plans at once, each by the feasible query of largest profit density.

Source: `incremental`, definition 3 and lines 20 to 31 of algorithm 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import sparse

from models.recovery.deadline import NO_LIMIT, GoOn
from models.recovery.problem import Floats, Mask, RecoveryProblem

Indices = npt.NDArray[np.intp]

CLOSED = -1.0  # the density of a query that is recovered, or known not to fit
TIE_BITS = 20  # of a density's mantissa: what differs only in these differs by rounding, and is a tie
DENSEST = 1e300


def profit_density(priorities: Floats, weights: Floats, queries: Indices) -> Floats:
    """PD of definition 3, priority over sum(c_k / f_k), as a number by which no two queries are equal.

    The last bits, which are rounding errors, give way to the number of the query: of equals the first one is denser.
    """
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        density = np.fmin(priorities / weights, DENSEST)  # of NaN and DENSEST, fmin takes DENSEST
    rounded = (density.view(np.int64) + (1 << (TIE_BITS - 1))) >> TIE_BITS << TIE_BITS
    return (rounded | ((1 << TIE_BITS) - 1 - queries)).view(np.float64)


@dataclass(frozen=True)
class Blocks:
    """Failed partitions that exactly the same queries share, merged into blocks.

    Those that cost nothing and those that no failed query needs are left out.

    needs       (queries, blocks) as rows of block numbers, filled up with the number of blocks
    users       the queries of each block, one after the other, and where each block's begin
    costs       of the blocks, and a 0 for the filling; weights: c_k / f_k likewise
    priorities  of the queries
    """

    needs: Indices
    users: Indices
    begins: Indices
    costs: Floats
    weights: Floats
    priorities: Floats

    @cached_property
    def sizes(self) -> Indices:
        """How many queries share each block."""
        return np.diff(self.begins)

    @cached_property
    def row_costs(self) -> Floats:
        """The costs of what each query needs, as in `needs`."""
        return self.costs[self.needs]

    @cached_property
    def row_weights(self) -> Floats:
        """The shares c_k / f_k of what each query needs, as in `needs`."""
        return self.weights[self.needs]

    def left(self, recovered: Mask, plans: Indices, queries: Indices) -> tuple[Floats, Floats]:
        """C_m^i and PD_m^i of pairs of a plan and a query; the recovered blocks are those of all plans."""
        left = missing(recovered, plans, self.needs.take(queries, axis=0)).astype(float)
        cost = np.einsum("ij,ij->i", left, self.row_costs.take(queries, axis=0))
        weights = np.einsum("ij,ij->i", left, self.row_weights.take(queries, axis=0))
        return cost, profit_density(self.priorities[queries], weights, queries)

    def incidence(self) -> sparse.csc_array:
        """(queries, blocks), 1 where a query needs a block."""
        return sparse.csc_array((np.ones(self.users.size), self.users, self.begins), (self.priorities.size, self.count))

    @property
    def count(self) -> int:
        """The number of blocks."""
        return self.sizes.size


def blocks(problem: RecoveryProblem) -> Blocks:
    """The blocks of a problem."""
    by_partition = problem.needs.tocsc()
    by_partition.sort_indices()
    merged: dict[bytes, list[int]] = {}
    for k in np.flatnonzero(problem.costs > 0).tolist():
        users = by_partition.indices[by_partition.indptr[k] : by_partition.indptr[k + 1]]
        if users.size:
            merged.setdefault(users.tobytes(), []).append(k)
    firsts = [partitions[0] for partitions in merged.values()]
    shared = by_partition[:, firsts]
    sizes = np.diff(shared.indptr)
    costs = np.array([problem.costs[partitions].sum() for partitions in merged.values()])
    return Blocks(
        _rows(shared.tocsr(), len(firsts)),
        shared.indices.astype(np.intp),
        shared.indptr.astype(np.intp),
        np.r_[costs, 0.0],
        np.r_[costs / sizes, 0.0],
        problem.priorities,
    )


def _rows(needs: sparse.csr_array, filling: int) -> Indices:
    counts = np.diff(needs.indptr)
    rows = np.full((counts.size, max(counts.max(initial=0), 1)), filling)
    rows[np.arange(rows.shape[1]) < counts[:, None]] = needs.indices
    return rows


def distinct(recovered: Mask) -> tuple[Indices, Indices]:
    """The first of the rows that are equal, and for each row the place of its first one among these."""
    firsts: dict[bytes, int] = {}
    places = [firsts.setdefault(row.tobytes(), i) for i, row in enumerate(np.packbits(recovered, axis=1))]
    return np.unique(np.array(places), return_inverse=True)


def places(mask: Mask) -> tuple[Indices, Indices]:
    """Where a mask is true, as `np.nonzero` finds it; faster."""
    row, column = np.divmod(np.flatnonzero(mask), mask.shape[1])
    return row, column


def missing(recovered: Mask, plans: Indices, needed: Indices) -> Mask:
    """(plans, needed): which of some blocks each of the plans does not recover."""
    return ~recovered.ravel().take(plans[:, None] * recovered.shape[1] + needed)


class Candidates:
    """Candidate plans, one a row, and what is left to do under each of them.

    recovered  (plans, blocks + 1), the last column for the filling
    cost       (plans, queries), C_m^i: what recovering a query would add to a plan's cost
    density    (plans, queries), PD_m^i. A partition that is not recovered is needed by no recovered query, so f_k is
               the same whether recovered queries are counted or not
    room, value (plans,): the capacity left, and the priority of the queries recovered
    """

    def __init__(self, of: Blocks, recovered: Mask, cost: Floats, density: Floats, room: Floats, value: Floats) -> None:
        self.of, self.recovered, self.cost, self.density, self.room, self.value = (
            of,
            recovered,
            cost,
            density,
            room,
            value,
        )

    @classmethod
    def empty(cls, of: Blocks, limit: float) -> Candidates:
        """One plan that recovers nothing but what costs nothing."""
        recovered = np.arange(of.count + 1)[None, :] == of.count
        free = of.needs[:, 0] == of.count
        cost, density = of.left(recovered, np.zeros(free.size, dtype=np.intp), np.arange(free.size))
        density[free] = CLOSED
        value = np.array([of.priorities[free].sum()])
        return cls(of, recovered, cost[None, :], density[None, :], np.array([limit]), value)

    def at(self, plans: Indices | Sequence[int]) -> Candidates:
        """Copies of some of the plans, in any order and number."""
        amounts = (self.cost, self.density, self.room, self.value)
        return Candidates(self.of, self.recovered.take(plans, axis=0), *(each.take(plans, axis=0) for each in amounts))

    def take(self, plans: Indices, queries: Indices) -> None:
        """Recover one query in each of the given plans, each of them given once."""
        needed = self.of.needs[queries]
        which, place = places(missing(self.recovered, plans, needed))
        self.add(plans[which], needed[which, place])

    def add(self, plans: Indices, added: Indices) -> None:
        """Recover blocks that the plans do not recover, one of the first plan, one of the second, and so on."""
        self.recovered[plans, added] = True
        self.room -= np.bincount(plans, self.of.costs[added], self.room.size)
        self._update(plans, added)

    def _update(self, plans: Indices, added: Indices) -> None:
        """Compute the cost and the density again of every query that shares a block just added."""
        of, sizes = self.of, self.of.sizes[added]
        plans = np.repeat(plans, sizes)
        place = np.arange(plans.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        queries = of.users[np.repeat(of.begins[added], sizes) + place]
        plans, queries = self._each_once(plans, queries)
        cost, density = of.left(self.recovered, plans, queries)
        closed = np.flatnonzero(cost == 0)  # every block costs something
        density[closed] = CLOSED
        here = plans * of.priorities.size + queries
        self.cost.put(here, cost)
        self.density.put(here, density)
        done = np.sort(here[closed])
        done_plans, done_queries = np.divmod(done, of.priorities.size)
        self.value += np.bincount(done_plans, of.priorities[done_queries], self.value.size)

    def _each_once(self, plans: Indices, queries: Indices) -> tuple[Indices, Indices]:
        """Pairs of a plan and a query, of equal ones only the last, whose number replaces those of the others."""
        here, order = plans * self.of.priorities.size + queries, np.arange(plans.size)
        last = np.empty(self.density.size, dtype=np.intp)
        last.put(here, order)
        once = np.flatnonzero(last.take(here) == order)
        return plans[once], queries[once]

    def step(self, floor: float = -np.inf) -> Mask:
        """Extend every plan by its densest query where that fits; False for the plans that cannot get above `floor`.

        A query that does not fit is closed: it never fits later, as a further query takes at least as much of the room
        as it takes of this one's cost. The room is worth less than the largest density times the room: see pair_bounds.
        """
        every = np.arange(self.room.size)
        densest = self.density.argmax(axis=1)
        density = self.density[every, densest]
        with np.errstate(over="ignore"):  # room for more than there is
            going = (density != CLOSED) & (self.value + density * self.room * (1 + 1e-7) > floor)
        fits = self.cost[every, densest] <= self.room
        full = np.flatnonzero(going & ~fits)
        if full.size:
            self.density[full] = np.where(self.cost[full] > self.room[full, None], CLOSED, self.density[full])
        chosen = np.flatnonzero(going & fits)
        if chosen.size:
            self.take(chosen, densest[chosen])
        return going

    def best(self, floor: float = -np.inf, least: float = 0.0, go_on: GoOn = NO_LIMIT) -> tuple[float, Mask]:
        """Extend all plans until nothing fits; value and recovered blocks of the best one, the first if equal.

        Plans that cannot get above `floor` by `least` are given up. `go_on` is called again and again; what it raises
        stops this.
        """
        steps = 0
        plans, value, recovered = self, -np.inf, self.recovered[0]
        while True:
            go_on()
            going = plans.step(max(floor, value) + least)
            ended = ~going
            if ended.any():
                at = np.flatnonzero(ended)
                first = at[plans.value[at].argmax()]
                if plans.value[first] > value:
                    value, recovered = float(plans.value[first]), plans.recovered[first].copy()
            if not going.any():
                return value, recovered[:-1]
            steps += 1
            if steps % 8 == 0:
                plans = plans.at(np.flatnonzero(going))
                plans = plans.at(distinct(plans.recovered)[0])
            elif going.mean() < 0.7:
                plans = plans.at(np.flatnonzero(going))
