"""Simulated runs in which what returns on a cycle goes to the store, with a check of what is left in memory."""

from collections import defaultdict
from dataclasses import replace
from itertools import chain

import numpy as np

from testbed.core.control import Unreadable, decode_message
from testbed.core.effects import Send, Store, Tell
from testbed.core.partition.partition import Partition, PartitionLimits
from testbed.core.segments import held_bytes
from testbed.operators import Delivery
from testbed.operators.state import decode_state
from testbed.protocols import PROTOCOLS
from testbed.simulation import Simulation
from testbed.simulation.faults import spoil
from tests.unit.testbed.ranges.lockstep import (
    EVENTS,
    LOOKS,
    Differs,
    core_of,
    happen_to_both,
    of_kind,
    published,
    rows_of,
    same,
)
from tests.unit.testbed.runs import faults
from tests.unit.testbed.small_flows import laid_out

WAITING = "/waiting-"
SPOILS, MOST_SPOILT = 0.2, 2  # share of answers of the store after which one is spoilt, and how many at most


class TooMuchWaits(AssertionError):
    """More of what returns on a cycle is in memory than may be, or something of it is left in the store."""


def limits_of(seed):
    """Little credit, and little memory or none: on a channel one frame is next, and each other a segment."""
    rng = np.random.default_rng(seed)
    return PartitionLimits(
        frames_in_flight=int(rng.integers(1, 3)),
        records_per_message=int(rng.integers(1, 3)),
        messages_in_range=int(rng.choice([1, 2])),
        changes_per_full=2,
        returning_bytes=int(rng.choice([1, 30_000])),
    )


def in_memory(partition):
    """The frames in memory that wait on channels that close a cycle."""
    sending = partition.sending
    upcoming = [link.waiting for link in sending._links.values() if link.channel.returning]
    segments = [segment.frames or () for of in sending._overflow._segments.values() for segment in of]
    return [*chain.from_iterable(upcoming), *chain.from_iterable(segments)]


class SpillingSimulation(Simulation):
    """A run that checks memory whenever a partition has processed something, and what is in the store at the end."""

    def _step(self, worker, partition, channel):
        most, before = self._most(partition), held(partition)
        super()._step(worker, partition, channel)
        if held(partition) > before > most:
            raise TooMuchWaits(f"{partition.layout.name}: {before} bytes waited in memory, {most} may, and more came")

    def _most(self, partition):
        """What may be in memory before a step. On each channel a frame may be too much for what is next."""
        channels = sum(channel.returning for channel in partition.outputs)
        return self._limits.returning_bytes + channels * max(map(held_bytes, in_memory(partition)), default=0)

    def run(self, most_steps=60_000):
        outcome = super().run(most_steps)
        lives = {(each.layout.name, each.epoch) for worker in self.workers for each in worker.partitions.values()}
        for key in self._waiting_objects():
            owner, _, rest = key.partition(WAITING)
            if (owner, int(rest.rsplit("-", 1)[1])) in lives:
                raise TooMuchWaits(f"{key} is left in the store")
        return outcome

    def _waiting_objects(self):
        return {key for key in self.store.objects if WAITING in key}


def held(partition):
    return sum(map(held_bytes, in_memory(partition)))


def spilling(flow, protocol, seed, kind=SpillingSimulation, **options):
    """A run, not yet begun, with limits and faults of its seed unless others are given."""
    delivery = Delivery.PLAIN if protocol == "none" else Delivery.EXACTLY_ONCE
    layout, inputs = laid_out(flow, delivery)
    options.setdefault("faults", () if protocol == "none" else faults(flow, protocol, seed))
    options.setdefault("limits", limits_of(seed))
    return kind(layout, PROTOCOLS[protocol], inputs, seed, **options)


class InLockstep(Partition):
    """Spills; `whole` gets the same input and has memory for everything.

    What leaves here has left `whole` before or at the same time, under the same number and with the same content.
    Everything else is equal: state, numbers, protocol, checkpoints, logs, and what is told and put out.
    """

    def __init__(self, layout, partitions, schemas, protocol, limits, ample):
        self.whole = Partition(layout, partitions, schemas, protocol, ample)
        self.ahead = defaultdict(list)
        super().__init__(layout, partitions, schemas, protocol, limits)

    def restore(self, message, objects, rebuilt=None):
        self.ahead.clear()
        super().restore(message, objects, rebuilt)
        self.whole.restore(message, objects, rebuilt)
        self._compare()

    def take_effects(self):
        mine, others = super().take_effects(), self.whole.take_effects()
        for frame in sent(others):
            self.ahead[frame.channel] += messages(frame)
        for frame in sent(mine):
            found = messages(frame)
            expected, self.ahead[frame.channel] = cut_at(self.ahead[frame.channel], len(found))
            same(f"sent on channel {frame.channel}", found, expected)
        same("told", *(told(effects) for effects in (mine, others)))
        same("published", *(published(effects) for effects in (mine, others)))
        same("stored", *(self._stored(effects) for effects in (mine, others)))
        return mine

    def _stored(self, effects):
        found = []
        for store in of_kind(effects, Store):
            objects = {key: b"".join(make()) for key, make in store.objects.items()}
            core = next(decode_state(objects[store.checkpoint.state_keys[-1]]))
            found.append((store.checkpoint, core_of(core), objects.get(store.checkpoint.log_key)))
        return found

    def _compare(self):
        for name in ("sent up to", "received up to", "event time", "counts", "knowledge of the protocol", "state"):
            same(name, LOOKS[name](self), LOOKS[name](self.whole))
        if not set(self.ready_channels()) <= set(self.whole.ready_channels()):
            same("ready", self.ready_channels(), self.whole.ready_channels())


happen_to_both(InLockstep, "whole", (*EVENTS, "on_frame", "step"))


def told(effects):
    """What goes to the coordinator, but that an object is gone: `LockstepSimulation` looks at that."""
    return [each for each in of_kind(effects, Tell) if not isinstance(each.message, Unreadable)]


def sent(effects):
    return [effect.frame for effect in of_kind(effects, Send)]


def messages(frame):
    """Each message of a frame by number and content; a frame may be cut elsewhere."""
    rows = rows_of([frame])
    if not frame.is_range:
        return [(frame.epoch, frame.sequence, frame.watermark_ns, frame.piggyback, rows)]
    first = frame.sequence - frame.messages + 1
    return [(frame.epoch, first + at, frame.watermark_ns, frame.piggyback, [row]) for at, row in enumerate(rows)]


def cut_at(items, count):
    return items[:count], items[count:]


class LockstepSimulation(SpillingSimulation):
    """A run whose partitions are in lockstep with themselves without a limit."""

    def _partition(self, number):
        layout, count = self.layout.partitions[number], len(self.layout.partitions)
        ample = replace(self._limits, returning_bytes=1 << 40)
        return InLockstep(layout, count, self._schemas, self.protocol, self._limits, ample)

    def _message(self, worker):
        """A recovery deletes what lives before it have spilled, and they may still ask for it, but no other."""
        message = decode_message(worker.messages[0])
        gone = isinstance(message, Unreadable) and WAITING in message.key
        if gone and message.epoch == self.coordinator.lives[message.partition]:
            raise Differs(f"{message.key} is gone in the life that needs it")
        super()._message(worker)


class SpoilingSimulation(SpillingSimulation):
    """A run in which some objects with what waits have changed once they are stored."""

    spoilt = 0

    def _stored(self, worker):
        super()._stored(worker)
        if self.spoilt < MOST_SPOILT and self._random.random() < SPOILS:
            self.spoilt += spoil(self.store, self._waiting_objects(), self._random)
