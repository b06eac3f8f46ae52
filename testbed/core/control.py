"""What coordinator and partitions tell each other. An epoch begins with every recovery; older messages are void."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import get_args

from testbed.core.checkpoints import NO_BATCH, Checkpoint
from testbed.core.shapes import decode_as


@dataclass(frozen=True)
class Restore:
    """Go back to a checkpoint, with the objects of its state and these logs, and say when it is done.

    published   the last checkpoint whose output this sink is known to have published
    arrived     the last number that the receivers of its channels have where they go back to
    """

    epoch: int
    checkpoint: Checkpoint
    log_keys: tuple[str, ...]
    published: int
    arrived: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Go:
    """All that take part in this recovery are ready: begin, or go on on the channels that began anew.

    reached   of a restored partition: the last batch that some receiver has whole from an earlier life of it
    """

    epoch: int
    reached: int = NO_BATCH


@dataclass(frozen=True)
class Rejoin:
    """Neighbours are restored while this partition goes on: its channels with them begin anew in this epoch.

    Say when it is done; nothing is sent on these channels before `Go`.

    outputs   the channels to restored partitions, on which all is sent again since the checkpoint with this number
    inputs    the channels from restored partitions
    """

    epoch: int
    number: int
    outputs: tuple[int, ...]
    inputs: tuple[int, ...]


@dataclass(frozen=True)
class Round:
    """Begin a round of coordinated checkpoints; goes to the sources."""

    epoch: int
    number: int


@dataclass(frozen=True)
class Failure:
    """These partitions have failed; goes to the others."""

    epoch: int
    partitions: tuple[int, ...]


@dataclass(frozen=True)
class Absent:
    """Go on without the input of these partitions: all of those next to this one from which nothing will come.

    What was told before is void. A batch without some of its input makes the partition tentative until it is restored.
    """

    epoch: int
    partitions: tuple[int, ...]


@dataclass(frozen=True)
class Stable:
    """No recovery will go behind this checkpoint: sinks may publish what it covers, retained output from before it may
    go."""

    epoch: int
    number: int


@dataclass(frozen=True)
class Ready:
    """The partition is back at its checkpoint, or has rejoined its neighbours.

    arrived   by batches: on the channels from restored partitions, the last batch that has arrived whole
    """

    partition: int
    epoch: int
    arrived: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Unreadable:
    """The partition can't go back: this object is spoilt."""

    partition: int
    epoch: int
    key: str


@dataclass(frozen=True)
class Stored:
    """A checkpoint and all that it needs is in the store."""

    epoch: int
    checkpoint: Checkpoint


@dataclass(frozen=True)
class NotStored:
    """The store refused a checkpoint."""

    partition: int
    epoch: int
    number: int


@dataclass(frozen=True)
class TurnedTentative:
    """The partition goes on without some of its input, from this batch until it is restored."""

    partition: int
    epoch: int
    batch: int


@dataclass(frozen=True)
class Published:
    """A sink's output up to this checkpoint is out. It holds whatever the epoch."""

    partition: int
    number: int


ToPartition = Restore | Rejoin | Go | Round | Failure | Absent | Stable
ToCoordinator = Ready | Unreadable | Stored | NotStored | TurnedTentative | Published
_KINDS: dict[str, type[ToPartition | ToCoordinator]] = {
    kind.__name__: kind for kind in (*get_args(ToPartition), *get_args(ToCoordinator))
}


def encode_message(message: ToPartition | ToCoordinator) -> bytes:
    """One line of JSON: its length is what a message counts as protocol bytes."""
    return json.dumps([type(message).__name__, vars(message)], separators=(",", ":"), default=vars).encode()


def decode_message(data: bytes) -> ToPartition | ToCoordinator:
    """The message that `encode_message` made bytes of; raises `UnknownMessage` for anything else."""
    return decode_as(_KINDS, data)
