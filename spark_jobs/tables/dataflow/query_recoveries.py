"""When each query of the testbed was lost, restored, and back at its earlier progress.

A burst begins when partitions are lost while none is missing, and ends when all are as far as they had been. Slots that
die together are lost one after the other: what one of them had may go to the next, and is lost again. Beside what
happened stands what the model plans for the same losses and the same arrivals of slots (`models.recovery.schedule`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from experiments.recovery_modes import TELL_QUERIES, RecoveryMode, RecoveryPlanner
from experiments.spec import Experiment
from experiments.workloads.hashtags import HashtagsSpec
from journal.event import Event
from journal.events.common import DriverStarted
from journal.events.testbed import CostsMeasured, PartitionReached, Recovering, WorkerJoined, WorkerLost
from models.recovery.problem import RecoveryPlan, RecoveryProblem
from models.recovery.schedule import Arrival, blocking_schedule, incremental_schedule
from models.recovery.within_limits import plan_within
from results.tables.columns import Row
from spark_jobs.tables.dataflow.partition_recoveries import PartitionRecovery
from spark_jobs.tables.losses import Loss, with_losses
from testbed.core.dataflow.layout import Layout
from testbed.experiment_layout import layout_of
from testbed.recovery.query_partitions import priority_of, problem_of, queries_of


@dataclass
class _Burst:
    """Losses that overlap.

    down         what has yet to be restored
    behind       what has yet to be as far as it had been
    lost         the first loss of each partition
    restored_ns  when the last recovery of a partition began
    epochs       of the recoveries
    slots        that are there after the last loss
    left         what is missing then
    arrivals_ns  when slots came after the last loss
    by_cpu       whether partitions cost the CPU that was measured
    is_one       whether no slot came between the losses: the model knows only bursts that are over at once
    """

    down: set[str] = field(default_factory=set)
    behind: set[str] = field(default_factory=set)
    lost: dict[str, Loss] = field(default_factory=dict)
    restored_ns: dict[str, int] = field(default_factory=dict)
    epochs: set[int] = field(default_factory=set)
    slots: int = 0
    left: frozenset[str] = frozenset()
    arrivals_ns: list[int] = field(default_factory=list)
    by_cpu: bool = False
    is_one: bool = True

    def lose_slot(self, slots: int) -> None:
        """A slot is gone that need not have had partitions, and could have taken what is down; `slots` are left."""
        if self.down:
            self.is_one &= not self.arrivals_ns
            self.slots = slots

    def lose(self, loss: Loss, slots: int) -> None:
        self.is_one &= not self.arrivals_ns
        self.down.update(loss.partitions)
        self.behind.update(loss.partitions)
        for partition in loss.partitions:
            self.lost.setdefault(partition, loss)
            self.restored_ns.pop(partition, None)
        self.slots, self.left = slots, frozenset(self.down)

    def restore(self, recovery: Recovering) -> None:
        back = self.down.intersection(recovery.restored)
        self.down -= back
        self.epochs.add(recovery.epoch)
        self.restored_ns.update(dict.fromkeys(back, recovery.at_ns))
        if not self.arrivals_ns:  # what survivors have taken needs no further slot
            self.left -= back


def query_recoveries(
    experiment: Experiment, journal: Iterable[Event], lost: Sequence[Loss], recoveries: Sequence[PartitionRecovery]
) -> list[Row]:
    """A row for each query that a burst has hit, in the order of bursts; none unless the strategy knows when."""
    if experiment.engine.recovery_run not in TELL_QUERIES:
        return []
    layout, workload = layout_of(experiment), experiment.workload
    priorities = workload.query_priorities if isinstance(workload, HashtagsSpec) else {}
    return [
        row
        for burst in _bursts(journal, lost)
        for row in _rows(burst, layout, priorities, recoveries, _predicted_ns(burst, layout, priorities, experiment))
    ]


def _bursts(journal: Iterable[Event], lost: Sequence[Loss]) -> list[_Burst]:
    slots, found = 0, [_Burst()]
    for event in with_losses(journal, lost):
        burst = found[-1]
        match event:
            case WorkerJoined():
                slots += 1
                if burst.lost:
                    burst.arrivals_ns.append(event.at_ns)
            case WorkerLost():
                slots -= 1
                burst.lose_slot(slots)
            case DriverStarted():
                slots = 0
            case Loss():
                burst.lose(event, slots)
            case Recovering():
                burst.restore(event)
            case CostsMeasured():
                burst.by_cpu = True
            case PartitionReached():
                burst.behind -= {event.partition} - burst.down
                if burst.lost and not burst.behind:
                    found.append(_Burst())
    return [burst for burst in found if burst.lost]


def _rows(
    burst: _Burst,
    layout: Layout,
    priorities: Mapping[str, float],
    recoveries: Sequence[PartitionRecovery],
    predicted_ns: Mapping[str, int],
) -> Iterable[Row]:
    reached = {each.partition: each.reached_ns for each in recoveries if each.epoch in burst.epochs}
    names = [each.name for each in layout.partitions]
    for query, numbers in queries_of(layout).items():
        hit = sorted((names[n] for n in numbers if names[n] in burst.lost), key=lambda name: burst.lost[name].death_ns)
        if not hit:
            continue
        first = burst.lost[hit[0]]
        yield {
            "fault": first.fault,
            "query": query,
            "priority": priority_of(query, priorities),
            "death_ns": first.death_ns,
            "planned_ns": _last([burst.restored_ns.get(name) for name in hit]),
            # One that was lost again may have been as far as it had been before that.
            "available_ns": _last([reached.get(name) if name in burst.restored_ns else None for name in hit]),
            "predicted_ns": predicted_ns.get(query),
        }


def _last(moments_ns: Sequence[int | None]) -> int | None:
    """The last of these moments; None unless all are known."""
    known = [each for each in moments_ns if each is not None]
    return max(known) if len(known) == len(moments_ns) else None


def _predicted_ns(
    burst: _Burst, layout: Layout, priorities: Mapping[str, float], experiment: Experiment
) -> dict[str, int]:
    """By query when the model restores it, given which slots came when; nothing for what it never restores.

    Nothing either if partitions cost CPU: the model knows how much all slots can take together, and not which partition
    fits on which slot, nor what the coordinator had measured at each arrival.
    """
    engine = experiment.engine
    if not burst.is_one or not burst.left or burst.by_cpu:
        return {}
    slots = experiment.cores - engine.standby_run
    capacity = engine.capacity or -(-len(layout.partitions) // slots)
    failed = [each.number for each in layout.partitions if each.name in burst.left]
    room = float(burst.slots * capacity - (len(layout.partitions) - len(failed)))
    start_ns = min(burst.arrivals_ns, default=0)
    arrivals = [Arrival((at_ns - start_ns) / 1e9, float(capacity)) for at_ns in burst.arrivals_ns]

    def planner(left: RecoveryProblem) -> RecoveryPlan:
        name = (engine.planner or RecoveryPlanner.BEST_DENSITY).value
        return plan_within(left, name, engine.planner_limit_run_s)[0]

    problem = problem_of(layout, failed, max(room, 0.0), priorities)
    if engine.recovery_run is RecoveryMode.BLOCKING:
        if burst.slots + len(arrivals) < slots:
            return {}
        times = blocking_schedule(problem, arrivals[: slots - burst.slots]).recovered_at_s
    else:
        times = incremental_schedule(problem, arrivals, planner).recovered_at_s
    return {query: start_ns + round(at_s * 1e9) for query, at_s in times.items() if math.isfinite(at_s)}
