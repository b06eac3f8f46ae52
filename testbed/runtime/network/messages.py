"""The messages between a slot and the coordinator's server, besides the messages of partitions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import get_args

from testbed.core.shapes import decode_as, encode_as
from testbed.runtime.network.admission import Greeting
from testbed.runtime.network.wire import Address
from testbed.runtime.stillness import Counts

SLOT = Greeting(b"AS-SLOT\n")  # begins every connection to the coordinator's server
LONGEST_ERROR = 1000


@dataclass(frozen=True)
class Hello:
    """A slot offers itself: where the others reach it, and which Spark task it is, on its so manieth attempt."""

    address: Address
    task: int
    attempt: int


@dataclass(frozen=True)
class Peers:
    """A recovery begins.

    addresses  of the worker in every seat (`core.coordinator.placement`), slots first; None where there is none
    workers    their serial numbers, which never come again; 0 where there is none
    mine       which seat is yours; -1 for one that has none
    restored   the partitions that roll back; the others go on
    moved      the seats of the partitions that are not in their slot
    copies     the seats of the copies, by partition
    reached    for each partition that rolls back or is promoted, how far it has ever been, if that is known
               (`partition_status.progress`); empty at the first start
    void       those of both that do not come back in this epoch: they were lost again before anybody was told
    """

    epoch: int
    addresses: tuple[Address | None, ...]
    workers: tuple[int, ...]
    mine: int
    restored: tuple[int, ...]
    moved: dict[int, int] = field(default_factory=dict)
    copies: dict[int, int] = field(default_factory=dict)
    reached: dict[int, dict[int, int]] = field(default_factory=dict)
    void: tuple[int, ...] = ()


NOBODY = Peers(-1, (), (), -1, ())


@dataclass(frozen=True)
class Broken:
    """The connection to another slot broke in this epoch."""

    epoch: int
    slot: int


@dataclass(frozen=True)
class Stop:
    """The run is over."""


@dataclass(frozen=True)
class Drain:
    """The run shall end: sources stop, say where they are, and once they are told where they end, read up to there.

    ends   by the partition of the input the position at which all sources of it end; empty before that is known
    """

    ends: dict[int, int]


@dataclass(frozen=True)
class Count:
    """An order in a dataflow with a cycle: report what you count from now on, under this number."""

    number: int


@dataclass(frozen=True)
class Kept:
    """A checkpoint was stored: how long from the moment that it was taken [s], its size, and how long ago it was taken
    [s]."""

    partition: int
    number: int
    seconds: float
    size_bytes: int
    forced: bool
    age_s: float = 0.0


@dataclass(frozen=True)
class Refused:
    """The store refused a checkpoint, for this reason."""

    partition: int
    number: int
    error: str


@dataclass(frozen=True)
class Loaded:
    """A restored partition has its state again: how long reading and rebuilding it took [s], the size of what was read,
    and how long ago that was [s]."""

    partition: int
    epoch: int
    seconds: float
    size_bytes: int
    age_s: float


@dataclass(frozen=True)
class Reached:
    """A restored partition has reached its earlier progress: what it has processed since it was restored, and how long
    ago it reached it [s]. A source reports the positions that it has read (records of a topic), and no bytes."""

    partition: int
    epoch: int
    records: int
    size_bytes: int
    age_s: float


@dataclass(frozen=True)
class Cost:
    """What a partition has taken since the slot has it.

    muted           whether it is a copy
    processing_s    CPU time of its turns, without checkpoints [s]
    checkpoint_s    CPU time for taking and writing its checkpoints [s]
    records         that it has processed; of a source, that it has emitted
    input_bytes     of a copy: size of the messages that have come for it; none come for that of a source
    retained_bytes  size of the output that it keeps in memory for others that may need it again
    """

    muted: bool
    processing_s: float
    checkpoint_s: float
    records: int
    input_bytes: int
    retained_bytes: int


@dataclass(frozen=True)
class SlotStatus:
    """A sign of life, with what the slot's partitions have counted.

    tallies    by partition the counts of `counts_and_watermarks.Tally`
    positions  of sources: where they read on
    copied     of copies of sources: where they read on
    finished   the sinks that hold nothing back, and have seen the end of everything unless a cycle hides it
    ended      whether its sources have read everything
    caught_up  whether its partitions are where they were before they were restored
    holding    whether its sources have stopped, to hear where they end
    kept       the checkpoints that were stored since the last status
    refused    the checkpoints that the store refused since the last status
    progress   by partition how far it has come (`partition_status.progress`)
    loaded     the restored partitions that got their state since the last status
    reached    the restored partitions that came as far as they ever were since the last status
    counts     of a dataflow with a cycle: what tells its end
    logs       by partition that keeps an output log, and does not roll back just now, what that has and costs
               (`TimedLoggedPartition.counts_of_log`)
    costs      of all partitions, copies too
    sent_bytes what the slot has sent to others, in frames
    cpu_s      CPU time of its process
    idle_s     time in which it had nothing to do
    store_s    how long the store has been at what the slot has asked it for; 0 if that is nothing
    checkpoint_s  time of its own thread in taking checkpoints, and CPU time of the one that writes them
    """

    epoch: int
    tallies: dict[int, dict[str, int]] = field(default_factory=dict)
    positions: dict[int, int] = field(default_factory=dict)
    finished: tuple[int, ...] = ()
    kept: tuple[Kept, ...] = ()
    sent_bytes: int = 0
    cpu_s: float = 0.0
    idle_s: float = 0.0
    checkpoint_s: float = 0.0
    ended: bool = False
    caught_up: bool = False
    holding: bool = False
    counts: Counts = field(default_factory=Counts)
    copied: dict[int, int] = field(default_factory=dict)
    progress: dict[int, dict[int, int]] = field(default_factory=dict)
    loaded: tuple[Loaded, ...] = ()
    reached: tuple[Reached, ...] = ()
    logs: dict[int, dict[str, float]] = field(default_factory=dict)
    costs: dict[int, Cost] = field(default_factory=dict)
    refused: tuple[Refused, ...] = ()
    store_s: float = 0.0


@dataclass(frozen=True)
class SlotError:
    """Why a slot ends. It may be sent without a hello."""

    error: str


def printable(text: str) -> str:
    """A text that can be written anywhere, and is not too long. That of an error may quote a path that is no text."""
    return text.encode(errors="backslashreplace").decode()[:LONGEST_ERROR]


SlotMessage = Hello | Peers | Broken | Stop | Drain | Count | SlotStatus | SlotError
_KINDS: dict[str, type[SlotMessage]] = {kind.__name__: kind for kind in get_args(SlotMessage)}


def encode(message: SlotMessage) -> bytes:
    """The message in JSON, as `decode` reads it."""
    return encode_as(message)


def decode(data: bytes) -> SlotMessage:
    """The message that `encode` made bytes of; raises `UnknownMessage` for anything else."""
    return decode_as(_KINDS, data)
