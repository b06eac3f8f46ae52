"""The effects that a partition or the coordinator requests from its caller, in this order."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from testbed.core.checkpoints import Checkpoint
from testbed.core.control import ToCoordinator, ToPartition
from testbed.core.frames import Frame
from testbed.core.seal import Piece


@dataclass(frozen=True)
class Send:
    """Put a frame on its channel, to the receiver or to its copy."""

    frame: Frame
    to_copy: bool = False


@dataclass(frozen=True)
class Grant:
    """Let the sender of a channel send `messages` more messages."""

    channel: int
    epoch: int
    messages: int


@dataclass(frozen=True)
class Store:
    """Write objects, in order and after those of earlier checkpoints; then `on_stored` or `on_store_failed`. What was
    refused may be asked for again, after later ones.

    objects   by key what makes the bytes, in pieces: it may be called later and elsewhere, for what it reads never
              changes
    """

    checkpoint: Checkpoint
    objects: dict[str, Callable[[], Iterable[Piece]]]


@dataclass(frozen=True)
class Write:
    """Output of a plain sink: out at once."""

    batch: pa.RecordBatch


@dataclass(frozen=True)
class Publish:
    """Output of an exactly-once sink up to a checkpoint or batch: all or nothing, and ignored if that number is already
    published. Number 0, without batches, only asks for the last published number.
    """

    number: int
    batches: tuple[pa.RecordBatch, ...]


@dataclass(frozen=True)
class PublishTentative:
    """Output of a sink for a batch that misses input: out at once, apart from exact output, and at least once."""

    batch: int
    batches: tuple[pa.RecordBatch, ...]


@dataclass(frozen=True)
class Spill:
    """Write an object with output that is too much for memory, after what was asked before; then `on_spilled` or
    `on_spill_refused`. `content` makes its bytes as in `Store`."""

    key: str
    content: Callable[[], Iterable[Piece]]


@dataclass(frozen=True)
class Fetch:
    """Read back what was spilled; then `on_fetched` or `on_unreadable`."""

    key: str


@dataclass(frozen=True)
class Discard:
    """Delete spilled objects that are no longer needed. Objects that the store refuses to delete are left."""

    keys: tuple[str, ...]


@dataclass(frozen=True)
class Tell:
    """A message to the coordinator."""

    message: ToCoordinator


@dataclass(frozen=True)
class Order:
    """A message to a partition at a worker."""

    worker: str
    partition: int
    message: ToPartition


@dataclass(frozen=True)
class Delete:
    """Objects that are no longer needed."""

    keys: tuple[str, ...]


@dataclass(frozen=True)
class Sweep:
    """Delete the objects of these partitions, by name, from epochs before this one but for those to keep: what was
    written and never heard of. A recovery begins: they roll back, but for those that copies take the place of.

    promoted   these, by name, each with the life of its copy
    """

    epoch: int
    keep: frozenset[str]
    partitions: frozenset[str]
    promoted: Mapping[str, int] = field(default_factory=dict)

    def takes(self, key: str) -> bool:
        """Whether an object is deleted if it is of an earlier epoch. What a copy has spilled outlives its promotion;
        what its primary has spilled does not."""
        owner, _, name = key.partition("/")
        by_copy = owner in self.promoted and _is_spilled(name, self.promoted[owner])
        return owner in self.partitions and key not in self.keep and not by_copy


@dataclass(frozen=True)
class SweepCopy:
    """Delete what the copy of a partition, by name, has spilled in this life: its worker is lost."""

    partition: str
    life: int

    def takes(self, key: str) -> bool:
        """Whether an object is deleted, written whole or not."""
        owner, _, name = key.partition("/")
        return owner == self.partition and _is_spilled(name, self.life)


@dataclass(frozen=True)
class Placed:
    """Copies have come or gone, in this epoch: workers must know where everybody is before the orders that follow."""

    epoch: int


def _is_spilled(name: str, life: int) -> bool:
    """Whether an object of a partition is output that this life of it has spilled, written whole or not."""
    return re.search(rf"(?:^|\.)sent-\d+-{life}$", name) is not None


PartitionEffect = Send | Grant | Store | Spill | Fetch | Discard | Write | Publish | PublishTentative | Tell
CoordinatorEffect = Order | Delete | Sweep | SweepCopy | Placed
