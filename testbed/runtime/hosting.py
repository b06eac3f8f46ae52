"""The partitions of one slot at work: what happens to them, and what they ask for."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from math import inf
from typing import TypeAlias

import pyarrow as pa

from experiments.errors import AftershockError, EnvironmentFailure
from testbed.core.control import Go, Restore, Stored, ToCoordinator, ToPartition, Unreadable
from testbed.core.effects import Grant, PartitionEffect, Publish, Send, Store, Tell, Write
from testbed.core.frames import Frame, encode
from testbed.core.layout import Layout
from testbed.core.partition import Partition, Rebuilt
from testbed.operators import Delivery, Sink, Source
from testbed.runtime.background import Background
from testbed.runtime.job import Job
from testbed.runtime.mesh import Mesh
from testbed.runtime.messages import Kept, Peers, SlotStatus
from testbed.runtime.sinks import Outlet, Superseded, outlet_of
from testbed.runtime.sources import Feed, Read, feed_of
from testbed.runtime.stillness import Counts
from testbed.stores.store import ObjectStore, UnreadableObject

PROGRESS_S = 0.2
STEPS_A_TURN = 16
MOST_WRITES, MOST_PUBLICATIONS = 32, 2  # under way, of a plain sink and of one with exactly-once delivery
DRAINING_INTERVAL_S = 0.25
STORE_INTERVALS = 2  # a checkpoint should be stored within so many intervals
ReadBack: TypeAlias = tuple[dict[str, bytes], Rebuilt]


class Timed(Partition):
    """A partition that reports the duration of each of its checkpoints [s] to `on_checkpoint_time`."""

    on_checkpoint_time: Callable[[float], None]

    def checkpoint(self, number: int | None = None, forced: bool = False) -> None:
        begun_s = time.perf_counter()
        super().checkpoint(number, forced)
        self.on_checkpoint_time(time.perf_counter() - begun_s)


class Hosted:
    """A partition, and what the slot keeps for it: its input, its output, and what is under way."""

    def __init__(self, partition: Partition, feed: Feed | None) -> None:
        self.partition, self.feed = partition, feed
        self.outlet: Outlet | None = None
        self.storing = self.writing = 0
        self.unwritten: list[pa.RecordBatch] = []
        self.unstored_since_s: float | None = None

    @property
    def is_full(self) -> bool:
        """Whether this is a sink whose output does not get out as fast as it comes: it takes nothing until some is."""
        element = self.partition.layout.element
        if isinstance(element, Sink) and element.delivery is Delivery.EXACTLY_ONCE:
            return self.writing >= MOST_PUBLICATIONS
        return self.writing + len(self.unwritten) >= MOST_WRITES


class Hosting:
    """Everything of a slot that has to do with partitions; `tell` takes what they have to say to the coordinator."""

    def __init__(
        self,
        job: Job,
        layout: Layout,
        mesh: Mesh,
        store: ObjectStore,
        storing: Background,
        writing: Background,
        tell: Callable[[int, ToCoordinator], None],
    ) -> None:
        self._job, self._layout, self._mesh, self._tell = job, layout, mesh, tell
        self._schemas = [channel.schema for channel in layout.channels]
        self._store = store
        self._storing, self._writing = storing, writing
        self._hosted: dict[int, Hosted] = {}
        self._active: dict[int, None] = {}
        self._grants: Counter[int] = Counter()
        self._kept: list[Kept] = []
        self._peers = Peers(-1, (), -1)
        self._next_progress_s, self._next_checkpoint_s = 0.0, inf
        self._store_lags = False
        self._taking_s = self._storing_s = 0.0
        self._interval_s, self._draining = job.checkpoint_interval_s, False
        self.asked = 0  # the last count that the coordinator asked for

    def begin(self, peers: Peers) -> None:
        """An epoch begins: all partitions go back to where they will be told."""
        for hosted in self._hosted.values():
            hosted.partition.leave()
        self._peers, self._grants, self._next_checkpoint_s = peers, Counter(), inf
        self._mesh.form(peers)

    def order(self, number: int, message: ToPartition) -> None:
        """A message of the coordinator to a partition, which is made if it isn't there."""
        if isinstance(message, Restore):
            hosted = self._hosted.get(number) or self._host(number)
            self._storing.submit(
                partial(self._read_back, hosted.partition, message), partial(self._restore, hosted, message)
            )
        elif number in self._hosted:
            if isinstance(message, Go) and self._job.protocol_class.on_own_time:
                self._next_checkpoint_s = min(self._next_checkpoint_s, time.monotonic() + self._interval_s)
            self._at(number, Partition.on_order, message)

    def on_frame(self, frame: Frame) -> None:
        self._at(self._layout.channels[frame.channel].receiver, Partition.on_frame, frame)

    def on_grant(self, grant: Grant) -> None:
        self._at(self._layout.channels[grant.channel].sender, Partition.on_credit, grant)

    def work(self, until_s: float) -> bool:
        """Let partitions take what has come until the monotonic clock says so; returns whether any could go on."""
        while self._active and time.monotonic() < until_s:
            for number in list(self._active):
                del self._active[number]
                self._serve(self._hosted[number])
            self._give_credit()
        return bool(self._active)

    def on_clock(self, now_s: float) -> None:
        """Timers, and sources that had nothing when they were last asked.

        Logs grow until they are stored: while that takes longer than it should, or is refused, sources read nothing.
        """
        patience_s = STORE_INTERVALS * self._interval_s
        waiting = [h.unstored_since_s for h in self._hosted.values() if h.unstored_since_s is not None]
        self._store_lags = bool(waiting) and now_s - min(waiting) > patience_s
        tell_progress = now_s >= self._next_progress_s
        if tell_progress:
            self._next_progress_s = now_s + PROGRESS_S
        if self._next_checkpoint_s <= now_s:
            self._on_interval(now_s)
        for number, hosted in self._hosted.items():
            if tell_progress:
                self._at(number, Partition.on_progress)
            elif hosted.feed is not None:
                self._active[number] = None

    def drain(self) -> None:
        """Sources come to their end, those of one partition of the input at the same record: where the furthest is.

        Checkpoints come fast, so that output is soon out.
        """
        self._draining, self._interval_s = True, min(self._job.checkpoint_interval_s, DRAINING_INTERVAL_S)
        self._next_checkpoint_s = min(self._next_checkpoint_s, time.monotonic() + self._interval_s)

    def status(self, idle_s: float = 0.0) -> SlotStatus:
        """What there is to tell now; what was stored is told once."""
        kept, self._kept = tuple(self._kept), []
        here = [hosted.partition for hosted in self._hosted.values() if hosted.partition.epoch >= 0]
        return SlotStatus(
            self._peers.epoch,
            {each.number: vars(each.tally) for each in here},
            {each.number: each.position for each in here if isinstance(each.layout.element, Source)},
            tuple(each.number for each in here if self._is_finished(each)),
            kept,
            self._mesh.sent_bytes,
            time.process_time(),
            idle_s,
            self._taking_s + self._storing_s,
            self._counts(here) if self._layout.cyclic else Counts(),
        )

    def _counts(self, here: list[Partition]) -> Counts:
        sent, processed = (sum(numbers) for numbers in zip((0, 0), *(each.counts for each in here), strict=True))
        ended = all(each.ended for each in here if isinstance(each.layout.element, Source))
        return Counts(self._peers.epoch, self.asked, sent, processed, ended)

    def close(self) -> None:
        """Forget all partitions; their input and output end."""
        for hosted in self._hosted.values():
            if hosted.feed is not None:
                hosted.feed.close()
            self._leave_outlet(hosted)
        self._hosted, self._active = {}, {}
        self._peers = Peers(-1, (), -1)

    def _host(self, number: int) -> Hosted:
        layout = self._layout.partitions[number]
        partition = Timed(
            layout, len(self._layout.partitions), self._schemas, self._job.protocol_class, self._job.limits
        )
        partition.on_checkpoint_time = self._add_checkpoint_time
        feed = feed_of(self._job, layout) if isinstance(layout.element, Source) else None
        self._hosted[number] = Hosted(partition, feed)
        return self._hosted[number]

    def _is_finished(self, partition: Partition) -> bool:
        return (
            isinstance(partition.layout.element, Sink)
            and (partition.idle if self._layout.cyclic else partition.finished)
            and not self._hosted[partition.number].writing
            and not self._hosted[partition.number].unwritten
        )

    # What happens to partitions.

    def _at(self, number: int, event: Callable, *arguments: object) -> None:
        hosted = self._hosted.get(number)
        if hosted is not None and hosted.partition.epoch >= 0:
            event(hosted.partition, *arguments)
            self._carry_out(hosted)
            self._active[number] = None

    def _serve(self, hosted: Hosted) -> None:
        partition = hosted.partition
        if partition.epoch < 0 or hosted.is_full:
            return
        if hosted.feed is not None:
            holds_back = self._store_lags and not self._draining  # what a drain still reads has an end
            if holds_back or not partition.wants_input:
                return
            if (read := self._read(hosted)) is not None:
                self._at(partition.number, Partition.on_input, *read)
            return
        for _ in range(STEPS_A_TURN):
            channel = partition.next_channel()
            if channel is None:
                return
            partition.step(channel)
            self._carry_out(hosted)
        self._active[partition.number] = None

    def _read(self, hosted: Hosted) -> Read | None:
        """The next input of a source. Whoever drains still reads again what was in flight, and up to the common end."""
        position, until = hosted.partition.next_input
        if self._draining and until is None:
            until = self._end_of(hosted.partition)
            if position >= until:
                return Read(None, position, True)
        return hosted.feed.read(position, until)

    def _end_of(self, source: Partition) -> int:
        """Where the furthest of the sources is that read the same partition of the input: all of them are here."""
        sources = (hosted.partition for hosted in self._hosted.values() if hosted.feed is not None)
        return max(each.position for each in sources if each.layout.index == source.layout.index)

    def _on_interval(self, now_s: float) -> None:
        """The checkpoint timer of all partitions here; it passes over those whose last checkpoint isn't stored yet.

        They have one timer, and those of all slots begin together and keep step, since checkpoints that are far apart
        in time do not fit together: what one has sent after its own, another has received before its own.
        """
        self._next_checkpoint_s = max(self._next_checkpoint_s + self._interval_s, now_s)
        for number, hosted in self._hosted.items():
            if not hosted.storing:
                self._at(number, Partition.on_timer)

    def _restore(self, hosted: Hosted, message: Restore, found: ReadBack | AftershockError) -> None:
        partition = hosted.partition
        if message.epoch != self._peers.epoch or not self._is_here(hosted):
            return
        if isinstance(found, UnreadableObject):
            self._tell(partition.number, Unreadable(partition.number, message.epoch, found.key))
            return
        if isinstance(found, AftershockError):
            raise found
        hosted.storing, hosted.unstored_since_s = 0, None
        if isinstance(partition.layout.element, Sink):
            self._open_outlet(hosted)
        partition.restore(message, *found)
        self._carry_out(hosted)
        self._active[partition.number] = None

    def _add_checkpoint_time(self, seconds: float) -> None:
        self._taking_s += seconds

    def _open_outlet(self, hosted: Hosted) -> None:
        """A new one for every epoch: another slot may have had it in between."""
        self._leave_outlet(hosted)
        hosted.outlet = outlet_of(self._job, hosted.partition.layout)

    def _leave_outlet(self, hosted: Hosted) -> None:
        """What it has yet to publish comes again, from the logs: it must not shut out whoever publishes that."""
        if hosted.outlet is not None:
            hosted.outlet.abandon()
            self._writing.submit(hosted.outlet.close, lambda _: None)

    # What partitions ask for.

    def _carry_out(self, hosted: Hosted) -> None:
        for effect in hosted.partition.take_effects():
            self._do(hosted, effect)

    def _do(self, hosted: Hosted, effect: PartitionEffect) -> None:
        match effect:
            case Send(frame):
                self._send(frame)
            case Grant(channel, epoch, frames):
                if epoch == self._peers.epoch:
                    self._grants[channel] += frames
            case Store():
                begun_s = time.monotonic()
                if hosted.unstored_since_s is None:
                    hosted.unstored_since_s = begun_s
                hosted.storing += 1
                self._storing.submit(
                    partial(self._write_all, effect), partial(self._on_stored, hosted, effect, begun_s)
                )
            case Write(batch):
                hosted.unwritten.append(batch)
                if not hosted.writing:
                    self._write(hosted)
            case Publish(number, batches):
                hosted.writing += 1
                self._writing.submit(
                    partial(_attempted, partial(hosted.outlet.publish, number, batches)),
                    partial(self._on_published, hosted, hosted.outlet, number),
                )
            case Tell(message):
                if isinstance(message, Stored):  # not all that the store takes: what builds on a refused one is lost
                    hosted.unstored_since_s = time.monotonic() if hosted.storing else None
                self._tell(hosted.partition.number, message)

    def _send(self, frame: Frame) -> None:
        """What a partition still sends that has yet to go back goes nowhere: nobody would listen."""
        if frame.epoch != self._peers.epoch:
            return
        receiver = self._layout.channels[frame.channel].receiver
        slot = self._slot_of(receiver)
        if slot == self._peers.mine:
            self._at(receiver, Partition.on_frame, frame)
        else:
            self._mesh.send(slot, encode(frame))

    def _give_credit(self) -> None:
        """Credit goes back all of a channel's at once."""
        grants, self._grants = self._grants, Counter()
        for channel, frames in grants.items():
            sender = self._layout.channels[channel].sender
            grant = Grant(channel, self._peers.epoch, frames)
            slot = self._slot_of(sender)
            if slot == self._peers.mine:
                self._at(sender, Partition.on_credit, grant)
            else:
                self._mesh.grant(slot, grant)

    def _slot_of(self, partition: int) -> int:
        return self._layout.partitions[partition].index % self._job.slots

    # In the background, and what comes of it.

    def _read_back(self, partition: Partition, message: Restore) -> ReadBack | AftershockError:
        """The objects and what the state becomes by them: a large one takes longer than a slot may be silent."""
        if message.epoch != self._peers.epoch:
            return Superseded(f"epoch {message.epoch} is over")
        keys = (*message.checkpoint.state_keys, *message.log_keys)
        try:
            objects = {key: self._store.get(key) for key in keys}
        except AftershockError as error:
            return error
        return objects, partition.rebuilt(message, objects)

    def _write_all(self, effect: Store) -> int | EnvironmentFailure:
        """The bytes written, or why the store refused. What an epoch that is over left to write is of no use."""
        written, begun_s = 0, time.thread_time()
        if effect.checkpoint.epoch != self._peers.epoch:
            return written
        try:
            for key, content in effect.objects.items():
                written += self._store.put(key, content())
        except EnvironmentFailure as error:
            return error
        self._storing_s += time.thread_time() - begun_s
        return written

    def _on_stored(self, hosted: Hosted, effect: Store, begun_s: float, written: int | EnvironmentFailure) -> None:
        partition, of = hosted.partition, effect.checkpoint
        if of.epoch != self._peers.epoch or not self._is_here(hosted):
            return
        hosted.storing -= 1
        if isinstance(written, EnvironmentFailure):
            self._at(partition.number, Partition.on_store_failed, of.epoch, of.number)
            return
        seconds = time.monotonic() - begun_s
        self._kept.append(Kept(partition.number, of.number, seconds, written, of.forced))
        self._at(partition.number, Partition.on_stored, of.epoch, of.number)

    def _write(self, hosted: Hosted) -> None:
        """Write all that has gathered while the last writing was under way."""
        batches, hosted.unwritten = hosted.unwritten, []
        hosted.writing += 1
        self._writing.submit(
            partial(_attempted, partial(hosted.outlet.write, batches)), partial(self._on_written, hosted)
        )

    def _on_written(self, hosted: Hosted, failure: AftershockError | None) -> None:
        hosted.writing -= 1
        if not self._is_here(hosted):
            return
        if failure is not None:
            raise failure
        if hosted.unwritten:
            self._write(hosted)
        self._active[hosted.partition.number] = None

    def _on_published(self, hosted: Hosted, outlet: Outlet, number: int, failure: AftershockError | None) -> None:
        """An outlet that was left may fail: what it had to publish comes again."""
        hosted.writing -= 1
        if not self._is_here(hosted):
            return
        if failure is None:
            self._at(hosted.partition.number, Partition.on_published, number)
        elif hosted.outlet is outlet:
            raise failure

    def _is_here(self, hosted: Hosted) -> bool:
        """Whether it is of this session: what an earlier one began ends no later one."""
        return self._hosted.get(hosted.partition.number) is hosted


def _attempted(act: Callable[[], None]) -> AftershockError | None:
    try:
        act()
    except AftershockError as error:
        return error
    return None
