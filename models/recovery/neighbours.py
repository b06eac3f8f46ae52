"""For each query that two plans recover in part: what is left of it if both plans are joined.

The rows are plans that extend the same base, as the closures of `pair_bounds`. A row is next to a query if it
recovers some of the query's blocks that the base does not, but not all. Rows that recover the same blocks of a query
are one pattern of that query; every two patterns of a query are looked at together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import sparse

from models.recovery.greedy import CLOSED, Blocks, Candidates, Indices, missing
from models.recovery.problem import Floats, Mask

MARGIN = 1e-7  # relative: bounds are above, and thresholds below, what rounding may hide
AT_ONCE = 1_000_000  # pairs of rows


class Patterns(NamedTuple):
    """The patterns of all queries, query by query.

    query  (patterns,)
    held   (patterns, blocks of a query), what the rows have and the base does not, in the order of `Blocks.needs`
    rows   the rows of each pattern, one after the other, and where each pattern's begin
    """

    query: Indices
    held: Mask
    rows: Indices
    begins: Indices

    def together(self, amounts: Floats, before: Floats, most: Floats) -> Iterator[tuple[Indices, Indices, Floats]]:
        """Pairs of rows that together leave less of a query than each of the two alone, and at most `most`.

        amounts  (queries, blocks of a query), costs or shares, in the order of `Blocks.needs`
        before   (queries,), the sum of the amounts that a query lacks in the base
        most     (queries,)

        Yields one row, the other, and what they leave, which is below the exact amount by `MARGIN` of `before`. Each
        pair comes once for every query of which that is true, in one of its two orders.
        """
        alone = np.einsum("ij,ij->i", self.held, amounts[self.query])
        for one, other in self._pairs():
            query = self.query[one]
            left = before[query] * (1 - MARGIN) - alone[one] - alone[other]
            near = left <= most[query]
            one, other, query, left = one[near], other[near], query[near], left[near]
            common = self.held[one] & self.held[other]
            left += np.einsum("ij,ij->i", common, amounts[query])
            more = np.any(common != self.held[one], axis=1) & np.any(common != self.held[other], axis=1)
            found = np.flatnonzero(more & (left <= most[query]))
            yield self._rows(one[found], other[found], left[found])

    def _pairs(self) -> Iterator[tuple[Indices, Indices]]:
        """Every two patterns of a query once, in parts."""
        every = np.arange(self.query.size)
        ends = np.searchsorted(self.query, self.query, side="right")
        rows = np.diff(self.begins) * (self.begins[ends] - self.begins[1:])
        parts = np.cumsum(rows) // AT_ONCE
        for chosen in np.split(every, np.flatnonzero(np.diff(parts)) + 1):
            which, place = ranges(ends[chosen] - chosen - 1)
            yield chosen[which], chosen[which] + 1 + place

    def _rows(self, one: Indices, other: Indices, left: Floats) -> tuple[Indices, Indices, Floats]:
        """The pairs of rows of pairs of patterns."""
        sizes = np.diff(self.begins)
        pair, first = ranges(sizes[one])
        every, second = ranges(sizes[other[pair]])
        pair, first = pair[every], first[every]
        return self.rows[self.begins[one[pair]] + first], self.rows[self.begins[other[pair]] + second], left[pair]


def patterns(of: Blocks, base: Candidates, rows: Candidates, added: sparse.csr_array) -> Patterns:
    """The patterns of some rows, given the blocks that they add to the base, (rows, blocks)."""
    touched = (added @ of.incidence().T).tocsc()
    row, query = touched.indices, np.repeat(np.arange(touched.shape[1]), np.diff(touched.indptr))
    still = rows.density[row, query] != CLOSED
    row, query = row[still], query[still]
    needed = of.needs[query]
    held = ~(missing(rows.recovered, row, needed) | base.recovered[0].take(needed))
    packed = np.packbits(held, axis=1)
    order = np.lexsort((*packed.T, query.astype(np.min_scalar_type(of.priorities.size))))  # short numbers sort faster
    row, query, packed = row[order], query[order], packed[order]
    new = (query[1:] != query[:-1]) | np.any(packed[1:] != packed[:-1], axis=1)
    begins = np.flatnonzero(np.r_[True, new][: row.size])
    return Patterns(query[begins], held[order[begins]], row, np.r_[begins, row.size])


def ranges(sizes: Indices) -> tuple[Indices, Indices]:
    """For every element of some ranges, one range after the other: which range, and the place in it, from 0."""
    which = np.repeat(np.arange(sizes.size), sizes)
    return which, np.arange(which.size) - (np.cumsum(sizes) - sizes)[which]
