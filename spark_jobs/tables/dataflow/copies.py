"""What active copies of a testbed run cost, second by second, and which shares of CPU time went into copies and
checkpoints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from journal.event import Event
from journal.events.testbed import Costs, PartitionCost, WorkerJoined
from results.tables.columns import Row

NS = 10**9


@dataclass(frozen=True)
class Spent:
    """What a partition took from one report to the next, in `seconds`."""

    seconds: float
    processing_s: float
    checkpoint_s: float
    records: int
    input_bytes: int


def copies(journal: Sequence[Event], window: tuple[int, int], hosts: Mapping[str, str]) -> list[Row]:
    """One row for each report in the window [ns] and each copy but for its first; `hosts` has the names of hosts by
    their addresses."""
    address_of = {each.worker: each.host for each in journal if isinstance(each, WorkerJoined)}
    rows: list[Row] = []
    for before, after in _pairs(journal, window):
        for partition, cost in sorted(after.copies.items()):
            seconds = (after.at_ns - before.at_ns) / NS
            taken = _spent(seconds, before.copies.get(partition), cost)
            if taken is None:
                continue
            primary = _spent(seconds, before.primaries.get(partition), after.primaries.get(partition))
            address = address_of.get(cost.worker, cost.worker)
            rows.append(
                {
                    "at_ns": after.at_ns,
                    "partition": partition,
                    "host": hosts.get(address, address),
                    "seconds": seconds,
                    "cpu_s": taken.processing_s + taken.checkpoint_s,
                    "records": taken.records,
                    "primary_cpu_s": primary and primary.processing_s,
                    "primary_records": primary and primary.records,
                    "input_bytes": taken.input_bytes,
                    "retained_bytes": cost.retained_bytes,
                }
            )
    return rows


@dataclass(frozen=True)
class CpuShares:
    """CPU time relative to that of processing by primaries; None where nothing was reported."""

    copies_cpu_share: float | None = None
    checkpoint_cpu_share: float | None = None


def cpu_shares(journal: Sequence[Event], window: tuple[int, int]) -> CpuShares:
    """What copies and checkpoints took in the window [ns]."""
    processing_s = checkpoints_s = copies_s = 0.0
    for before, after in _pairs(journal, window):
        seconds = (after.at_ns - before.at_ns) / NS
        for taken in _all_spent(seconds, before.primaries, after.primaries):
            processing_s += taken.processing_s
            checkpoints_s += taken.checkpoint_s
        for taken in _all_spent(seconds, before.copies, after.copies):
            copies_s += taken.processing_s + taken.checkpoint_s
    if not processing_s:
        return CpuShares()
    return CpuShares(copies_s / processing_s, checkpoints_s / processing_s)


def _pairs(journal: Iterable[Event], window: tuple[int, int]) -> Iterator[tuple[Costs, Costs]]:
    """Each report in the window with the one before it."""
    before: Costs | None = None
    for event in journal:
        if isinstance(event, Costs) and window[0] <= event.at_ns < window[1]:
            if before is not None:
                yield before, event
            before = event


def _all_spent(
    seconds: float, before: Mapping[str, PartitionCost], after: Mapping[str, PartitionCost]
) -> Iterator[Spent]:
    for partition, cost in after.items():
        taken = _spent(seconds, before.get(partition), cost)
        if taken is not None:
            yield taken


def _spent(seconds: float, before: PartitionCost | None, after: PartitionCost | None) -> Spent | None:
    """None for a partition that the worker did not have at the previous report: its counts started from 0."""
    if before is None or after is None or before.worker != after.worker:
        return None
    names = "processing_s", "checkpoint_s", "records", "input_bytes"
    taken = [getattr(after, name) - getattr(before, name) for name in names]
    return None if min(taken) < 0 else Spent(seconds, *taken)
