"""What a recovery strategy is: it decides which partitions roll back to the recovery line, and when."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from testbed.core.dataflow.layout import Layout
from testbed.core.protocol import Protocol

NOTHING = Layout("", (), (), cyclic=False)


@dataclass(frozen=True)
class World:
    """What a strategy knows when it is asked.

    partitions   how many the dataflow has
    down         those that were lost and not restored since; all of them before the first start
    placed       those that have a worker
    started      whether there was a start already
    workers      the workers that are there, in the order in which they get partitions; before the first start without
                 those that stand by
    hosts        who hosts each partition that was not lost
    layout       of the dataflow
    slots        with how many workers it starts
    """

    partitions: int
    down: frozenset[int]
    placed: frozenset[int]
    started: bool = True
    workers: Collection[str] = ()
    hosts: Mapping[int, str] = field(default_factory=dict)
    layout: Layout = NOTHING
    slots: int = 1

    @property
    def everyone(self) -> frozenset[int]:
        """The numbers of all partitions."""
        return frozenset(range(self.partitions))


class RecoveryStrategy(ABC):
    """One strategy. Pure: it is asked again whenever a worker comes or goes.

    name       in experiments
    partial    whether partitions that were not lost go on meanwhile. What they send must then be the same in every
               run, so the protocol has to work by batches, and they keep their output for those that come back
    from_sources  whether everything that is lost is made again from the input of the dataflow: then partitions take no
               checkpoints and keep no output for others
    standby_room  how many partitions a worker with copies hosts before it takes no lost one that it has no copy of;
               None: as many as the largest slot has
    """

    name: ClassVar[str]
    partial: ClassVar[bool] = False
    from_sources: ClassVar[bool] = False
    standby_room: int | None = None

    @classmethod
    def check(cls, protocol: type[Protocol]) -> str | None:
        """Why the strategy can't go with a protocol; None if it can."""
        if cls.partial and not protocol.by_batch:
            return "survivors go on, so what was sent under a number must not depend on timing: protocol batch-aligned"
        return None

    @classmethod
    def why_not_tentative(cls) -> str | None:
        """Why survivors can't go on without the input of lost partitions; None if they can."""
        if not cls.partial:
            return f"off with recovery {cls.name}: no partition goes on meanwhile"
        if cls.from_sources:
            return f"off with recovery {cls.name}: a partition that missed input has no checkpoint"
        return None

    @classmethod
    def keeps_output(cls) -> bool:
        """Whether survivors send again to those that come back."""
        return cls.partial and not cls.from_sources

    def copied(self, layout: Layout) -> frozenset[int]:
        """The partitions that shall have an active copy, wherever there is a worker for it; asked once."""
        return frozenset()

    @abstractmethod
    def restored_now(self, world: World) -> frozenset[int]:
        """The partitions to bring back at once; none if that is to wait."""

    def plan(self, world: World) -> Mapping[int, str | None]:
        """The partitions to bring back at once, with the worker that each moves to; None: the one that has its slot."""
        return dict.fromkeys(self.restored_now(world))


class Global(RecoveryStrategy):
    """Everybody rolls back to the line, as soon as every partition has a worker."""

    name = "global"

    def restored_now(self, world: World) -> frozenset[int]:
        return world.everyone if world.down and world.placed == world.everyone else frozenset()
