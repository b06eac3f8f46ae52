"""When an operator saves the part of its oldest window again (`cec`, section III-A)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields

from experiments.errors import BadInput
from testbed.output_log.extent import Extent

NO_TARGET = 2**62


class Policy(ABC):
    """Asked again after every part that was saved, as long as the time for checks lasts."""

    @abstractmethod
    def due(self, extent: Extent) -> bool:
        """Whether to save the part of the oldest window now."""


@dataclass(frozen=True)
class OpensOnly(Policy):
    """Never: a recovery finds each window where it opened."""

    def due(self, extent: Extent) -> bool:
        return False


@dataclass(frozen=True)
class Targets(Policy):
    """Whenever the extent is longer than Q entries, or the replay longer than U records."""

    extent: int
    replay: int

    def __post_init__(self) -> None:
        for name, symbol in (("extent", "Q"), ("replay", "U")):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} ({symbol})", getattr(self, name), "1 or more")

    def due(self, extent: Extent) -> bool:
        return extent.length > self.extent or extent.replay > self.replay


@dataclass(frozen=True)
class CostBenefit(Policy):
    """When a check is expected to save more time in recoveries than it takes.

    Without the check, a recovery also reads the entries, and replays the records, between the oldest footprint and the
    next; for as long as the oldest window stays open. The check itself is one entry more to read. So it pays if

        failure_rate * remaining_s * (entry_s * (dq - 1) + record_s * du) > check_s

    The paper proposes such a formula (section III-A) and leaves it open; this one is ours.

    failure_rate   failures per second
    remaining_s    how long the oldest window is expected to stay open [s]
    entry_s        time to read an entry in a recovery [s]
    record_s       time to replay a record [s]
    check_s        time to save a part [s]
    """

    failure_rate: float
    remaining_s: float
    entry_s: float
    record_s: float
    check_s: float

    def __post_init__(self) -> None:
        for each in fields(self):
            if not getattr(self, each.name) > 0:
                raise BadInput(each.name, getattr(self, each.name), "a positive number")

    def due(self, extent: Extent) -> bool:
        entries, records = extent.gap
        saved_s = self.entry_s * (entries - 1) + self.record_s * records
        return self.failure_rate * self.remaining_s * saved_s > self.check_s


@dataclass(frozen=True)
class CheckPacing:
    """An operator saves parts for `interval_s` in every `period_s`: CI and CP of the paper."""

    interval_s: float
    period_s: float

    def __post_init__(self) -> None:
        if not 0 < self.interval_s < self.period_s:
            raise BadInput("interval_s (CI)", self.interval_s, f"more than 0 and below CP, {self.period_s}")


@dataclass(frozen=True)
class Saving:
    """How partitions that keep an output log save parts of their state.

    extent, replay   Q and U; None: no target. Without both, a window is saved only when it opens
    pace             CI and CP
    """

    extent: int | None = None
    replay: int | None = None
    pace: CheckPacing = field(default_factory=lambda: CheckPacing(0.005, 0.1))

    def __post_init__(self) -> None:
        """Raises `BadInput`."""
        _ = self.policy

    @property
    def policy(self) -> Policy:
        """When a part is saved."""
        if self.extent is None and self.replay is None:
            return OpensOnly()
        return Targets(*(NO_TARGET if each is None else each for each in (self.extent, self.replay)))
