"""The output rate of each partition of a testbed run, which weights the partitions in a plan for copies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

from experiments.spec import Experiment
from journal.event import Event
from journal.events.testbed import PartitionReached, PartitionsAbsent, Recovering, Report, WorkerLost
from results.tables.columns import Row
from testbed.experiment_layout import layout_of
from testbed.operators import Sink

NS = 10**9
DISTURBED = (WorkerLost, Recovering, PartitionsAbsent, Report)


def partition_rates(journal: Sequence[Event], window: tuple[int, int], sinks: Collection[str]) -> list[Row]:
    """One row for each partition: its output per second of the window [ns], without time of losses and catching up.

    For a sink, the records that it reads count. The time from one report to the next counts if the coordinator was
    running at both, in one epoch, and no partition started its counts from 0. There is no row if no time counts.

    After an outage, partitions also process the backlog. This is assumed to last as long as the outage, which ends
    when every restored partition has reached its earlier progress.
    """
    put_out, seconds = Counter[str](), 0.0
    for before, after in pairwise(_undisturbed(journal, window)):
        if before is None or after is None or before.epoch != after.epoch:
            continue
        added = _added(before, after, sinks)
        if added and min(added.values()) >= 0:
            put_out.update(added)
            seconds += (after.at_ns - before.at_ns) / NS
    return [{"partition": name, "rate": put_out[name] / seconds} for name in sorted(put_out)] if seconds else []


def sinks_of(experiment: Experiment) -> frozenset[str]:
    """The partitions of the sinks of an experiment, by name."""
    return frozenset(each.name for each in layout_of(experiment).partitions if isinstance(each.element, Sink))


def _undisturbed(journal: Sequence[Event], window: tuple[int, int]) -> Iterator[Report | None]:
    """The reports of the window while all partitions ran and kept up; None where something happened between two."""
    lost_ns, caught_up_ns = None, 0
    absent, behind = set[str](), set[str]()
    for event in journal:
        if isinstance(event, PartitionsAbsent):
            absent = set(event.partitions)
        elif isinstance(event, Recovering):
            behind |= set(event.restored) & event.reached.keys()
        elif isinstance(event, PartitionReached):
            behind.discard(event.partition)
        if isinstance(event, Report) and event.is_running and not (absent or behind):
            if lost_ns is not None:
                caught_up_ns, lost_ns = 2 * event.at_ns - lost_ns, None
            if window[0] <= event.at_ns < window[1] and event.at_ns >= caught_up_ns:
                yield event
        elif isinstance(event, DISTURBED):
            lost_ns = event.at_ns if lost_ns is None else lost_ns
            yield None


def _added(before: Report, after: Report, sinks: Collection[str]) -> dict[str, int]:
    """What each partition has emitted from one report to the next; nothing if they do not tell of the same ones."""
    if before.tallies.keys() != after.tallies.keys():
        return {}
    counted = {name: "records_in" if name in sinks else "records_out" for name in after.tallies}
    return {name: after.tallies[name][kind] - before.tallies[name][kind] for name, kind in counted.items()}
