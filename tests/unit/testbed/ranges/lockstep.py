"""Each partition of a simulated run twice: as it works with ranges, and one message after the other.

Every event of a partition is given to both; one of them gets a range as single messages. Effects and state are compared
after every event: numbers, credit, piggybacks, checkpoints and their logs, what is told and put out, and the state.
Equal outputs mean that the coordinator hears the same, so its recovery lines are those of a run one by one.
"""

from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pyarrow as pa

from testbed.core.effects import Grant, Publish, Send, Store, Tell, Write
from testbed.core.frames import decode_log, log_parts
from testbed.core.partition.partition import Partition, PartitionLimits
from testbed.core.ranges import message
from testbed.operators import Join, Sink, Source
from testbed.operators.state import decode_state
from testbed.protocols import PROTOCOLS
from testbed.simulation import Simulation
from tests.unit.testbed.runs import faults
from tests.unit.testbed.small_flows import laid_out

EVENTS = (
    *("leave", "on_order", "on_credit", "on_input", "on_progress", "on_timer"),
    *("on_stored", "on_store_failed", "on_published"),
)


class Differs(AssertionError):
    """With ranges something else came about than one by one."""


def singles(frame):
    """The messages of a frame, each by itself."""
    return [message(frame, index) for index in range(frame.messages)] if frame.is_range else [frame]


class InLockstep(Partition):
    """Works with ranges; `single` gets the same, message by message, and has as much credit."""

    def __init__(self, layout, partitions, schemas, protocol, limits):
        one_by_one = replace(limits, messages_in_range=1, frames_in_flight=limits.frames_in_flight * limits.in_range)
        self.single = Partition(layout, partitions, schemas, protocol, one_by_one)
        self._rows_sent = [defaultdict(Counter), defaultdict(Counter)]
        self.longest = 0  # of the ranges that it has processed
        super().__init__(layout, partitions, schemas, protocol, limits)

    def restore(self, message, objects, rebuilt=None):
        for rows in self._rows_sent:
            rows.clear()
        super().restore(message, objects, rebuilt)
        logs = {key: objects[key] for key in message.log_keys if not isinstance(self.layout.element, Source)}
        apart = {key: b"".join(log_parts(self._messages(log))) for key, log in logs.items()}
        self.single.restore(message, {**objects, **apart}, rebuilt)
        self._compare()

    def on_frame(self, frame):
        super().on_frame(frame)
        for each in singles(frame):
            self.single.on_frame(each)
        self._compare()

    def step(self, channel):
        messages = self.intake.head(channel).messages
        self.longest = max(self.longest, messages)
        super().step(channel)
        for _ in range(messages):
            self.single.step(channel)
        self._compare()

    def take_effects(self):
        mine, others = super().take_effects(), self.single.take_effects()
        for effects, rows in zip((mine, others), self._rows_sent, strict=True):
            for frame in (effect.frame for effect in effects if isinstance(effect, Send)):
                rows[frame.channel].update(rows_of([frame]))
        same("sent", *(self._sent(effects) for effects in (mine, others)))
        if isinstance(self.layout.element, Join):
            same("rows sent", *(self._rows(*each) for each in zip((self, self.single), self._rows_sent, strict=True)))
        same("credit given", *map(granted, (mine, others)))
        same("told", *(of_kind(effects, Tell) for effects in (mine, others)))
        same("written", *(rows_out(of_kind(effects, Write)) for effects in (mine, others)))
        same("published", *(published(effects) for effects in (mine, others)))
        same("stored", *(self._stored(effects) for effects in (mine, others)))
        return mine

    def _messages(self, log):
        return [each for frame in decode_log(log, self._schemas) for each in singles(frame)]

    def _sent(self, effects):
        """By channel what was sent; of a join without its rows, which a range may bring in another order."""
        found = defaultdict(list)
        for effect in of_kind(effects, Send):
            found[effect.frame.channel] += map(self._content, singles(effect.frame))
        return found

    def _content(self, frame):
        rows = None if isinstance(self.layout.element, Join) else rows_of([frame])
        return frame.kind, frame.epoch, frame.channel, frame.sequence, frame.watermark_ns, frame.piggyback, rows

    def _rows(self, partition, sent):
        """By channel every row that was sent or waits, in any order."""
        links = partition.sending._links
        return {channel: sent[channel] + Counter(rows_of(link.waiting)) for channel, link in links.items()}

    def _stored(self, effects):
        found = []
        for store in of_kind(effects, Store):
            objects = {key: b"".join(make()) for key, make in store.objects.items()}
            core = next(decode_state(objects[store.checkpoint.state_keys[-1]]))
            log = objects.get(store.checkpoint.log_key)
            found.append((store.checkpoint, objects.keys(), core_of(core), log and self._log(log)))
        return found

    def _log(self, log):
        if isinstance(self.layout.element, Source):
            return list(decode_state(log))
        messages = sorted(self._messages(log), key=lambda each: (each.channel, each.sequence))
        exact = isinstance(self.layout.element, Sink)
        return [self._content(each) for each in messages], rows_of(messages) if exact else Counter(rows_of(messages))

    def _compare(self):
        for name, look in LOOKS.items():
            same(name, look(self), look(self.single))


