"""The faults of a simulated run, and when they strike."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from enum import Enum
from random import Random

from testbed.core.coordinator.coordinator import Coordinator, Phase
from testbed.core.partition.partition_status import aligning, replaying
from testbed.simulation.workers import SimulatedWorker
from testbed.stores.store import MemoryStore


class CrashMoment(Enum):
    """When a fault strikes: at any step, or while something delicate is under way."""

    ANY = "any"
    ALIGNING = "aligning"
    STORING = "storing"
    RESTORING = "restoring"
    REPLAYING = "replaying"


@dataclass(frozen=True)
class Fault:
    """A worker crashes, or is suspected to have, when it has been such a moment for `after` steps.

    late     its replacement comes at any time later, not at once
    spoils   and at the next recovery an object of the newest line has changed that the stable line can do without
    ruins    and at the next recovery an object has changed without which the stable line is lost
    """

    moment: CrashMoment
    after: int
    suspicion: bool = False
    spoils: bool = False
    ruins: bool = False
    late: bool = False


class FaultSchedule:
    """Faults strike in their order: the moments of the first are counted, then those of the next."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self._pending = deque(faults)
        self._passed = 0

    def strike(self, is_moment: Callable[[CrashMoment], bool]) -> Fault | None:
        """The fault that strikes at this step; None if there is none."""
        if not self._pending or not is_moment(self._pending[0].moment):
            return None
        self._passed += 1
        if self._passed <= self._pending[0].after:
            return None
        self._passed = 0
        return self._pending.popleft()


def is_moment(moment: CrashMoment, workers: Sequence[SimulatedWorker], coordinator: Coordinator) -> bool:
    """Whether a fault that waits for this moment may strike now."""
    partitions = [partition for worker in workers for partition in worker.partitions.values()]
    match moment:
        case CrashMoment.ANY:
            return True
        case CrashMoment.ALIGNING:
            return any(aligning(partition) for partition in partitions)
        case CrashMoment.STORING:
            return any(worker.storing for worker in workers)
        case CrashMoment.RESTORING:
            return coordinator.phase is Phase.RESTORING and coordinator.epoch > 1
        case CrashMoment.REPLAYING:
            return any(replaying(partition) for partition in partitions)


def spoil(store: MemoryStore, among: Set[str], random: Random) -> bool:
    """Change one of these objects; returns whether there was one."""
    found = sorted(among & set(store.keys()))
    if found:
        key = random.choice(found)
        data = store.objects[key]
        store.objects[key] = data[:-1] + bytes([data[-1] ^ 1])
    return bool(found)
