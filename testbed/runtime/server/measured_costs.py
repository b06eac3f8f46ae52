"""The CPU cost of each partition: the CPU time of its slot, in proportion to its records.

Source: `incremental`, section 2.3. Slots report both several times a second; costs are those of the last seconds. The
costs of a slot that is gone stay what they were.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from testbed.runtime.network.messages import SlotStatus

PERIOD_S = 10.0


@dataclass(frozen=True)
class _Sample:
    """What a slot had counted at a moment: its CPU time, and records by partition."""

    at_s: float
    cpu_s: float
    records: dict[int, int]


class MeasuredCosts:
    """`cores` has what each partition takes, by its number."""

    def __init__(self, known: Mapping[int, float]) -> None:
        """`known`: what was measured before."""
        self.cores = dict(known)
        self._samples: dict[str, deque[_Sample]] = {}

    def note(self, worker: str, status: SlotStatus, now_s: float) -> None:
        """A slot has reported. Partitions that are new on it count from their first report on."""
        records = {number: tally["records_in"] or tally["records_out"] for number, tally in status.tallies.items()}
        samples = self._samples.setdefault(worker, deque())
        if samples and samples[-1].records.keys() != records.keys():
            samples.clear()
        samples.append(_Sample(now_s, status.cpu_s, records))
        while now_s - samples[0].at_s > PERIOD_S:
            samples.popleft()
        self._measure(samples[0], samples[-1])

    def forget(self, worker: str) -> None:
        """A slot is gone."""
        self._samples.pop(worker, None)

    def _measure(self, first: _Sample, last: _Sample) -> None:
        processed = {number: at - first.records[number] for number, at in last.records.items()}
        total = sum(processed.values())
        if last.at_s <= first.at_s:  # two reports came at once
            return
        if total <= 0 or min(processed.values()) < 0:  # a restored partition counts from 0
            return
        cores = (last.cpu_s - first.cpu_s) / (last.at_s - first.at_s)
        self.cores |= {number: cores * count / total for number, count in processed.items()}
