"""Upper bounds of what BestDensity can reach from each pair of its initial set, to extend only some of the pairs.

Write cl(S, t) for what a plan S becomes when every query denser than t is recovered, until none is left. Recovering
a query only raises the density of the others, so cl does not depend on the order, and as long as there is room the
greedy extension of S passes through cl(S, t) for every t. Three things follow, and are used here:

- cl of a pair contains cl of each of its two queries. Unless the two together raise a further query above t, it is
  just their union, so that cost and priority of all pairs come from matrix products.
- No query left is denser than t, and densities are priorities over shares c_k / f_k that add up to at most the cost
  of any set of queries: what still fits into a room r is worth at most t r.
- A pair whose cl is that of one of the two ends where that one ends alone.

Extending nothing is followed query by query. At a moment when its densest query is less dense than any before, its
plan is cl of nothing. At others it is cl of what it was at an earlier moment and the query chosen there; the same
holds for the extensions of a single query and of a pair, in which that query is the densest as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from models.recovery.deadline import NO_LIMIT, GoOn
from models.recovery.greedy import CLOSED, Blocks, Candidates, Indices, distinct, places
from models.recovery.neighbours import MARGIN, Patterns, patterns, ranges
from models.recovery.problem import Floats, Mask

Known = TypeVar("Known", np.bool_, np.float64)

COSTS = np.array([0.0, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0])  # quantiles: room for a pair of queries of such a cost
ROOMS = np.array([1.3, 2.0, 4.0, 12.0])  # more room, in the costs of a pair of the dearest queries
LONGEST_CHAIN = 40
MANY = 20_000  # pairs of which nothing is known: worth a closer look
NO_ROOM = -1


class Start(NamedTuple):
    """What nothing has become at some moment, (1, ...), and what queries have become by then.

    recovered  (kinds of queries, blocks)
    kinds      of the queries: `NO_ROOM` for those that have exceeded the room
    """

    plan: Candidates
    recovered: Mask
    kinds: Indices

    def pairs(self, one: Indices, other: Indices) -> Candidates:
        """What pairs of queries have become."""
        plans = self.plan.at(np.zeros(one.size, dtype=int))
        recovered = self.recovered[self.kinds[one]] | self.recovered[self.kinds[other]]
        plans.add(*places(recovered & ~self.plan.recovered[:, :-1]))
        return plans

    def distinct(self, one: Indices, other: Indices) -> tuple[Indices, Indices]:
        """One pair of all those that have become the same by becoming the same one by one."""
        ends = np.sort(np.stack([self.kinds[one], self.kinds[other]]), axis=0)
        _, first = np.unique(ends[0] * self.kinds.size + ends[1], return_index=True)
        return one[first], other[first]


class PairBounds(NamedTuple):
    """For all pairs of queries, (queries, queries): the highest priority within reach, and where to start from.

    bound   -inf for pairs that need not be extended, inf where nothing is known
    number  which of the starts is on the way of a pair's extension
    starts  the first one is the beginning
    """

    bound: Floats
    number: npt.NDArray[np.int16]
    starts: list[Start]


class _Course(NamedTuple):
    """The densest query, its density and the room before every step of extending nothing, until one does not fit."""

    queries: Indices
    densities: Floats
    rooms: Floats

    def chain(self, moment: int) -> list[int]:
        """The moments by which the plan at one is reached, from early to late: after each, all densities are higher."""
        found = [moment]
        while (lower := np.flatnonzero(self.densities[: found[-1]] <= self.densities[found[-1]])).size:
            found.append(int(lower[-1]))
        return found[::-1]

    def latest(self, room: float) -> int:
        """The last moment with that much room."""
        return max(int(np.searchsorted(-self.rooms, -room, side="right")) - 1, 0)


class _Moment(NamedTuple):
    """The extension of nothing at one moment, (1, ...), and of single queries there, (queries, ...).

    density  no query left is denser
    joint    (queries, queries): the extension of the pair is not known to be the union of those of its two
    core     whether all rows recover something that nothing does not; it is in the plan, too
    added    (rows, blocks), 1 for the blocks that a row recovers and the plan does not
    shared   which rows have which blocks of the queries that they do not recover
    """

    plan: Candidates
    density: float
    rows: Candidates
    kinds: Indices
    joint: Mask
    core: bool
    added: sparse.csr_array
    shared: Patterns

    @property
    def start(self) -> Start:
        return Start(self.plan, self.rows.recovered[:, :-1], self.kinds)


def unknown(of: Blocks, empty: Candidates) -> PairBounds:
    """Nothing known of any pair: all of them start at the beginning."""
    size = (of.priorities.size,) * 2
    beginning = Start(empty, of.incidence().toarray() > 0, np.arange(size[0]))
    return PairBounds(np.full(size, np.inf), np.zeros(size, dtype=np.int16), [beginning])


def reach(of: Blocks, empty: Candidates, initial: Mask, go_on: GoOn = NO_LIMIT) -> PairBounds:
    """What is within reach of every pair; a query paired with itself stands for the query alone.

    `go_on` is called again and again; what it raises stops this.
    """
    found = unknown(of, empty)
    for moment in _moments(of, found.starts[0], go_on):
        _learn(of, moment, found, found.bound >= 0, go_on)
    if np.count_nonzero(np.isposinf(found.bound[initial])) > MANY:
        for moment in _moments_between(of, found.starts[0], go_on):
            _learn(of, moment, found, found.number == 0, go_on)
    return found


def _learn(of: Blocks, moment: _Moment, found: PairBounds, moved: Mask, go_on: GoOn) -> None:
    bound = _bound(of, moment, go_on)
    np.copyto(found.number, len(found.starts), where=moved & (bound < np.inf))
    np.minimum(found.bound, bound, out=found.bound)
    found.starts.append(moment.start)


def _moments(of: Blocks, beginning: Start, go_on: GoOn) -> Iterator[_Moment]:
    course = _course(beginning.plan)
    wanted = _wanted(course, beginning.plan.cost[0])
    links = {-1: (beginning, np.zeros((of.priorities.size,) * 2, dtype=bool))}
    plan = beginning.plan.at([0])
    for moment in range(max(wanted, default=-1) + 1):
        later = {-1}.union(*(chain for end, chain in wanted.items() if end >= moment))
        if moment in later:
            before = [-1, *course.chain(moment)][-2]
            here = _moment(of, plan.at([0]), course.densities[moment], *links[before], go_on)
            if moment in wanted:
                yield here
            links[moment] = (here.start, here.joint)
        links = {at: link for at, link in links.items() if at in later}
        plan.step()


def _course(empty: Candidates) -> _Course:
    plan, steps = empty.at([0]), []
    while True:
        densest = plan.density[0].argmax()
        steps.append((densest, plan.density[0, densest], plan.room[0]))
        if plan.density[0, densest] == CLOSED or plan.cost[0, densest] > plan.room[0]:
            return _Course(*(np.array(values) for values in zip(*steps, strict=True)))
        plan.step()


def _wanted(course: _Course, costs: Floats) -> dict[int, list[int]]:
    """Moments that leave room for many pairs, and for few, with their chains; those that are reached soon enough."""
    rooms = 2 * np.r_[np.quantile(costs, COSTS), ROOMS * costs.max()]
    moments = {course.latest(room) for room in rooms} | {course.rooms.size - 1}
    lowest = np.minimum.accumulate(course.densities)
    moments |= {int(np.flatnonzero(lowest[: m + 1] == course.densities[: m + 1])[-1]) for m in moments}
    chains = {m: course.chain(m) for m in sorted(moments) if course.densities[m] != CLOSED}
    return {moment: chain for moment, chain in chains.items() if len(chain) <= LONGEST_CHAIN}


def _moments_between(of: Blocks, beginning: Start, go_on: GoOn) -> Iterator[_Moment]:
    """Further moments for pairs that do not get to the next record of extending nothing."""
    course, plan = _course(beginning.plan), beginning.plan.at([0])
    between = _between(course, _wanted(course, beginning.plan.cost[0]))
    apart = np.zeros((of.priorities.size,) * 2, dtype=bool)
    for moment in range(max(between, default=-1) + 1):
        for density in between.get(moment, ()):
            yield _moment(of, plan.at([0]), density, beginning, apart, go_on)
        plan.step()


def _between(course: _Course, wanted: dict[int, list[int]]) -> dict[int, list[float]]:
    """Densities above that of a record moment, down to the lowest after it: pairs may do its step by themselves."""
    found: dict[int, set[float]] = {}
    for moment, chain in wanted.items():
        after = course.densities[chain[0] + 1 : moment + 1]
        if after.size:
            found.setdefault(chain[0], set()).add(
                float(min(after.min(), course.densities[: chain[0]].min(initial=np.inf)))
            )
    return {record: sorted(densities, reverse=True) for record, densities in found.items()}


def _moment(of: Blocks, plan: Candidates, density: float, before: Start, joint: Mask, go_on: GoOn) -> _Moment:
    """The moment at which nothing has become `plan`, from what each query had recovered at the moment before it."""
    known, firsts = np.unique(before.kinds, return_index=True)
    firsts = firsts[known >= 0]
    rows, kinds = Start(plan, before.recovered, before.kinds).pairs(firsts, firsts), before.kinds
    while True:
        go_on()
        rows, kinds = _apart(rows, kinds)
        densest = rows.density.argmax(axis=1)
        above = np.flatnonzero(rows.density[np.arange(rows.room.size), densest] > density)
        if not above.size:
            core = rows.recovered.all(axis=0) & ~plan.recovered[0]
            plan.add(np.zeros(np.count_nonzero(core), dtype=int), np.flatnonzero(core))
            added = marked(rows.recovered[:, :-1] & ~plan.recovered[:, :-1])
            shared = patterns(of, plan, rows, added)
            both = joint | _of_kinds(_joint(of, plan, rows, density, shared, go_on), kinds)
            return _Moment(plan, density, rows, kinds, both, bool(core.any()), added, shared)
        rows.take(above, densest[above])


def _apart(rows: Candidates, kinds: Indices) -> tuple[Candidates, Indices]:
    """Of equal rows the first, without those that exceed the room, as they always will; and which row each query has.

    One row is always left.
    """
    fits = np.flatnonzero(rows.room >= 0) if np.any(rows.room >= 0) else np.array([0])
    kept, merged = distinct(rows.recovered[fits])
    if kept.size == rows.room.size:
        return rows, kinds
    numbers = np.full(rows.room.size + 1, NO_ROOM)
    numbers[fits] = merged
    return rows.at(fits[kept]), numbers[kinds]


def _bound(of: Blocks, moment: _Moment, go_on: GoOn) -> Floats:
    """What every pair can reach, seen from one moment; inf for pairs that are not known to get there."""
    base, rows = moment.plan, moment.rows
    added, done = moment.added, marked((rows.density == CLOSED) & (base.density != CLOSED))
    room = _union(base.room - rows.room, added, of.costs[:-1])
    np.subtract(base.room, room, out=room)  # in place here and below: fresh memory takes longer than the arithmetic
    more, less = _containing(added, in_itself=not moment.core)
    known, too_small = room[more, more] >= 0, room < 0
    more, less = more[known], less[known]
    room[~_some_fit(of, moment, room, go_on)] = 0.0
    room *= moment.density
    bound = _union(rows.value - base.value, done, of.priorities)
    bound += base.value
    bound += room
    bound *= 1 + MARGIN
    bound[more, less] = bound[less, more] = -np.inf
    bound[too_small] = np.inf
    bound, no_room = _of_kinds(bound, moment.kinds), moment.kinds == NO_ROOM
    bound[no_room] = bound[:, no_room] = np.inf
    bound[moment.joint] = np.inf
    return bound


def _containing(added: sparse.csr_array, *, in_itself: bool) -> tuple[Indices, Indices]:
    """Pairs of rows of which the first contains the second; a row that adds nothing is in every one.

    If it is what nothing has become, it is `in_itself`, too: it ends where nothing ends.
    """
    sizes = np.diff(added.indptr)
    more, less = (common := (added @ added.T).tocoo()).coords
    contained = (common.data == sizes[less]) & (more != less)
    nothing = np.flatnonzero(sizes == 0)
    every, each = np.tile(np.arange(sizes.size), nothing.size), np.repeat(nothing, sizes.size)
    kept = in_itself | (every != each)
    return np.r_[more[contained], every[kept]], np.r_[less[contained], each[kept]]


def _of_kinds(amounts: npt.NDArray[Known], kinds: Indices) -> npt.NDArray[Known]:
    """(queries, queries), from what is known of every two kinds of queries."""
    return amounts[kinds][:, kinds]


def marked(mask: Mask) -> sparse.csr_array:
    """1 where a mask, (rows, columns), is true."""
    row, column = places(mask)
    return sparse.csr_array((np.ones(row.size), column, np.searchsorted(row, np.arange(len(mask) + 1))), mask.shape)


def _union(amounts: Floats, members: sparse.csr_array, weights: Floats) -> Floats:
    """The weight of the union of the members of every two rows, given the weight of each row's."""
    union = (amounts[:, None] + amounts).ravel()
    common = (members * weights) @ members.T
    row, _ = ranges(np.diff(common.indptr))
    union[row * amounts.size + common.indices] -= common.data
    return union.reshape(amounts.size, amounts.size)


