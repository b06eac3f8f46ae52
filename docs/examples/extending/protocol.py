"""A protocol: uncoordinated checkpoints by work done instead of by time."""

from __future__ import annotations

from typing import Any

from testbed.core.frames import Frame
from testbed.core.protocol import Runtime
from testbed.protocols.uncoordinated import Uncoordinated

MESSAGES = 4  # from one checkpoint to the next: fewer messages mean less work that is done again after a failure


class ByWork(Uncoordinated):
    """A partition that has processed `MESSAGES` messages since its last checkpoint takes one before the next message.

    It inherits the rest: messages are logged, rollback propagation finds the recovery line, and a timer starts
    checkpoints, too, because sources get no messages.
    """

    name = "by-work"

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self._done = 0

    def on_message(self, frame: Frame) -> None:
        if self._done == MESSAGES:
            self.runtime.checkpoint()
        self._done += 1

    def on_checkpoint(self, number: int) -> None:
        self._done = 0

    def on_recovery(self, snapshot: Any) -> None:
        self._done = 0  # it is back at a checkpoint, or at its beginning
