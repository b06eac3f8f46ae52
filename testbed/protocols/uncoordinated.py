"""Uncoordinated checkpoints with logged messages: section III-B of `checkmate`, after Wang et al. 1995."""

from __future__ import annotations

from collections.abc import Sequence

from testbed.core.checkpoints import Line, Taken, rollback_propagation
from testbed.core.dataflow.layout import Channel
from testbed.core.protocol import Protocol


class Uncoordinated(Protocol):
    """Every partition takes checkpoints in its own time; what is in flight at the recovery line comes from the logs."""

    name = "uncoordinated"
    logs = True
    on_own_time = True

    @staticmethod
    def find_line(taken: Taken, channels: Sequence[Channel]) -> Line:
        return rollback_propagation(taken, channels)

    def on_timer(self) -> None:
        self.runtime.checkpoint()
