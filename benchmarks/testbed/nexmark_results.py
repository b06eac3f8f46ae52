"""How many records of NexMark's stream a query must have read to emit a given number of results.

One record of the stream completes each result. Results are taken in the order in which they become complete. The n-th
result then shows that the query has read all records before it, of the kinds that the query reads.
"""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from experiments.workloads.catalogue import NexmarkQuery, NexmarkSpec
from testbed.queries.nexmark import CATEGORY, NEAR_STATES
from testbed.runtime.connectors.sources import stream_of
from workloads.nexmark.stream import AUCTIONS_A_CYCLE, CYCLE, FIRST_BID, FIRST_ID, events_of
from workloads.schedule import Schedule

STRETCH = 500_000  # positions whose events are made at a time
READ_OF_A_CYCLE = {
    NexmarkQuery.Q0: CYCLE - FIRST_BID,
    NexmarkQuery.Q1: CYCLE - FIRST_BID,
    NexmarkQuery.Q3: 1 + AUCTIONS_A_CYCLE,
    NexmarkQuery.Q8: 1 + AUCTIONS_A_CYCLE,
    NexmarkQuery.Q12: CYCLE - FIRST_BID,
}


class ExpectedResults:
    """The results of a query on the first `events` positions of a stream.

    complete   at which position each result is complete, in order, (results,)
    """

    def __init__(self, spec: NexmarkSpec, schedule: Schedule, events: int) -> None:
        self._share = READ_OF_A_CYCLE[spec.query] / CYCLE
        self._spec, self._schedule, self._events = spec, schedule, events
        by_bid = dict.fromkeys((NexmarkQuery.Q0, NexmarkQuery.Q1), self._bids)
        make = {**by_bid, NexmarkQuery.Q12: self._counts}.get(spec.query, self._pairs)
        self.complete: NDArray[np.int64] = np.sort(make())

    def records_read(self, results: int) -> float:
        """Records of the kinds that the query reads, up to where `results` results are complete."""
        if not results:
            return 0.0
        return float(self.complete[min(results, len(self.complete)) - 1] + 1) * self._share

    def records_in(self, events: float) -> float:
        """Records of the kinds that the query reads, among so many events of the stream."""
        return events * self._share

    def due_between(self, begin_ms: float, end_ms: float) -> int:
        """How many results are due in a time [ms since the epoch]: their last record is, or their window ends.

        There must be records in every window.
        """
        due_ms = self._schedule.all_due_ms(self.complete)
        if self._spec.query is NexmarkQuery.Q12:  # complete with the first record after the window
            due_ms = self._windows(due_ms) * self._spec.window_ms
        return int(np.count_nonzero((due_ms >= begin_ms) & (due_ms < end_ms)))

    def _columns(self, kind: str, *names: str) -> list[NDArray[np.int64]]:
        stream = stream_of(self._spec, self._schedule)
        starts = range(0, self._events, STRETCH)
        made = [events_of(stream, kind, at, min(at + STRETCH, self._events)) for at in starts]
        return [np.concatenate([each[name].to_numpy() for each in made]) for name in names]

    def _bids(self) -> NDArray[np.int64]:
        return self._columns("bids", "position")[0]

    def _windows(self, due_ms: NDArray[np.int64]) -> NDArray[np.int64]:
        found: NDArray[np.int64] = due_ms // self._spec.window_ms
        return found

    def _counts(self) -> NDArray[np.int64]:
        """A count is complete with the first record that is due after its window."""
        bidders, due_ms = self._columns("bids", "bidder", "date_time")
        windows = np.unique(np.stack([self._windows(due_ms), bidders]), axis=1)[0]
        all_due_ms = self._schedule.all_due_ms(np.arange(self._events, dtype=np.int64))
        ends: NDArray[np.int64] = np.searchsorted(all_due_ms, (windows + 1) * self._spec.window_ms)
        over: NDArray[np.int64] = ends[ends < self._events]
        return over

    def _pairs(self) -> NDArray[np.int64]:
        """A seller's person comes before all of the seller's auctions."""
        positions, sellers, due_ms, categories = self._columns(
            "auctions", "position", "seller", "date_time", "category"
        )
        persons = (sellers - FIRST_ID) * CYCLE
        if self._spec.query is NexmarkQuery.Q3:
            stream = stream_of(self._spec, self._schedule)
            states = events_of(stream, "persons", 0, self._events)["state"].dictionary_decode()
            near = pc.is_in(states, NEAR_STATES).to_numpy(zero_copy_only=False)
            belong = (categories == CATEGORY) & near[sellers - FIRST_ID]
        else:
            belong = self._windows(due_ms) == self._windows(self._schedule.all_due_ms(persons))
        found: NDArray[np.int64] = positions[belong]
        return found
