"""The output rate of each partition of a testbed run, which weights the partitions in a plan for copies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import pairwise

from experiments.spec import Experiment
from journal.event import Event
from journal.events.testbed import PartitionsAbsent, Recovering, Report, WorkerLost
from results.tables.columns import Row
from testbed.experiment_layout import layout_of
from testbed.operators import Sink

NS = 10**9
DISTURBANCES = (WorkerLost, Recovering, PartitionsAbsent)


def partition_rates(journal: Sequence[Event], window: tuple[int, int], sinks: Collection[str]) -> list[Row]:
    """One row for each partition: its output per second of the window [ns], as far as nobody was lost or restored.

    A sink emits what it reads. The time from one report to the next counts if the coordinator was running at
    both, in one epoch, and no partition counted anew. There is no row if no time counts.
    """
    put_out, seconds = Counter[str](), 0.0
    for before, after in pairwise(_reports(journal, window)):
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


def _reports(journal: Sequence[Event], window: tuple[int, int]) -> list[Report | None]:
    """The reports of the window in which all partitions ran; None where something happened between two."""
    found: list[Report | None] = []
    for event in journal:
        if isinstance(event, DISTURBANCES) or (isinstance(event, Report) and not event.is_running):
            found.append(None)
        elif isinstance(event, Report) and window[0] <= event.at_ns < window[1]:
            found.append(event)
    return found


def _added(before: Report, after: Report, sinks: Collection[str]) -> dict[str, int]:
    """What each partition has emitted from one report to the next; nothing if they do not tell of the same ones."""
    if before.tallies.keys() != after.tallies.keys():
        return {}
    counted = {name: "records_in" if name in sinks else "records_out" for name in after.tallies}
    return {name: after.tallies[name][kind] - before.tallies[name][kind] for name, kind in counted.items()}
