"""Handles the answers of the store about output that a partition keeps there for a while."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from testbed.core.control import Unreadable
from testbed.core.effects import PartitionEffect, Tell
from testbed.core.frames import decode_log
from testbed.core.partition.sending import Sending


class HasStoredOutput:
    """The part of a partition that hears of its `Spill` and `Fetch`."""

    number: int
    epoch: int
    sending: Sending
    _schemas: Sequence[pa.Schema]
    _effects: list[PartitionEffect]

    def on_spilled(self, key: str) -> None:
        """The store has output that was too much for memory."""
        self.sending.spilled.on_spilled(key)

    def on_spill_refused(self, key: str) -> None:
        """The store refused output that is too much for memory."""
        self.sending.spilled.on_refused(key)

    def on_fetched(self, key: str, data: bytes) -> None:
        """Output has been read back."""
        self.sending.on_fetched(key, decode_log(data, self._schemas))

    def on_unreadable(self, key: str) -> None:
        """Output is lost: a receiver that needs it can only get it if this partition rolls back, too."""
        if key in self.sending.spilled.keys:
            self._effects.append(Tell(Unreadable(self.number, self.epoch, key)))
