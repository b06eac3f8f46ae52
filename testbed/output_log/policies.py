"""When an operator saves the part of its oldest window again (`cec`, section III-A)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields

from experiments.errors import BadInput
from testbed.output_log.extent import Extent

NO_TARGET = 2**62
AHEAD = 256  # windows that are looked at together: some 0.1 ms of every check period


class Policy(ABC):
    """Asked again once what it wanted is saved, as long as the time for checks lasts."""

    @abstractmethod
    def due(self, extent: Extent) -> int:
        """How many windows to save the parts of now, at most `AHEAD`; the oldest ones are saved."""


@dataclass(frozen=True)
class OpensOnly(Policy):
    """Never: a recovery finds each window where it opened."""

    def due(self, extent: Extent) -> int:
        return 0


@dataclass(frozen=True)
class Targets(Policy):
    """Whenever the extent is longer than Q entries, or the replay longer than U records."""

    extent: int
    replay: int

    def __post_init__(self) -> None:
        for name, symbol in (("extent", "Q"), ("replay", "U")):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} ({symbol})", getattr(self, name), "1 or more")

    def due(self, extent: Extent) -> int:
        first, last = extent.entries - self.extent, extent.position - self.replay
        due = 0
        for due, (entry, at) in enumerate(extent.places(AHEAD), 1):
            if entry >= first + due - 1 and at >= last:  # each check before this one would be an entry more
                return due - 1
        return due


@dataclass
class Costs:
    """What an operator's checks and recoveries take, as far as it is known by now.

    entry_s        time to read an entry of the log in a recovery [s]
    record_s       time to replay a record [s]
    check_s        time to save a part [s]
    records_per_s  how many records the operator reads
    """

    entry_s: float
    record_s: float
    check_s: float
    records_per_s: float

    def __post_init__(self) -> None:
        for each in fields(self):
            if not getattr(self, each.name) > 0:
                raise BadInput(each.name, getattr(self, each.name), "a positive number")


@dataclass(frozen=True)
class CostBenefit(Policy):
    """When checks are expected to save more time in recoveries than they take.

    Once the k oldest windows are saved, a recovery no longer reads the entries, and no longer replays the records, from
    the footprint of one to that of the next. If only one of them were not saved, a recovery would begin there for as
    long as a check would have lasted: until its window closes, or is saved after all. Each check is one entry more to
    read. So k checks pay if

        failure_rate * sum of lasting_s[i] * (entry_s * (dq[i] - 1) + record_s * du[i]) > k * check_s

    Several windows are looked at together, because two that are about as old save little one by one.
    The paper proposes such a formula (section III-A) and leaves it open; this one is ours.

    failure_rate   of the operator, failures per second
    costs          as they were measured by now; may change
    """

    failure_rate: float
    costs: Costs

    def __post_init__(self) -> None:
        if not self.failure_rate > 0:
            raise BadInput("failure_rate", self.failure_rate, "a positive number")

    def due(self, extent: Extent) -> int:
        costs, saved = self.costs, 0.0
        failures_per_record = self.failure_rate / costs.records_per_s
        for count, (window, age, entries, records) in enumerate(extent.gaps(AHEAD), 1):
            lasting = extent.lasting.expected(window, age, len(extent))
            saved += lasting * (costs.entry_s * (entries - 1) + costs.record_s * records)
            if failures_per_record * saved > count * costs.check_s:
                return count
        return 0


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

    extent, replay   Q and U; None: no target
    pace             CI and CP
    failure_rate     failures of a partition per second, for `CostBenefit`; None: Q and U decide

    Without any of them, a window is saved only when it opens.
    """

    extent: int | None = None
    replay: int | None = None
    pace: CheckPacing = field(default_factory=lambda: CheckPacing(0.005, 0.1))
    failure_rate: float | None = None

    def __post_init__(self) -> None:
        """Raises `BadInput`."""
        if self.failure_rate is not None and (self.extent, self.replay) != (None, None):
            raise BadInput("failure_rate", self.failure_rate, "left out with a target for extent or replay")
        self.policy(Costs(1, 1, 1, 1))

    def policy(self, costs: Costs) -> Policy:
        """When a part is saved, by an operator that has these costs."""
        if self.failure_rate is not None:
            return CostBenefit(self.failure_rate, costs)
        if self.extent is None and self.replay is None:
            return OpensOnly()
        return Targets(*(NO_TARGET if each is None else each for each in (self.extent, self.replay)))
