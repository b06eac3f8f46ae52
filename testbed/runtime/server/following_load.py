"""Makes the copies of a run follow its load: plans again at intervals, by the rates that slots report."""

from __future__ import annotations

import selectors
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from experiments.errors import BadInput
from journal.events.testbed import FellBack, PlanChanged
from journal.writer import Journal
from testbed.core.coordinator.coordinator import Coordinator, Phase
from testbed.core.dataflow.layout import Layout
from testbed.operators import Sink
from testbed.recovery import PartiallyActive
from testbed.recovery.adaptation import Adaptation, NewPlan
from testbed.runtime.background import Background, Results, Then
from testbed.runtime.job import Job
from testbed.runtime.network.messages import SlotStatus


class PlanningThread:
    """A thread for planning, whose results wake the coordinator's."""

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self._results = Results(selector)
        self._background = Background(self._results, "plans")

    def submit(self, job: Callable[[], object], then: Then) -> None:
        """Call `then` with what the job returns, in the thread that waits for the selector."""
        self._background.submit(job, then)

    def close(self) -> None:
        """Stop waiting for a plan."""
        self._background.close()
        self._results.close()


@dataclass(frozen=True)
class _Counts:
    """What partitions had emitted at a moment [s, monotonic], and the life that each was in."""

    at_s: float
    lives: tuple[int, ...]
    records: Mapping[int, int]


class FollowingLoad:
    """Every `every_s` seconds the rates since the last time go to `adaptation`, and a new plan to the coordinator.

    Rates are those of a time in which every partition was up and none was restored: what catches up runs faster than
    its input. A plan that comes when somebody is down is carried out once all are up, as the coordinator does anyway.
    """

    def __init__(
        self,
        layout: Layout,
        coordinator: Coordinator,
        adaptation: Adaptation,
        every_s: float,
        planning: PlanningThread,
        journal: Journal,
    ) -> None:
        self._names = [each.name for each in layout.partitions]
        self._emitted_as = ["records_in" if isinstance(p.element, Sink) else "records_out" for p in layout.partitions]
        self._coordinator, self._adaptation, self._every_s = coordinator, adaptation, every_s
        self._planning, self._journal = planning, journal
        self._before: _Counts | None = None
        self._next_s, self._is_planning = 0.0, False

    def on_clock(self, now_s: float, statuses: Iterable[SlotStatus]) -> None:
        """Make a new plan if it is time [s, monotonic]; `statuses`: the last ones of the slots that have partitions."""
        if now_s < self._next_s:
            return
        self._next_s = now_s + self._every_s
        before, self._before = self._before, self._counted(now_s, statuses)
        if before is None or self._before is None or self._is_planning:
            return
        if before.lives == self._before.lives:
            self._is_planning = True
            self._planning.submit(partial(self._next, _rates(self._names, before, self._before)), self._carry_out)

    def close(self) -> None:
        """The run is over."""
        self._planning.close()

    def _counted(self, now_s: float, statuses: Iterable[SlotStatus]) -> _Counts | None:
        """None while somebody is down, or a slot has not reported yet. A sink puts out what it takes in."""
        tallies = {number: tally for each in statuses for number, tally in each.tallies.items()}
        records = {number: tally[self._emitted_as[number]] for number, tally in tallies.items()}
        if self._coordinator.phase is not Phase.RUNNING or len(records) < len(self._names):
            return None
        return _Counts(now_s, tuple(self._coordinator.lives), records)

    def _next(self, rates: Mapping[str, float]) -> NewPlan | BadInput | None:
        try:
            return self._adaptation.next(rates)
        except BadInput as refusal:
            return refusal

    def _carry_out(self, found: NewPlan | BadInput | None) -> None:
        self._is_planning = False
        if isinstance(found, BadInput):
            self._journal.record(FellBack(f"the copies stay where they are: {found}"))
        elif found is not None:
            copied = tuple(self._names[number] for number in sorted(found.partitions))
            self._journal.record(PlanChanged(copied, found.fidelity, found.fidelity_before))
            self._coordinator.adapt(found.partitions)


def following_load(
    job: Job, layout: Layout, coordinator: Coordinator, selector: selectors.BaseSelector, journal: Journal
) -> FollowingLoad | None:
    """The object that makes new plans in a run of this job; None if the job's first plan holds to its end."""
    strategy = job.brought_back_by()
    if job.adapt_every_s is None or not isinstance(strategy, PartiallyActive):
        return None
    present = coordinator.copies.wanted
    adaptation = Adaptation(layout, job.replication_planner, strategy.budget(layout), present)
    return FollowingLoad(layout, coordinator, adaptation, job.adapt_every_s, PlanningThread(selector), journal)


def _rates(names: list[str], before: _Counts, after: _Counts) -> dict[str, float]:
    """Output of each partition [records/s]."""
    seconds = after.at_s - before.at_s
    return {name: (after.records[number] - before.records[number]) / seconds for number, name in enumerate(names)}
