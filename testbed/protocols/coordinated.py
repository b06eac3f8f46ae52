"""Coordinated aligned checkpoints: section III-A of `checkmate`, after Chandy and Lamport, and Carbone et al."""

from __future__ import annotations

import struct
from typing import Any

from experiments.errors import BadInput
from testbed.core.dataflow.layout import Layout
from testbed.core.frames import Frame, FrameKind
from testbed.core.protocol import Protocol, Runtime

ROUND = struct.Struct("<q")


class Coordinated(Protocol):
    """Sources take a checkpoint when a round starts and send markers; others when a marker has come on every channel.

    Until then the channels that were first wait, so that nothing is in flight between the checkpoints of a round.
    """

    name = "coordinated"
    in_rounds = True

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self._missing = {channel.id for channel in runtime.inputs}

    @classmethod
    def check(cls, layout: Layout) -> None:
        if layout.cyclic:
            raise BadInput(
                f"protocol of {layout.name}",
                cls.name,
                "uncoordinated or communication-induced: on a cycle an operator would wait for its own marker",
            )

    def on_round(self, number: int) -> None:
        self._take(number)

    def on_marker(self, frame: Frame) -> None:
        self._missing.discard(frame.channel)
        self.runtime.block(frame.channel)
        if not self._missing:
            self._take(*ROUND.unpack(frame.piggyback))
            self._missing = {channel.id for channel in self.runtime.inputs}
            self.runtime.unblock()

    def on_recovery(self, snapshot: Any) -> None:
        self._missing = {channel.id for channel in self.runtime.inputs}

    def _take(self, number: int) -> None:
        self.runtime.checkpoint(number)
        for channel in self.runtime.outputs:
            self.runtime.send(FrameKind.MARKER, channel, ROUND.pack(number))