def happen_to_both(kind, twin, events):
    """Let these events of a partition of this kind happen to its twin as well, and compare the two after each."""
    for name in events:
        setattr(kind, name, _both(getattr(Partition, name), twin))


def _both(real, twin):
    def happens(self, *arguments):
        real(self, *arguments)
        real(getattr(self, twin), *arguments)
        self._compare()

    return happens


happen_to_both(InLockstep, "single", EVENTS)

LOOKS = {
    "sent up to": lambda partition: partition.sending.sent,
    "received up to": lambda partition: partition.intake.received,
    "event time": lambda partition: (partition.watermarks.of_channels, partition.watermarks.current_ns),
    "credit": lambda partition: {channel: link.credit for channel, link in partition.sending._links.items()},
    "channels that are ready": lambda partition: partition.ready_channels(),
    "input": lambda partition: (partition.source_input.span, partition.wants_input, partition.idle, partition.repeats),
    "counts": lambda partition: replace(partition.tally, data_bytes=0),  # a slice may be written with a bitmap more
    "knowledge of the protocol": lambda partition: plain(partition._protocol.snapshot()),
    "state": lambda partition: {name: state.content() for name, state in states(partition).items()},
}


def states(partition):
    """None of one that a recovery has stopped."""
    return partition.processing.states if partition.processing.is_restored else {}


def core_of(core):
    return {name: plain(value) if name == "protocol" else value for name, value in vars(core).items()}


def plain(snapshot):
    """What a protocol remembers, as values that compare: its arrays as lists."""
    if isinstance(snapshot, tuple):
        return tuple(map(plain, snapshot))
    return snapshot.tolist() if isinstance(snapshot, np.ndarray) else snapshot


def same(what, mine, others):
    if mine != others:
        raise Differs(f"{what}: {mine} with ranges, {others} one by one")


def of_kind(effects, kind):
    return [effect for effect in effects if isinstance(effect, kind)]


def rows_out(batches):
    found = [each.batch if isinstance(each, Write) else each for each in batches]
    return [row for batch in found for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)]


def rows_of(frames):
    return rows_out([frame.batch for frame in frames if frame.batch is not None])


def granted(effects):
    found = Counter()
    for grant in of_kind(effects, Grant):
        found[grant.channel, grant.epoch] += grant.messages
    return found


def published(effects):
    return [(effect.number, rows_out(effect.batches)) for effect in of_kind(effects, Publish)]


class LockstepSimulation(Simulation):
    """A run whose partitions are in lockstep with themselves one by one."""

    def _partition(self, number):
        layout, count = self.layout.partitions[number], len(self.layout.partitions)
        made = InLockstep(layout, count, self._schemas, self.protocol, self._limits)
        self.made = [*getattr(self, "made", []), made]
        return made


def in_lockstep(flow, protocol, seed, **options):
    """A run, not yet begun, with limits and batches of the seed, and its faults unless others are given."""
    rng = np.random.default_rng(seed)
    layout, inputs = laid_out(flow)
    given = {source: [cut_anew(batches, rng) for batches in of] for source, of in inputs.items()}
    limits = PartitionLimits(
        frames_in_flight=int(rng.integers(1, 3)),
        records_per_message=1,
        messages_in_range=int(rng.choice([2, 3, 5, 1024])),
        changes_per_full=2,
    )
    options.setdefault("faults", faults(flow, protocol, seed))
    return LockstepSimulation(layout, PROTOCOLS[protocol], given, seed, limits=limits, **options)


def cut_anew(batches, rng):
    """The same records in other batches, of which few are long."""
    (whole,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    ends = sorted({whole.num_rows, *rng.integers(1, whole.num_rows, 3).tolist()})
    return [whole.slice(start, end - start) for start, end in zip([0, *ends], ends, strict=False)]
