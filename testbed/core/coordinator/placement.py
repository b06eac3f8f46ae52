"""Which worker hosts which partition, and the host and failure domain of each worker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from testbed.core.dataflow.layout import PartitionLayout


@dataclass(frozen=True)
class Worker:
    """A process that hosts partitions.

    host, domains   what it dies with: its host, and the failure domains of that host; empty where that is not known
    """

    name: str
    host: str = ""
    domains: frozenset[str] = frozenset()

    def is_apart_from(self, other: Worker) -> bool:
        """Whether nothing that is known would take both: neither process, host nor failure domain."""
        pairs = ((self.name, other.name), (self.host, other.host))
        return self.domains.isdisjoint(other.domains) and not any(one and one == another for one, another in pairs)


class Placement:
    """Workers have seats, and partitions belong to seats.

    The first `slots` seats are the slots: partition i of every operator belongs to slot i modulo their number. A slot
    keeps its partitions and goes as a whole to another worker, of those that are there the one that came first. A
    partition can be moved to another seat; when the worker there is lost, it belongs to its slot again.

    workers   those that are there, by name
    hosts     the name of the worker in each seat that is taken
    spare     those without a seat, in the order in which they came
    moved     the seats of the partitions that are not in their slot
    room      how many partitions a worker beyond the slots hosts before it takes no more
    """

    def __init__(
        self,
        partitions: tuple[PartitionLayout, ...],
        slots: int,
        standby_hosts: frozenset[str] = frozenset(),
        standby_room: int | None = None,
    ) -> None:
        """`standby_hosts`: workers there take no slot before every slot has been taken once; `standby_room`: as of
        `RecoveryStrategy`."""
        self.slots = slots
        self._standby_hosts, self._begun = standby_hosts, False
        self.workers: dict[str, Worker] = {}
        self.hosts: dict[int, str] = {}
        self.spare: list[str] = []
        self.moved: dict[int, int] = {}
        self._slot_of = {each.number: each.slot(slots) for each in partitions}
        self.room = max(Counter(self._slot_of.values()).values()) if standby_room is None else standby_room

    @property
    def placed(self) -> frozenset[int]:
        """The partitions that have a worker."""
        return frozenset(number for number in self._slot_of if self.worker_of(number) is not None)

    def in_order(self, started: bool) -> tuple[str, ...]:
        """The workers that may host partitions, by host: so the same hosts get the same partitions in every run that
        starts. Before the start, none whose host stands by. Shorter host names come first."""
        there = (each for each in self.workers.values() if started or each.host not in self._standby_hosts)
        return tuple(each.name for each in sorted(there, key=lambda each: (len(each.host), each.host, each.name)))

    @property
    def hosting(self) -> list[str]:
        """The workers that host a partition."""
        return [name for name in self.hosts.values() if self.partitions_of(name)]

    def worker_of(self, partition: int) -> str | None:
        """The worker that hosts a partition; None while no worker does."""
        return self.hosts.get(self.moved.get(partition, self._slot_of[partition]))

    def partitions_of(self, worker: str) -> frozenset[int]:
        """What a worker hosts."""
        return frozenset(number for number in self._slot_of if self.worker_of(number) == worker)

    def join(self, worker: Worker) -> None:
        """A worker comes; it takes a slot that is free."""
        self.workers[worker.name] = worker
        self.spare.append(worker.name)
        self.fill()

    def lose(self, worker: str) -> frozenset[int]:
        """The worker is gone; returns the partitions that it had. Its seat is free until the next `fill`."""
        lost = self.partitions_of(worker)
        self.workers.pop(worker, None)
        self.spare = [name for name in self.spare if name != worker]
        free = {seat for seat, name in self.hosts.items() if name == worker}
        self.hosts = {seat: name for seat, name in self.hosts.items() if seat not in free}
        self.moved = {number: seat for number, seat in self.moved.items() if seat not in free}
        return lost

    def move(self, partition: int, worker: str) -> None:
        """Let this worker host a partition, which has no worker now or leaves its present one."""
        seat = self.seat(worker)
        self.moved.pop(partition, None)
        if seat != self._slot_of[partition]:
            self.moved[partition] = seat

    def seat(self, worker: str) -> int:
        """The seat of a worker; one that has none gets one beyond the slots."""
        found = next((seat for seat, name in self.hosts.items() if name == worker), None)
        if found is None:
            found = next(seat for seat in range(self.slots, len(self.hosts) + self.slots + 1) if seat not in self.hosts)
            self.hosts[found] = worker
            self.spare.remove(worker)
        return found

    def fill(self) -> None:
        """Slots that are free go to workers without a seat, first come first. If there are none, their partitions move
        one by one to the worker with the most room, as long as one has room: the others wait."""
        for slot in (each for each in range(self.slots) if each not in self.hosts):
            worker = next(self._free(), None)
            if worker is not None:
                self.spare.remove(worker)
                self.hosts[slot] = worker
            else:
                self._spread(slot)
        self._begun |= all(slot in self.hosts for slot in range(self.slots))

    def _free(self) -> Iterator[str]:
        """The workers that may take a slot, in the order in which they came."""
        for name in self.spare:
            if self._begun or self.workers[name].host not in self._standby_hosts:
                yield name

    def _spread(self, slot: int) -> None:
        room = self._room()
        for number in (n for n, own in self._slot_of.items() if own == slot and n not in self.moved):
            seat, free = max(room.items(), key=lambda each: each[1], default=(0, 0))
            if free > 0:
                self.moved[number] = seat
                room[seat] -= 1

    def _room(self) -> Counter[int]:
        """How many more partitions the workers in the seats take: beyond the slots up to `room`, in a slot as many as
        the slot has elsewhere."""
        elsewhere = Counter(self._slot_of[number] for number in self.moved)
        room = Counter({seat: self.room if seat >= self.slots else elsewhere[seat] for seat in sorted(self.hosts)})
        room.subtract(seat for seat in self.moved.values() if seat in room)
        return room
