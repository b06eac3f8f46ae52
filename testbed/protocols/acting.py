"""Calls the hooks of protocols to see what they do; recognizes a hook that does nothing.

The hooks run with a runtime that only notes what they request. It has three partitions: 0 and 1 both send to 2, and 2
sends to 0.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from testbed.core.checkpoints import Checkpoint, last_common
from testbed.core.dataflow.layout import Channel
from testbed.core.frames import Frame, FrameKind
from testbed.core.protocol import Protocol, Runtime

ENDS = ((0, 2), (1, 2), (2, 0))
NOTHING = pa.schema([])
CHANNELS = tuple(Channel(number, *ends, 0, NOTHING, on_cycle=False) for number, ends in enumerate(ENDS))
NUMBER_1 = (1).to_bytes(8, "little")  # of a round, as a marker carries it


class Notes(Runtime):
    """A runtime that notes what a protocol asks for, and tells it of the checkpoints that it takes."""

    def __init__(self, protocol: type[Protocol], number: int) -> None:
        self.number, self.partitions = number, 3
        self.inputs = tuple(each for each in CHANNELS if each.receiver == number)
        self.outputs = tuple(each for each in CHANNELS if each.sender == number)
        self.blocked: list[int] = []
        self.checkpoints: list[bool] = []
        self.protocol = protocol(self)

    def checkpoint(self, number: int | None = None, forced: bool = False) -> None:
        self.checkpoints.append(forced)
        self.protocol.on_checkpoint(len(self.checkpoints) if number is None else number)

    def block(self, channel: int) -> None:
        self.blocked.append(channel)

    def unblock(self) -> None:
        self.blocked.clear()

    def send(self, kind: FrameKind, channel: Channel, content: bytes) -> None:
        """Markers and control go nowhere here."""

    def hear(self, channel: int, piggyback: bytes, kind: FrameKind = FrameKind.DATA) -> None:
        """A frame comes to the head of an input channel."""
        frame = Frame(kind, 0, channel, 1, 0, piggyback)
        (self.protocol.on_message if kind is FrameKind.DATA else self.protocol.on_marker)(frame)


def seen(protocol: type[Protocol]) -> dict[str, bool]:
    """By feature, of those that hooks make, whether the protocol is seen to have it.

    The coordinator starts rounds, and partitions are told their time, only where the class asks for that.
    """
    return {
        "blocking markers": _blocks(protocol),
        "message overhead": _adds_to_messages(protocol),
        "independent checkpoints": protocol.on_own_time and _checkpoints_by_timer(protocol),
        "straggler stalls": protocol.in_rounds and _waits_for_all(protocol),
        "unused checkpoints": _leaves_checkpoints_behind(protocol),
        "forced checkpoints": _forces(protocol),
    }


def _blocks(protocol: type[Protocol]) -> bool:
    """The channel on which the first marker of a round has come waits."""
    notes = Notes(protocol, 2)
    notes.hear(0, NUMBER_1, FrameKind.MARKER)
    return notes.blocked == [0]


def _waits_for_all(protocol: type[Protocol]) -> bool:
    """The checkpoint of a round is taken when the last marker has come, and not before."""
    notes, taken = Notes(protocol, 2), []
    for channel in (0, 1):
        notes.hear(channel, NUMBER_1, FrameKind.MARKER)
        taken.append(len(notes.checkpoints))
    return taken == [0, 1]


def _adds_to_messages(protocol: type[Protocol]) -> bool:
    return len(Notes(protocol, 0).protocol.before_send(CHANNELS[0])) > 0


def _checkpoints_by_timer(protocol: type[Protocol]) -> bool:
    notes = Notes(protocol, 0)
    notes.protocol.on_timer()
    return len(notes.checkpoints) == 1


def _forces(protocol: type[Protocol]) -> bool:
    """0 sends to 2, which takes a checkpoint and sends back: what 0 has sent before would make its next one useless."""
    first, other = Notes(protocol, 0), Notes(protocol, 2)
    other.hear(0, first.protocol.before_send(CHANNELS[0]))
    other.checkpoint()
    first.hear(2, other.protocol.before_send(CHANNELS[2]))
    return True in first.checkpoints


def _leaves_checkpoints_behind(protocol: type[Protocol]) -> bool:
    """Whether the line is not the last checkpoint that all have if there is an orphan between the latest ones."""
    taken = [[_checkpoint(of, number, sent, received) for number, sent, received in each] for of, each in ORPHANED]
    return protocol.find_line(taken, CHANNELS) != last_common(taken, CHANNELS)


# partition: number, sent, received of each checkpoint; 2 has received on channel 0 what 0 sends after its last one
ORPHANED: tuple[tuple[int, tuple[tuple[int, Any, Any], ...]], ...] = (
    (0, ((0, {0: 0}, {2: 0}), (1, {0: 1}, {2: 0}))),
    (1, ((0, {1: 0}, {}), (1, {1: 1}, {}))),
    (2, ((0, {2: 0}, {0: 0, 1: 0}), (1, {2: 0}, {0: 2, 1: 1}))),
)


def _checkpoint(partition: int, number: int, sent: dict[int, int], received: dict[int, int]) -> Checkpoint:
    return Checkpoint(partition, number, 0, sent, received)
