"""Communication-induced checkpoints: HMNR in section III-C of `checkmate`.

Source: Hélary, Mostéfaoui, Netzer, Raynal, "Communication-based prevention of useless checkpoints in distributed
computations", Distributed Computing 13(1), 2000: the protocol with all its knowledge.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import numpy.typing as npt

from testbed.core.dataflow.layout import Channel
from testbed.core.frames import Frame
from testbed.core.protocol import Runtime
from testbed.protocols.uncoordinated import Uncoordinated

Counts = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]
CLOCK = struct.Struct("<q")


class CommunicationInduced(Uncoordinated):
    """Takes a checkpoint before it processes what would make one of its checkpoints useless.

    Vectors have an entry for each partition, (partitions,). Names, and the partition's own entry, are as in the paper:

    clock     Lamport's, one more with every checkpoint
    ckpt      how many checkpoints each partition has taken, as far as this one knows
    sent_to   whom it has sent to since its last checkpoint
    taken     whether a causal Z-path with a checkpoint on it leads here from the last known checkpoint of each
    greater   whether its clock is greater than that of each, as far as it knows

    `checkmate` has the first condition as: it has sent to the sender, whose clock is greater. The original, used here,
    asks for any partition that it has sent to and whose clock is behind the sender's: that one may not have sent since.
    """

    name = "communication-induced"
    _clock: int
    _ckpt: Counts
    _sent_to: Flags
    _taken: Flags
    _greater: Flags
    _piggyback: bytes | None

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self.on_recovery(None)

    def before_send(self, channel: Channel) -> bytes:
        self._sent_to[channel.receiver] = True
        if self._piggyback is None:
            flags = np.packbits(np.concatenate((self._taken, self._greater)))
            self._piggyback = CLOCK.pack(self._clock) + self._ckpt.tobytes() + flags.tobytes()
        return self._piggyback

    def on_message(self, frame: Frame) -> None:
        """What comes again says nothing new: all that it could teach is known, and what it could force has been."""
        if self._heard.get(frame.channel) == frame.piggyback:
            return
        self._heard[frame.channel] = frame.piggyback
        clock, ckpt, taken, greater = self._read(frame.piggyback)
        me = self.runtime.number
        zigzag = clock > self._clock and bool((self._sent_to & greater).any())
        if zigzag or (taken[me] and ckpt[me] == self._ckpt[me]):
            self.runtime.checkpoint(forced=True)
        self._learn(clock, ckpt, taken, greater)

    def on_checkpoint(self, number: int) -> None:
        self._begin_interval()

    def snapshot(self) -> Any:
        return self._clock, self._ckpt.copy(), self._sent_to.copy(), self._taken.copy(), self._greater.copy()

    def on_recovery(self, snapshot: Any) -> None:
        self._piggyback = None
        self._heard: dict[int, bytes] = {}
        if snapshot is not None:
            self._clock, *vectors = snapshot
            self._ckpt, self._sent_to, self._taken, self._greater = (each.copy() for each in vectors)
            return
        count = self.runtime.partitions
        self._clock, self._ckpt = 0, np.zeros(count, dtype=np.int32)
        self._sent_to, self._taken, self._greater = (np.zeros(count, dtype=bool) for _ in range(3))
        self._begin_interval()

    def _begin_interval(self) -> None:
        me = self.runtime.number
        self._clock += 1
        self._ckpt[me] += 1
        self._sent_to[:] = False
        self._taken[:] = True
        self._greater[:] = True
        self._taken[me] = self._greater[me] = False
        self._piggyback = None

    def _learn(self, clock: int, ckpt: Counts, taken: Flags, greater: Flags) -> None:
        """Take over what the sender knew. The piggyback of the next message is made again only if this changed it."""
        me, before = self.runtime.number, self._knowledge()
        greater[me], taken[me] = False, False
        if clock >= self._clock:
            self._greater = greater if clock > self._clock else self._greater & greater
        newer, same = ckpt > self._ckpt, ckpt == self._ckpt
        newer[me] = False
        self._taken = np.where(newer, taken, self._taken | (taken & same))
        self._ckpt = np.where(newer, ckpt, self._ckpt)
        self._clock = max(clock, self._clock)
        if any(not np.array_equal(a, b) for a, b in zip(before, self._knowledge(), strict=True)):
            self._piggyback = None

    def _knowledge(self) -> tuple[int | Counts | Flags, ...]:
        return self._clock, self._ckpt, self._taken, self._greater

    def _read(self, piggyback: bytes) -> tuple[int, Counts, Flags, Flags]:
        count = self.runtime.partitions
        (clock,) = CLOCK.unpack_from(piggyback)
        flags_at = CLOCK.size + 4 * count
        ckpt = np.frombuffer(piggyback, dtype=np.int32, count=count, offset=CLOCK.size)
        flags = np.frombuffer(piggyback, dtype=np.uint8, offset=flags_at)
        taken, greater = np.unpackbits(flags, count=2 * count).astype(bool).reshape(2, count)
        return clock, ckpt, taken, greater
