"""The CPU cost of each partition: the CPU time that it takes itself, and its share of the other CPU time of its slot.

Source: `incremental`, section 2.3. There a task hosts partitions of one operator, so its CPU time is divided by their
records. Here a slot hosts partitions of several operators, whose records cost differently. So it counts the CPU time
of each; only what belongs to none (network, reports) is divided by records. Slots report several times a second; costs
are those of the last seconds. The costs of a slot that is gone stay what they were.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from testbed.runtime.network.messages import SlotStatus

PERIOD_S = 10.0
LEAST_S = 1.0  # in less, a partition may happen to process nothing


@dataclass(frozen=True)
class _Sample:
    """What a slot had counted at a moment: its CPU time, and by partition its CPU time and its records."""

    at_s: float
    cpu_s: float
    own_s: dict[int, float]
    records: dict[int, int]


class MeasuredCosts:
    """`cores` has what each partition takes, by its number."""

    def __init__(self, known: Mapping[int, float]) -> None:
        """`known`: what was measured before."""
        self.cores = dict(known)
        self._samples: dict[str, deque[_Sample]] = {}

    def note(self, worker: str, status: SlotStatus, now_s: float, running: Collection[int]) -> None:
        """A slot has reported. Only the costs of partitions that are `running` are measured: others wait for input.

        Partitions that are new on the slot count from their first report on.
        """
        here = {number: cost for number, cost in status.costs.items() if not cost.muted}
        own_s = {number: cost.processing_s + cost.checkpoint_s for number, cost in here.items()}
        samples = self._samples.setdefault(worker, deque())
        if samples and samples[-1].own_s.keys() != own_s.keys():
            samples.clear()
        samples.append(_Sample(now_s, status.cpu_s, own_s, {number: cost.records for number, cost in here.items()}))
        while now_s - samples[0].at_s > PERIOD_S:
            samples.popleft()
        self._measure(samples[0], samples[-1], running)

    def interrupt(self) -> None:
        """What slots do now does not count, so nothing is measured across it."""
        self._samples.clear()

    def forget(self, worker: str) -> None:
        """A slot is gone."""
        self._samples.pop(worker, None)

    def _measure(self, first: _Sample, last: _Sample, running: Collection[int]) -> None:
        seconds = last.at_s - first.at_s
        processed = {number: at - first.records[number] for number, at in last.records.items()}
        own_s = {number: at_s - first.own_s[number] for number, at_s in last.own_s.items()}
        total = sum(processed.values())
        if seconds < LEAST_S:
            return
        if total <= 0 or min(processed.values()) < 0:  # a restored partition counts from 0
            return
        others_s = max(last.cpu_s - first.cpu_s - sum(own_s.values()), 0.0)
        self.cores |= {
            number: (own_s[number] + others_s * count / total) / seconds
            for number, count in processed.items()
            if number in running
        }
