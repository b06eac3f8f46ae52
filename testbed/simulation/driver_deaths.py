"""Simulated runs whose driver dies with all of its workers, or is taken for dead; another driver goes on from what the
one before has written.

A driver that is taken for dead goes on with its workers as if nothing were, beside its successor, until it finds that
its time is over.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from testbed.core.by_batch.partition import BatchedPartition
from testbed.core.control import encode_message
from testbed.core.coordinator.coordinator import Coordinator, Phase
from testbed.core.coordinator.line_record import decode_record
from testbed.core.coordinator.write_ahead import WriteAhead
from testbed.core.effects import CoordinatorEffect, Delete, Order, Sweep, SweepCopy
from testbed.simulation.run import Simulation
from testbed.simulation.workers import Event, SimulatedWorker
from testbed.stores.record_chain import RecordChain, TakenOver
from testbed.stores.store import MemoryStore

LATE = 0.3  # share of workers that do not come with the second driver, but later
HEARD = 0.5  # share of records under way that are written although their driver dies
ZOMBIE_ROUNDS = 0.1  # share of steps at which a driver that was taken for dead may begin a round


class DriverMoment(Enum):
    """When a driver dies.

    ANY         at any step
    WRITING     while a record is being written
    RESTORING   while partitions are restored
    TENTATIVE   while partitions are down, and others go on without their input
    CORRECTING  while nothing is down, and there is tentative output that no exact output has passed yet
    PROMOTING   while a copy takes the place of its primary: it has not heard of that, or its neighbours have yet to
                rejoin it
    """

    ANY = "any"
    WRITING = "writing"
    RESTORING = "restoring"
    TENTATIVE = "tentative"
    CORRECTING = "correcting"
    PROMOTING = "promoting"


@dataclass(frozen=True)
class DriverDeath:
    """The driver dies when it has been such a moment for `after` steps; `zombie`: it is only taken for dead."""

    moment: DriverMoment
    after: int
    zombie: bool = False


@dataclass
class SimulatedDriver:
    """A driver: its coordinator, what of its effects is held back, and the record that it is writing."""

    coordinator: Coordinator
    ahead: WriteAhead
    chain: RecordChain
    writing: bytes | None = None

    def effects(self) -> list[CoordinatorEffect]:
        """What may be done now; begins to write the next record if one is due."""
        record = self.ahead.next_record()
        if record is not None:
            self.writing = record.encode()
        return self.ahead.take_effects()

    def write(self) -> None:
        """The record arrives where it survives; raises `TakenOver`."""
        if self.writing is not None:
            self.chain.add(self.writing)
            self.writing = None
            self.ahead.on_written()


class DriverDeaths(Simulation):
    """One run in which drivers die.

    deaths   how many have died, or were taken for dead, by moment
    resumed  how many of their successors went on from a line with a checkpoint
    fenced   how many found that another had taken over
    """

    def __init__(self, *given: Any, deaths: Sequence[DriverDeath], **options: Any) -> None:
        """`given` and `options` are those of `Simulation`."""
        self._to_come, self._passed = deque(deaths), 0
        self.deaths = Counter[DriverMoment]()
        self.resumed = self.fenced = 0
        self.records = MemoryStore()
        self._driver: SimulatedDriver | None = None
        self._zombies: list[tuple[SimulatedDriver, list[SimulatedWorker]]] = []
        super().__init__(*given, **options)

    # What can happen.

    def _possible(self) -> list[Event]:
        events = super()._possible()
        if self.driver.writing is not None:
            events.append((self._write,))
        for zombie, _ in self._zombies:
            if zombie.writing is not None:
                events.append((self._write_of_zombie, zombie))
            if zombie.coordinator.phase is Phase.RUNNING and self._random.random() < ZOMBIE_ROUNDS:
                events.append((self._zombie_round, zombie))
        return events

    @property
    def driver(self) -> SimulatedDriver:
        """The one that counts."""
        if self._driver is None:
            self._driver = self._begun(chain := RecordChain(self.records))
            chain.take_over()
        return self._driver

    def _begun(self, chain: RecordChain) -> SimulatedDriver:
        ahead = WriteAhead(self.coordinator, self.layout, self.protocol.name)
        return SimulatedDriver(self.coordinator, ahead, chain)

    def _effects(self) -> list[CoordinatorEffect]:
        effects = self.driver.effects()
        self.checks.untold = self.driver.ahead.withholds
        return effects

    def _write(self) -> None:
        if self._storage.refuses():
            self.driver.ahead.on_refused()
            self.driver.writing = None
        else:
            self.driver.write()
        self._coordinate()

    def _strike(self) -> bool:
        """A driver's death takes the place of a fault."""
        if self._to_come and self._is_moment(self._to_come[0].moment):
            self._passed += 1
            if self._passed > self._to_come[0].after:
                self._passed = 0
                self._die(self._to_come.popleft())
                return True
        return super()._strike()

    def _is_moment(self, moment: DriverMoment) -> bool:
        match moment:
            case DriverMoment.ANY:
                return True
            case DriverMoment.WRITING:
                return self.driver.writing is not None
            case DriverMoment.RESTORING:
                return self.coordinator.phase is Phase.RESTORING
            case DriverMoment.TENTATIVE:
                return bool(self.coordinator.down) and any(each.tentative for _, each in self._batched())
            case DriverMoment.CORRECTING:
                is_uncorrected = self.checks.batches.tentative.is_uncorrected
                return not self.coordinator.down and any(
                    is_uncorrected(each) for _, each in self._batched() if not each.muted
                )
            case DriverMoment.PROMOTING:
                return any(self._is_promoted_now(worker, each) for worker, each in self._batched())

    def _is_promoted_now(self, worker: SimulatedWorker, partition: BatchedPartition) -> bool:
        if 0 <= partition.promoted_in == partition.epoch:
            return self.coordinator.phase is Phase.RESTORING
        return partition.muted and self.coordinator.placement.worker_of(partition.number) == worker.name

    def _batched(self) -> Iterator[tuple[SimulatedWorker, BatchedPartition]]:
        """The partitions that work by batch, and who has them."""
        for worker in self.workers:
            for partition in worker.partitions.values():
                if isinstance(partition, BatchedPartition):
                    yield worker, partition

    # The death of a driver, and its successor.

    def _die(self, death: DriverDeath) -> None:
        self.deaths[death.moment] += 1
        before = self.driver
        if self._random.random() < HEARD:
            before.write()
        workers, isolated = list(self.workers), self._isolated[:]
        self.workers.clear()
        self._lost.clear()
        if death.zombie:
            self._zombies.append((before, workers))
            self._isolated = isolated + workers
        else:
            self._isolated = [each for each in isolated if self._zombie_of(each) is not None]
            for worker in workers:
                self.outcome.count(worker.partitions.values())
                self.network.lose_sent(worker.partitions)
        self._go_on(len(workers))

    def _go_on(self, workers: int) -> None:
        """A second driver finds what the first has written; some workers come with it, the others late."""
        chain = RecordChain(self.records)
        found = chain.take_over()
        self.coordinator = self._new_coordinator(record=decode_record(found) if found else None)
        self._driver = self._begun(chain)
        self.resumed += any(each.number for each in self.coordinator.history.line)
        self.checks.follow(self.coordinator)
        for number in range(workers):
            if number and self._random.random() < LATE:
                self._away += 1
            else:
                self._join()

    # A driver that was taken for dead, and its workers.

    def _message(self, worker: SimulatedWorker) -> None:
        zombie = self._zombie_of(worker)
        if zombie is None:
            super()._message(worker)
        else:
            zombie.coordinator.on_message(worker.next_message())
            self._carry_out_of_zombie(zombie, zombie.effects())

    def _zombie_round(self, zombie: SimulatedDriver) -> None:
        zombie.coordinator.on_round_due()
        self._carry_out_of_zombie(zombie, zombie.effects())

    def _write_of_zombie(self, zombie: SimulatedDriver) -> None:
        """It tries to write, and finds that another has taken over: it ends, and its workers with it."""
        try:
            zombie.write()
        except TakenOver:
            self.fenced += 1
            ((_, workers),) = (each for each in self._zombies if each[0] is zombie)
            self._zombies = [each for each in self._zombies if each[0] is not zombie]
            self._isolated = [each for each in self._isolated if each not in workers]
        else:
            self._carry_out_of_zombie(zombie, zombie.effects())

    def _carry_out_of_zombie(self, zombie: SimulatedDriver, effects: list[CoordinatorEffect]) -> None:
        workers = next(workers for each, workers in self._zombies if each is zombie)
        for effect in effects:
            match effect:
                case Order(name, partition, message):
                    for worker in (each for each in workers if each.name == name):
                        worker.orders.append((partition, encode_message(message)))
                case Delete(keys):
                    self._storage.delete(keys)
                case Sweep(epoch):
                    found = filter(effect.takes, self.store.keys())
                    self._storage.delete(key for key in found if int(key.rpartition("-")[2]) < epoch)
                case SweepCopy():
                    self._storage.delete(filter(effect.takes, self.store.keys()))

    def _zombie_of(self, worker: SimulatedWorker) -> SimulatedDriver | None:
        return next((zombie for zombie, workers in self._zombies if worker in workers), None)
