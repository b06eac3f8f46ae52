"""The messages between coordinator and partitions. Each recovery begins an epoch; older messages are void."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import get_args

from testbed.core.checkpoints import NO_BATCH, Checkpoint
from testbed.core.shapes import decode_as, encode_as


@dataclass(frozen=True)
class Restore:
    """Go back to a checkpoint, with the objects of its state and these logs, and say when it is done.

    arrived   the last number that the receivers of its channels have where they roll back to
    muted     whether it is a copy, whose output stays inside
    """

    epoch: int
    checkpoint: Checkpoint
    log_keys: tuple[str, ...]
    arrived: dict[int, int] = field(default_factory=dict)
    muted: bool = False


@dataclass(frozen=True)
class Promote:
    """The primary of this copy is lost. The copy takes its place and begins a life in this epoch, with what it has.

    Say what has arrived; nothing is sent before `Go`.
    """

    epoch: int


@dataclass(frozen=True)
class Attach:
    """The receivers of these channels have copies, which get all that was sent since the checkpoint with this number.

    They begin with `Attached`, in an epoch that no other link of these channels has.
    """

    epoch: int
    number: int
    outputs: tuple[int, ...]


@dataclass(frozen=True)
class Attached:
    """The copies that take part since this epoch are ready; by channel, the last batch that they have whole."""

    epoch: int
    arrived: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Detach:
    """The receivers of these channels have no copies any more."""

    epoch: int
    outputs: tuple[int, ...]


@dataclass(frozen=True)
class Trim:
    """What the primary of this copy has emitted up to this number is final: the copy may let it go."""

    epoch: int
    number: int


@dataclass(frozen=True)
class Dismiss:
    """This copy is of no more use; goes to the worker that has it."""

    epoch: int


@dataclass(frozen=True)
class Go:
    """All that take part in this recovery are ready: begin, or continue on the channels that started again.

    reached   of a restored partition: the last batch that some receiver has whole from an earlier life of it
    arrived   by output channel that starts again, the last batch that its receiver has whole
    """

    epoch: int
    reached: int = NO_BATCH
    arrived: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Rejoin:
    """Neighbours are restored while this partition goes on: its channels with them start again in this epoch.

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
class Waiting:
    """This sender must not wait for these receivers, since they wait for lost partitions; for all others it waits."""

    epoch: int
    partitions: tuple[int, ...]


@dataclass(frozen=True)
class Stable:
    """No recovery will roll back beyond this checkpoint. Sinks may publish what it covers."""

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
    """The partition can't roll back: this object is spoilt."""

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
    """A sink's output up to this checkpoint is published. This message counts in every epoch."""

    partition: int
    number: int


@dataclass(frozen=True)
class Passed:
    """A copy has passed the border at which its primary takes the checkpoint with this number."""

    partition: int
    epoch: int
    number: int


ToPartition = (
    Restore
    | Promote
    | Rejoin
    | Attach
    | Attached
    | Detach
    | Trim
    | Dismiss
    | Go
    | Round
    | Failure
    | Absent
    | Waiting
    | Stable
)
ToCoordinator = Ready | Unreadable | Stored | NotStored | TurnedTentative | Published | Passed
_KINDS: dict[str, type[ToPartition | ToCoordinator]] = {
    kind.__name__: kind for kind in (*get_args(ToPartition), *get_args(ToCoordinator))
}


def encode_message(message: ToPartition | ToCoordinator) -> bytes:
    """One line of JSON: its length is what a message counts as protocol bytes."""
    return encode_as(message)


def decode_message(data: bytes) -> ToPartition | ToCoordinator:
    """The message that `encode_message` made bytes of; raises `UnknownMessage` for anything else."""
    return decode_as(_KINDS, data)