def _joint(of: Blocks, base: Candidates, rows: Candidates, density: float, shared: Patterns, go_on: GoOn) -> Mask:
    """Pairs whose two closures together may raise a further query above the density."""
    weights = (~base.recovered[0][of.needs] * of.row_weights).sum(axis=1)
    most = of.priorities / density * (1 + MARGIN)
    found = np.zeros((rows.room.size,) * 2, dtype=bool)
    for one, other, _ in shared.together(of.row_weights, weights, most):
        go_on()
        found[one, other] = found[other, one] = True
    return found


def _some_fit(of: Blocks, moment: _Moment, room: Floats, go_on: GoOn) -> Mask:
    """Where any query that is left may fit into the room that the union of two rows leaves."""
    base, rows, margin = moment.plan, moment.rows, moment.plan.room * MARGIN
    least = np.where(rows.density == CLOSED, np.inf, rows.cost).min(axis=1) - margin
    found = least[:, None] <= room
    found |= least <= room
    undecided = room[~found]  # these leave too little for what either row lowers alone
    if undecided.size and undecided.max() >= 0:
        most = np.broadcast_to(undecided.max() + margin, base.cost[0].shape)
        for one, other, left in moment.shared.together(of.row_costs, base.cost[0], most):
            go_on()
            fits = left - margin <= room[one, other]
            found[one[fits], other[fits]] = found[other[fits], one[fits]] = True
    return found
