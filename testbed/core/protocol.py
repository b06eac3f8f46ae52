"""The interface between protocols and the runtime."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from experiments.errors import BadInput
from testbed.core.checkpoints import Line, Taken, last_common
from testbed.core.dataflow.layout import Channel, Layout
from testbed.core.frames import Frame, FrameKind
from testbed.operators import Delivery, Sink


class Runtime(ABC):
    """What a protocol may ask of the partition that it protects. Partitions and channels go by their numbers.

    number          of this partition, from 0
    partitions      how many there are in the dataflow
    inputs, outputs its channels
    """

    number: int
    partitions: int
    inputs: tuple[Channel, ...]
    outputs: tuple[Channel, ...]

    @abstractmethod
    def checkpoint(self, number: int | None = None, forced: bool = False) -> None:
        """Take a checkpoint before anything else happens; its number is the next one, unless it is given."""

    @abstractmethod
    def block(self, channel: int) -> None:
        """Let what comes on an input channel wait."""

    @abstractmethod
    def unblock(self) -> None:
        """Take from every input channel again."""

    @abstractmethod
    def send(self, kind: FrameKind, channel: Channel, content: bytes) -> None:
        """Send a marker or control on an output channel, after all data so far. Neither is logged, nor sent again."""


class Protocol(ABC):
    """One partition's part of a protocol; the class itself says what the coordinator has to do.

    The hooks run one at a time, each at the moment that its name tells. What is sent, processed and stored in between
    is the runtime's affair. The base class does nothing at every hook.

    name             in experiments
    logs             whether what is sent is logged with the checkpoints, and replayed from there
    on_own_time      whether partitions are told when their worker's checkpoint interval is over
    in_rounds        whether the coordinator starts rounds
    by_batch         whether partitions work batch by batch (`core.by_batch`): content decides what has which number
    keeps_log        whether operators whose state has parts keep an output log (`testbed.output_log`)
    begins_anew      whether a partition without a readable checkpoint starts from the beginning, with all partitions
                     that make its input, while the others go on from the line: `find_line` must not choose a lost
                     checkpoint
    """

    name: ClassVar[str]
    logs: ClassVar[bool] = False
    on_own_time: ClassVar[bool] = False
    in_rounds: ClassVar[bool] = False
    by_batch: ClassVar[bool] = False
    keeps_log: ClassVar[bool] = False
    begins_anew: ClassVar[bool] = False

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime

    @classmethod
    def check(cls, layout: Layout) -> None:
        """Raises `BadInput` for a dataflow that the protocol can't protect."""
        return

    @staticmethod
    def find_line(taken: Taken, channels: Sequence[Channel]) -> Line:
        """The recovery line of the checkpoints that are stored; never before one that was found earlier."""
        return last_common(taken, channels)

    def on_start(self) -> None:
        """All partitions are ready and this one begins, for the first time or again."""
        return

    def before_send(self, channel: Channel) -> bytes:
        """Data is about to be sent: what to piggyback on it."""
        return b""

    def on_message(self, frame: Frame) -> None:
        """Data is about to be processed."""
        return

    def on_marker(self, frame: Frame) -> None:
        """A marker has come to the head of its channel."""
        return

    def on_control(self, frame: Frame) -> None:
        """A control frame has come to the head of its channel."""
        return

    def on_end(self, checkpoint: int | None) -> None:
        """By batches: all input has been processed, but not yet that it has ended.

        checkpoint   the number for a checkpoint that is taken now: that of the next border at which one is due
        """
        return

    def on_border(self, checkpoint: int | None) -> None:
        """A batch has ended; `checkpoint` is the number of the one that is due at this border, if one is."""
        return

    def on_timer(self) -> None:
        """The checkpoint interval of this partition is over."""
        return

    def on_round(self, number: int) -> None:
        """The coordinator starts a round; at sources only."""
        return

    def on_checkpoint(self, number: int) -> None:
        """The checkpoint with this number is being taken: what `snapshot` returns now is part of it."""
        return

    def on_checkpoint_stored(self, number: int) -> None:
        """A checkpoint of this partition is safe."""
        return

    def on_failure(self, partitions: tuple[int, ...]) -> None:
        """Other partitions have failed; this one goes on until it is told to roll back."""
        return

    def on_recovery(self, snapshot: Any) -> None:
        """The partition is back at a checkpoint with this snapshot; None at its beginning."""
        return

    def snapshot(self) -> Any:
        """What the protocol itself must remember: picklable, never changed afterwards."""
        return None


class Unprotected(Protocol):
    """No checkpoints: after a failure everything begins again."""

    name = "none"

    @classmethod
    def check(cls, layout: Layout) -> None:
        for partition in layout.partitions:
            if partition.element == Sink(Delivery.EXACTLY_ONCE):
                allowed = f"{Delivery.PLAIN.value}: without checkpoints nothing is ever safe to publish"
                raise BadInput(f"delivery of the sink {partition.operator}", Delivery.EXACTLY_ONCE.value, allowed)
