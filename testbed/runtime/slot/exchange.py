"""Exchanges frames and credit between partitions, within a slot and between slots."""

from __future__ import annotations

from collections import Counter

from testbed.core.dataflow.layout import Layout
from testbed.core.effects import Grant
from testbed.core.frames import Frame, encode
from testbed.core.partition.partition import Partition
from testbed.runtime.network.mesh import Mesh
from testbed.runtime.network.messages import NOBODY, Peers
from testbed.runtime.slot.hosted import At


class Exchange:
    """Finds the slot of each receiver. Frames and credit carry the epoch of their channel, by which the partition at
    the other end knows whether they count."""

    def __init__(self, layout: Layout, slots: int, mesh: Mesh, at: At) -> None:
        self._layout, self._slots, self._mesh, self._at = layout, slots, mesh, at
        self._peers = NOBODY
        self._grants: Counter[tuple[int, int]] = Counter()

    @property
    def epoch(self) -> int:
        """The epoch of the last recovery; -1 if there was none."""
        return self._peers.epoch

    @property
    def sent_bytes(self) -> int:
        """What this slot has sent to others, in frames."""
        return self._mesh.sent_bytes

    def begin(self, peers: Peers) -> None:
        """A recovery begins; if all partitions roll back, with new connections."""
        self._peers = peers
        if len(peers.restored) == len(self._layout.partitions):
            self._mesh.drop()
        self._mesh.form(peers)

    def end(self) -> None:
        """The session is over."""
        self._peers, self._grants = NOBODY, Counter()

    def hosts(self, partition: int) -> bool:
        """Whether this slot is where a partition is, which may have yet to be restored here; copies do not count."""
        return self._seat_of(partition) == self._peers.mine

    def on_frame(self, frame: Frame) -> None:
        """A frame has arrived for a partition that is here."""
        self._at(self._layout.channels[frame.channel].receiver, Partition.on_frame, frame)

    def on_grant(self, grant: Grant) -> None:
        """Credit has arrived for a partition that is here."""
        self._at(self._layout.channels[grant.channel].sender, Partition.on_credit, grant)

    def send(self, frame: Frame, to_copy: bool = False) -> None:
        """A partition sends a frame, to the receiver or to its copy, if it still has one."""
        receiver = self._layout.channels[frame.channel].receiver
        slot = self._peers.copies.get(receiver) if to_copy else self._seat_of(receiver)
        if slot is None:
            return
        if slot == self._peers.mine:
            self._at(receiver, Partition.on_frame, frame)
        else:
            self._mesh.send(slot, encode(frame))

    def grant(self, grant: Grant) -> None:
        """A partition gives credit; it goes back with the next `give_credit`."""
        self._grants[grant.channel, grant.epoch] += grant.messages

    def give_credit(self) -> None:
        """Credit goes back all of a channel's at once."""
        grants, self._grants = self._grants, Counter()
        for (channel, epoch), messages in grants.items():
            sender = self._layout.channels[channel].sender
            grant = Grant(channel, epoch, messages)
            slot = self._seat_of(sender)
            if slot == self._peers.mine:
                self._at(sender, Partition.on_credit, grant)
            else:
                self._mesh.grant(slot, grant)

    def _seat_of(self, partition: int) -> int:
        """Where a partition is: in its slot, unless it was moved."""
        moved = self._peers.moved
        return moved[partition] if partition in moved else self._layout.partitions[partition].slot(self._slots)
