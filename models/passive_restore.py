"""How long passive replication takes to bring lost partitions back to where they were.

A lost partition reads its checkpoint. Then it processes again what it had processed since, as fast as it can:

    restore = bytes / read rate + checkpoint age x rate / service rate

The model is ours. The `ppa` paper has its two steps (section II-B). It bounds the replayed input by the input rate
times the checkpoint interval (VI-A).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.errors import BadInput

FEWEST = 3  # restores: each is predicted from the others


@dataclass(frozen=True)
class MeasuredRestore:
    """One measured restore of partitions that were lost together.

    size_bytes   what was read
    load_s       how long that took, with rebuilding the state
    due_records  what the partitions had processed since the checkpoint: its age times their rate
    replay_s     from when they went on until they were where they had been
    replayed     the records that they processed in that time
    """

    size_bytes: float
    load_s: float
    due_records: float
    replay_s: float
    replayed: float

    @property
    def measured_s(self) -> float:
        """Loading and replay."""
        return self.load_s + self.replay_s


def restore_s(size_bytes: float, read_rate: float, due_records: float, service_rate: float) -> float:
    """Seconds to read `size_bytes` at `read_rate` [bytes/s] and to process `due_records` at `service_rate` [1/s].

    Raises `BadInput` for a rate that is not above 0.
    """
    for name, rate in (("read_rate", read_rate), ("service_rate", service_rate)):
        if not rate > 0:
            raise BadInput(name, rate, "above 0")
    return size_bytes / read_rate + due_records / service_rate


def predicted_s(restores: Sequence[MeasuredRestore]) -> list[float]:
    """How long each restore should have taken, by the rates of all others: its own time is never used.

    Raises `BadInput` for fewer than three, and for rates of 0.
    """
    if len(restores) < FEWEST:
        raise BadInput("restores", len(restores), f"{FEWEST} or more, since each is predicted from the others")
    found = []
    for own in restores:
        others = [each for each in restores if each is not own]
        read_rate = _ratio(sum(each.size_bytes for each in others), sum(each.load_s for each in others))
        service_rate = _ratio(sum(each.replayed for each in others), sum(each.replay_s for each in others))
        found.append(restore_s(own.size_bytes, read_rate, own.due_records, service_rate))
    return found


def _ratio(amount: float, seconds: float) -> float:
    return amount / seconds if seconds > 0 else 0.0
