"""The checkpoints and logs of one partition: made, kept until they are stored, and read again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from typing import Any, TypeAlias

import pyarrow as pa

from testbed.core.checkpoints import NO_BATCH, OUTSIDE, Checkpoint
from testbed.core.control import NotStored, Restore, Stored
from testbed.core.dataflow.layout import PartitionLayout
from testbed.core.effects import Store
from testbed.core.frames import Frame, decode_log, log_parts
from testbed.core.partition.readings import Reading
from testbed.core.seal import Piece
from testbed.operators import START_OF_TIME_NS, Sink, Source
from testbed.operators.state import Changes, State, decode_state, encode_state

_Changed: TypeAlias = tuple[str, Changes]  # a state's name, and what changed in it

LONGEST_REST = 32  # looks


@dataclass
class Log:
    """What a partition logs: what it read if it is a source, otherwise what it sent, or received if it is a sink."""

    frames: list[Frame] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.frames or self.readings)

    def __add__(self, later: Log) -> Log:
        return Log(self.frames + later.frames, self.readings + later.readings)


@dataclass
class Core:
    """What every partition must remember besides its operator's state.

    sent, received   the last data's number on each channel
    watermarks       of the input channels, but for those of a cycle
    position, ended  of a source: where it reads on, and whether it has read everything
    batch, skipped   by batches: the last one, and of a source how many records from `position` on it has
    last             and whether nothing but the end of the input follows
    """

    sent: dict[int, int]
    received: dict[int, int]
    watermarks: dict[int, int]
    watermark_ns: int = START_OF_TIME_NS
    position: int = 0
    ended: bool = False
    protocol: Any = None
    batch: int = NO_BATCH
    skipped: int = 0
    last: bool = False


@dataclass
class _Pending:
    """A checkpoint on its way to the store, with what its log holds.

    lost        whether it builds on one that the store has refused for good
    refusals    how often the store has refused it, if it is asked again until it takes it
    rest        how many more times it is passed over before it is asked again
    under_way   whether the store has yet to answer
    """

    checkpoint: Checkpoint
    log: Log
    effect: Store
    lost: bool = False
    refusals: int = 0
    rest: int = 0
    under_way: bool = True

    @property
    def waits(self) -> bool:
        """Whether it is not in the store."""
        return self.under_way or self.refusals > 0


class Snapshots:
    """Checkpoints are numbered from 1; the objects are `PARTITION/state-NUMBER-EPOCH` and `PARTITION/log-NUMBER-EPOCH`.

    The first has the whole state. Each other one builds on at most `changes_per_full` before it, the first among them,
    and has what changed since the last of these. If there are more, it takes the place of the last one, and then of
    each one before that has no more changes than are merged already. So the whole is written again only when as much
    has changed, and a change is written again a few times.

    The log holds what was sent since the checkpoint before, or what a sink received and has not published. That of a
    source holds what it read instead of what it sent.
    """

    def __init__(self, layout: PartitionLayout, changes_per_full: int) -> None:
        self._layout, self._changes_per_full = layout, changes_per_full
        self._is_source = isinstance(layout.element, Source)
        self._pending: dict[int, _Pending] = {}

    def restore(self, message: Restore) -> None:
        """Go on from this checkpoint; what was under way is forgotten."""
        self.last = message.checkpoint.number
        self._chain = message.checkpoint.state_keys
        self._log = Log()
        self._pending = {}
        self._unpublished: dict[int, list[Frame]] = {}

    def fill(self, message: Restore, states: dict[str, State], objects: Mapping[str, bytes]) -> Core:
        """Fill the empty states and return the rest; changes nothing else."""
        if not message.checkpoint.state_keys:
            inputs, outputs = self._layout.inputs, self._layout.outputs
            marks = {each.id: START_OF_TIME_NS for each in inputs if not each.on_cycle}
            return Core({each.id: 0 for each in outputs}, {each.id: 0 for each in inputs}, marks)
        for key in message.checkpoint.state_keys:
            parts = decode_state(objects[key])
            core: Core = next(parts)
            for name, piece in parts:
                states[name].apply(piece)
            for state in states.values():
                state.end_span()
        return core

    def replayed(self, message: Restore, objects: Mapping[str, bytes], schemas: Sequence[pa.Schema]) -> Iterator[Frame]:
        """The data to send again; of a source nothing. What a sink has yet to publish is put aside instead."""
        for key in () if self._is_source else message.log_keys:
            frames = decode_log(objects[key], schemas)
            if isinstance(self._layout.element, Sink):
                self._unpublished[_number(key)] = frames
            else:
                yield from frames

    def reread(self, message: Restore, objects: Mapping[str, bytes]) -> Iterator[Reading]:
        """What a source has to read and send again, from the first of which something has not arrived."""
        for key in message.log_keys if self._is_source else ():
            (readings,) = decode_state(objects[key])
            for reading in readings:
                if any(last > message.arrived[channel] for channel, last in reading.last.items()):
                    yield reading

    def begin_reading(self, reading: Reading) -> None:
        """What a source sends from now on, until the next call, is of this reading."""
        self._reading = reading

    def log(self, frame: Frame) -> None:
        """Data that was sent."""
        if not self._is_source:
            self._log.frames.append(frame)
            return
        if not self._reading.last:
            self._log.readings.append(self._reading)
        self._reading.add(frame)

    def hold(self, frame: Frame) -> None:
        """Output of a sink that waits until it can't be undone."""
        self._log.frames.append(frame)

    def take(self, core: Core, states: dict[str, State], epoch: int, number: int, forced: bool) -> Store:
        """A checkpoint of the present state. `core` is written later, so it must not be changed after this call."""
        self.last = number
        kept = self._kept(states)
        changed = [(name, state.changes(kept)) for name, state in states.items()]
        stem = f"{self._layout.name}/{{}}-{self.last}-{epoch}"
        key = stem.format("state")
        self._chain = (*self._chain[:kept], key)
        log, self._log = self._log, Log()
        log_key = stem.format("log") if log else None
        checkpoint = Checkpoint(
            self._layout.number,
            self.last,
            epoch,
            core.sent,
            core.received,
            self._chain,
            log_key,
            self._logged(log),
            forced,
            core.position,
            last=core.last,
        )
        objects: dict[str, Callable[[], Iterable[Piece]]] = {key: partial(self._encoded, core, changed)}
        if log_key is not None:
            objects[log_key] = partial(self._encoded_log, log)
        return self._on_its_way(checkpoint, log, objects)

    def _on_its_way(self, checkpoint: Checkpoint, log: Log, objects: dict[str, Callable[[], Iterable[Piece]]]) -> Store:
        """A checkpoint is on its way to the store from now on."""
        effect = Store(checkpoint, objects)
        self._pending[checkpoint.number] = _Pending(checkpoint, log, effect)
        return effect

    def pass_over(self, states: dict[str, State], number: int) -> None:
        """Take no checkpoint where this one is due; the next one that is taken is whole."""
        self.last, self._chain, self._log = number, (), Log()
        for state in states.values():
            state.forget()

    def on_stored(self, epoch: int, number: int) -> list[Stored | NotStored]:
        """The store has the objects of a checkpoint. It counts once those of all earlier ones are there, too."""
        stored = self._pending[number]
        stored.under_way, stored.refusals = False, 0
        settled = list(takewhile(lambda each: not self._pending[each].waits, self._pending))
        return [self._settle(epoch, each) for each in settled]

    def on_store_failed(self, epoch: int, number: int) -> list[NotStored]:
        """What was taken since builds on this one, so it is lost too; the next is whole and has all their logs. But if
        no later one makes up for it, it is neither lost nor told: the store is asked again.

        What builds on one that was lost already is lost already. The whole one after that does not build on it.
        """
        failed = self._pending[number]
        if self._is_asked_again and not failed.lost:
            failed.refusals, failed.under_way = failed.refusals + 1, False
            failed.rest = min(2 ** (failed.refusals - 1), LONGEST_REST)
            return []
        del self._pending[number]
        if not failed.lost:
            later = [each for each in self._pending.values() if not each.lost]
            for each in later:
                each.lost = True
            self._log = sum((each.log for each in later), start=failed.log) + self._log
            self._chain = ()
        return [NotStored(self._layout.number, epoch, number)]

    def ask_again(self) -> list[Store]:
        """Time to look whether the store is to be asked again for what it has refused. Its objects are as they were.

        The more often it has refused, the more seldom it is asked: a whole state is written each time.
        """
        refused = [each for each in self._pending.values() if each.refusals and not each.under_way]
        for each in refused:
            each.rest -= 1
            each.under_way = each.rest <= 0
        return [each.effect for each in refused if each.under_way]

    @property
    def _is_asked_again(self) -> bool:
        """Whether the store is asked again for a checkpoint that it refuses: no later one makes up for the last."""
        return any(each.checkpoint.last for each in self._pending.values())

    def _settle(self, epoch: int, number: int) -> Stored | NotStored:
        """The store has this checkpoint, and all on which it builds unless one of them was lost."""
        pending = self._pending.pop(number)
        if pending.lost:
            return NotStored(self._layout.number, epoch, number)
        if isinstance(self._layout.element, Sink) and pending.log:
            self._unpublished[number] = pending.log.frames
        return Stored(epoch, pending.checkpoint)

    def take_publishable(self, number: int) -> list[tuple[int, list[Frame]]]:
        """What a sink may publish now that this checkpoint is stable, by checkpoint and in order."""
        numbers = sorted(each for each in self._unpublished if each <= number)
        return [(each, self._unpublished.pop(each)) for each in numbers]

    @property
    def holds_output(self) -> bool:
        """Whether this is a sink with output that is not published."""
        waiting = (self._log, self._unpublished, *(each.log for each in self._pending.values()))
        return isinstance(self._layout.element, Sink) and any(waiting)

    def _kept(self, states: dict[str, State]) -> int:
        """On how many of the objects of the last checkpoint the next one builds."""
        count = len(self._chain)
        if count <= self._changes_per_full:
            return count
        sizes = [sum(state.sizes[number] for state in states.values()) for number in range(count)]
        size = sum(state.changed for state in states.values()) + sizes[-1]
        count -= 1
        while count and sizes[count - 1] <= size:
            count, size = count - 1, size + sizes[count - 1]
        return count

    def _encoded(self, core: Core, changed: list[_Changed]) -> Iterator[Piece]:
        """A checkpoint's core, then of every state its name with each piece of what changed."""
        yield encode_state(self._layout.name, core)
        for name, changes in changed:
            for piece in changes.pieces():
                yield encode_state(self._layout.name, (name, piece))

    def _encoded_log(self, log: Log) -> Iterable[Piece]:
        return [encode_state(self._layout.name, log.readings)] if self._is_source else log_parts(log.frames)

    def _logged(self, log: Log) -> dict[int, int]:
        if isinstance(self._layout.element, Sink):
            return {OUTSIDE: self.last} if log else {}
        if self._is_source:
            return {channel: last for reading in log.readings for channel, last in reading.last.items()}
        return {frame.channel: frame.sequence for frame in log.frames}


def _number(key: str) -> int:
    return int(key.rsplit("-", 2)[1])
