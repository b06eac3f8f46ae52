"""Sends the output of a partition: batches become numbered frames, and frames wait for credit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from testbed.core.dataflow.layout import PartitionLayout
from testbed.core.dataflow.partitioning import rows_by_channel
from testbed.core.effects import Grant, PartitionEffect, Send
from testbed.core.frames import Frame, FrameKind, data_bytes
from testbed.core.partition.counts_and_watermarks import Tally, Watermarks
from testbed.core.partition.links import OutputLink
from testbed.core.partition.overflow import Overflow
from testbed.core.partition.readings import Piece
from testbed.core.partition.snapshots import Snapshots
from testbed.core.protocol import Protocol
from testbed.core.ranges import cut, message
from testbed.core.segments import SpilledOutput

SIZED_EVERY = 32
RETURNING_BYTES = 16 << 20


class Sending:
    """The sending ends of all output channels. Until `start` everything waits.

    frames_in_flight      the credit of a channel: frames sent and not yet processed
    records_per_message   more rows than that are sent as several frames
    in_range              with one record a message: the most messages that travel in one frame. Each takes credit. The
                          credit of a channel is then this number times `frames_in_flight`
    returning_bytes       how much of what waits on the channels that close a cycle is kept in memory
    spilled               what is in the store for a while, since it is too much for memory
    """

    spilled: SpilledOutput

    def __init__(
        self,
        layout: PartitionLayout,
        protocol: Protocol,
        snapshots: Snapshots,
        watermarks: Watermarks,
        tally: Tally,
        effects: list[PartitionEffect],
        frames_in_flight: int,
        records_per_message: int,
        in_range: int = 1,
        returning_bytes: int = RETURNING_BYTES,
    ) -> None:
        self._routes, self._protocol, self._snapshots = layout.routes, protocol, snapshots
        self._watermarks, self._tally, self._effects = watermarks, tally, effects
        self._full_credit, self._records_per_frame = frames_in_flight * in_range, records_per_message * in_range
        self.sends_ranges = in_range > 1
        self._links = {channel.id: OutputLink(channel) for channel in layout.outputs}
        self._leading_on = [link for link in self._links.values() if not link.channel.on_cycle]
        self._held_up = [link.waiting for link in self._links.values() if not link.channel.returning]
        returning = [channel.id for channel in layout.outputs if channel.returning]
        self._overflow = self.spilled = Overflow(returning, returning_bytes, effects)
        self._name = layout.name
        self._started = False

    def restore(self, epoch: int, sent: Mapping[int, int], replayed: Iterable[Frame]) -> None:
        """Go on in this epoch after the data with these numbers, by channel; what is replayed goes first."""
        self._started = False
        for channel, link in self._links.items():
            link.restore(epoch, sent[channel], self._full_credit)
        self._overflow.restore(f"{self._name}/waiting-{{}}-{epoch}")
        for frame in replayed:
            link = self._links[frame.channel]
            self._wait(link, replace(frame, epoch=link.epoch))

    def start(self) -> None:
        """Send what waits, as far as there is credit, and from now on everything."""
        self._started = True
        for link in self._links.values():
            self._flush(link)

    def stop(self) -> None:
        """Let everything wait until the next `start`."""
        self._started = False

    def emit(self, batch: pa.RecordBatch | None) -> None:
        """Send what the operator emits."""
        if batch is None or not batch.num_rows:
            return
        self._tally.records_out += batch.num_rows
        for channel, rows in self.pieces(batch):
            self._send(self._links[channel.id], rows)

    def pieces(self, batch: pa.RecordBatch) -> Iterator[Piece]:
        """The messages or ranges that a batch makes, in order."""
        most = self._records_per_frame
        for route in self._routes:
            for channel, rows in rows_by_channel(batch, route):
                for start in range(0, rows.num_rows, most):
                    yield channel, rows if rows.num_rows <= most else rows.slice(start, most)

    def announce(self) -> None:
        """Send the event time on the channels that do not have it yet; on a cycle it is not used."""
        for link in self._leading_on:
            if link.announced_ns < self._watermarks.current_ns:
                self._send(link, None)

    def resend(self, frames: Iterable[Frame]) -> None:
        """Send data again under the numbers that it had."""
        for frame in frames:
            link = self._links[frame.channel]
            link.waiting.append(frame)
            self._flush(link)

    def control(self, kind: FrameKind, channel: int, content: bytes) -> None:
        """Send a marker or control after all data so far."""
        link = self._links[channel]
        self._post(link, Frame(kind, link.epoch, channel, link.sent, self._watermarks.current_ns, content))

    def on_credit(self, grant: Grant) -> None:
        """The receiver of a channel can take more."""
        link = self._links[grant.channel]
        if grant.epoch == link.epoch:
            link.credit += grant.messages
            self._flush(link)

    def on_fetched(self, key: str, frames: Sequence[Frame]) -> None:
        """What was in the store is in memory again."""
        channel = self.spilled.on_fetched(key, frames)
        if channel is not None and self._started:
            self._flush(self._links[channel])

    @property
    def congested(self) -> bool:
        """Whether something waits for credit, or for the store because it is too much for memory.

        What closes a cycle does not wait for credit: it could wait for itself.
        """
        return any(self._held_up) or self._overflow.overfull

    @property
    def empty(self) -> bool:
        """Whether no frame waits."""
        return not any(link.waiting for link in self._links.values()) and self._overflow.empty

    @property
    def replaying(self) -> bool:
        """Whether data that was sent before the last restore waits to be sent again."""
        return any(link.replays for link in self._links.values())

    @property
    def sent(self) -> dict[int, int]:
        """By channel the number of the last data."""
        return {channel: link.sent for channel, link in self._links.items()}

    def epoch(self, channel: int) -> int:
        """The epoch of what is sent on a channel."""
        return self._links[channel].epoch

    def _send(self, link: OutputLink, batch: pa.RecordBatch | None) -> None:
        watermark_ns = self._watermarks.current_ns
        link.sent += batch.num_rows if self.sends_ranges and batch is not None else 1
        link.announced_ns = watermark_ns
        piggyback = self._protocol.before_send(link.channel)
        is_range = self.sends_ranges and batch is not None
        frame = Frame(FrameKind.DATA, link.epoch, link.channel.id, link.sent, watermark_ns, piggyback, batch, is_range)
        self._tally.data_bytes += self._sized(frame)
        if self._protocol.logs:
            self._snapshots.log(frame)
        self._post(link, frame)

    def _post(self, link: OutputLink, frame: Frame) -> None:
        self._tally.protocol_bytes += frame.protocol_bytes()
        self._wait(link, frame)
        if self._started:
            self._flush(link)

    def _wait(self, link: OutputLink, frame: Frame) -> None:
        if link.channel.returning:
            self._overflow.add(link.waiting, frame)
        else:
            link.waiting.append(frame)

    def _flush(self, link: OutputLink) -> None:
        while link.credit > 0 and (link.waiting or self._comes_back(link)):
            frame = link.waiting.popleft()
            if frame.messages > link.credit:
                frame, rest = cut(frame, link.credit)
                link.waiting.appendleft(rest)
            link.credit -= frame.messages
            self._effects.append(Send(frame))

    def _comes_back(self, link: OutputLink) -> bool:
        """Whether frames wait behind those that were next; if they are in the store, they will be sent later."""
        return link.channel.returning and self._overflow.bring(link.channel.id, link.waiting)

    @staticmethod
    def _sized(frame: Frame) -> int:
        """The size of the first of its messages whose number is due to be measured, for all those and the 31 after."""
        before = frame.sequence - frame.messages
        numbers = (frame.sequence + SIZED_EVERY - 1) // SIZED_EVERY - (before + SIZED_EVERY - 1) // SIZED_EVERY
        if not numbers:
            return 0
        sized = message(frame, -before % SIZED_EVERY) if frame.is_range else frame
        return numbers * SIZED_EVERY * data_bytes(sized)
