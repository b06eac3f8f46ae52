"""The moment at which a partition has nothing left to read but the end of its input."""

from __future__ import annotations

from testbed.core.by_batch.cutting import Batching
from testbed.core.protocol import Protocol


class InputEnd:
    """Tells the protocol of that moment, once for each state that a partition rolls back to from before it.

    reached   whether it has come
    """

    def __init__(self, protocol: Protocol, batching: Batching) -> None:
        self._protocol, self._batching = protocol, batching
        self.reached = False

    def restore(self, reached: bool) -> None:
        """The partition rolls back to where this moment was past already, or was not."""
        self.reached = reached

    def reach(self, last: int) -> None:
        """Nothing is left but the end; `last` is the last batch that has ended."""
        if not self.reached:
            self.reached = True
            self._protocol.on_end(self._batching.next_checkpoint(last))
