"""The copies of partitions as the coordinator knows them: their places, their progress, and who sends to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from testbed.core.checkpoints import Line
from testbed.core.coordinator.placement import Placement
from testbed.core.dataflow.layout import Layout

MOST_BEHIND = 3  # checkpoints


@dataclass
class Copy:
    """An active copy of a partition.

    life     the epoch in which it was made
    number   the last checkpoint whose border it is known to have passed
    runs     whether it has been restored
    lag      how many checkpoints it was behind the stable line when it last began to take something in
    """

    worker: str
    life: int
    number: int
    runs: bool = False
    lag: int = 0


@dataclass
class Attachment:
    """Senders that are about to send to copies.

    awaited   the copies that have yet to say that they are ready
    outputs   the channels to these copies, by sender
    arrived   by channel the last batch that a copy has whole
    """

    awaited: set[int]
    outputs: dict[int, tuple[int, ...]]
    arrived: dict[int, int] = field(default_factory=dict)


class Copies:
    """The copies that are there, by partition, of those that are wanted.

    A copy is on a worker that shares neither host nor domain with its primary's, as far as these are known. A worker
    takes at most as many copies as the largest slot has partitions.
    """

    def __init__(self, layout: Layout, wanted: frozenset[int], slots: int) -> None:
        self._layout, self.wanted = layout, wanted
        self._room = largest_slot(layout, slots)
        self.of: dict[int, Copy] = {}
        self.attachments: dict[int, Attachment] = {}

    def at(self, worker: str) -> frozenset[int]:
        """The partitions of which this worker has copies."""
        return frozenset(number for number, copy in self.of.items() if copy.worker == worker)

    def can_replace(self, partition: int, line: int) -> bool:
        """Whether there is a copy that is not behind the recovery line.

        A copy behind the line is of no use: its senders may have let go what it lacks.
        """
        copy = self.of.get(partition)
        return copy is not None and copy.runs and copy.number >= line

    def stragglers(self, stable: Line) -> set[int]:
        """The partitions whose copies have fallen so far behind the stable line that they will hardly catch up.

        What they have yet to read waits at their senders.
        """
        lags = {n: stable[n].number - copy.number - copy.lag for n, copy in self.of.items() if copy.runs}
        return {number for number, lag in lags.items() if lag > MOST_BEHIND}

    def hear_from(self, senders: frozenset[int]) -> dict[int, tuple[int, ...]]:
        """By partition with a copy, its input channels from these senders."""
        found = {
            number: tuple(c.id for c in self._layout.partitions[number].inputs if c.sender in senders)
            for number in self.of
        }
        return {number: channels for number, channels in found.items() if channels}

    def senders_to(self, channels: Iterable[int]) -> dict[int, tuple[int, ...]]:
        """These channels by their senders."""
        found: dict[int, tuple[int, ...]] = {}
        for channel in channels:
            sender = self._layout.channels[channel].sender
            found[sender] = (*found.get(sender, ()), channel)
        return found

    def places(self, placement: Placement) -> dict[int, str]:
        """A worker for each copy that is wanted and not there, for as many as there is room.

        Copies of one slot go together, since one loss will take their primaries. Workers that host partitions have no
        room. Copies that the fewest workers may have come first, so that others do not take their room. A copy for
        which none is left gets that of another one, if this can go elsewhere.
        """
        hosting, slots = set(placement.hosting), placement.slots
        slot_of = {each.number: each.slot(slots) for each in self._layout.partitions}
        taken = Counter(copy.worker for copy in self.of.values())
        together = Counter((copy.worker, slot_of[number]) for number, copy in self.of.items())
        apart: dict[int, list[str]] = {}
        for number in sorted(self.wanted - self.of.keys()):
            if primary := placement.workers.get(placement.worker_of(number) or ""):
                standing_by = (worker for worker in placement.workers.values() if worker.name not in hosting)
                apart[number] = [worker.name for worker in standing_by if worker.is_apart_from(primary)]
        found: dict[int, str] = {}
        for number in sorted(apart, key=lambda each: len(apart[each])):
            if free := [name for name in apart[number] if taken[name] < self._room]:
                name = min(free, key=lambda name: (-together[name, slot_of[number]], taken[name]))
                found[number] = name
                taken[name] += 1
                together[name, slot_of[number]] += 1
        for number in sorted(apart.keys() - found.keys()):
            _find_room(number, apart, found, taken, self._room, set())
        return found

    def drop(self, partition: int) -> Copy:
        """There is no copy of this partition any more."""
        for attachment in self.attachments.values():
            attachment.awaited.discard(partition)
        return self.of.pop(partition)

    def on_ready(self, partition: int, epoch: int, arrived: dict[int, int], stable: Line) -> None:
        """A copy is ready to read what its senders have for it."""
        attachment = self.attachments[epoch]
        if partition in attachment.awaited:
            attachment.awaited.discard(partition)
            attachment.arrived |= arrived
            copy = self.of[partition]
            copy.runs, copy.lag = True, max(0, stable[partition].number - copy.number)

    def on_passed(self, partition: int, epoch: int, number: int) -> None:
        """A copy has passed the border of a checkpoint."""
        copy = self.of.get(partition)
        if copy is not None and copy.life == epoch:
            copy.number = number

    def released(self) -> list[tuple[int, Attachment]]:
        """The attachments that wait for no copy any more, with their epochs; each once."""
        over = [(epoch, each) for epoch, each in self.attachments.items() if not each.awaited]
        for epoch, _ in over:
            del self.attachments[epoch]
        return over


def largest_slot(layout: Layout, slots: int) -> int:
    """How many partitions the largest slot has."""
    return max(Counter(each.slot(slots) for each in layout.partitions).values())


def _find_room(
    number: int,
    apart: dict[int, list[str]],
    found: dict[int, str],
    taken: Counter[str],
    room: int,
    asked: set[str],
) -> bool:
    """Give a copy one of the workers that it may have, after others there have gone elsewhere if need be.

    This is the search for an augmenting path, so a copy that finds none has no place whatever the other new ones do.
    """
    for name in apart[number]:
        if name in asked:
            continue
        asked.add(name)
        others = [each for each, at in found.items() if at == name]
        if taken[name] < room or any(_find_room(each, apart, found, taken, room, asked) for each in others):
            if number in found:
                taken[found[number]] -= 1
            found[number] = name
            taken[name] += 1
            return True
    return False
