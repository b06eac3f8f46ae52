"""The stored checkpoints, and the recovery lines that they make.

Checkpoint 0 of a partition is its empty state: it is always there and no object belongs to it. The words are those of
`models/checkpoint_graph.py`; counts of messages on channels stand here for the messages themselves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from testbed.core.dataflow.layout import Channel, Layout

OUTSIDE = -1
NO_BATCH = -(2**62)  # before the first (`by_batch`)


@dataclass(frozen=True)
class Checkpoint:
    """One checkpoint of one partition, without its content.

    sent, received   the last data's number on each channel, by the channel's number
    state_keys       the objects with the state: a full copy, then the changes after it
    log_key          the object with the data that was sent since the checkpoint before; None if nothing is logged
    logged           the last number in that log for each channel; what a sink has yet to publish is on `OUTSIDE`,
                     numbered as its checkpoints are
    position         of a source: where it reads on
    replays_from     the number of the checkpoint at whose border its input has to begin again, if that is an earlier
                     one than its own (`testbed.output_log`)
    lost             whether its state can't be read any more: where it is remains known
    last             by borders: whether the input of the partition has come to its end, so that its state at every
                     later border is this one
    """

    partition: int
    number: int
    epoch: int
    sent: dict[int, int]
    received: dict[int, int]
    state_keys: tuple[str, ...] = ()
    log_key: str | None = None
    logged: dict[int, int] = field(default_factory=dict)
    forced: bool = False
    position: int = 0
    replays_from: int | None = None
    lost: bool = False
    last: bool = False

    @property
    def input_from(self) -> int:
        """The number of the checkpoint at whose border its input begins again."""
        return self.number if self.replays_from is None else self.replays_from


Line = tuple[Checkpoint, ...]
Taken = Sequence[Sequence[Checkpoint]]


def initial_line(layout: Layout) -> Line:
    """The checkpoints with number 0."""
    return tuple(
        Checkpoint(each.number, 0, 0, {c.id: 0 for c in each.outputs}, {c.id: 0 for c in each.inputs})
        for each in layout.partitions
    )


def rollback_propagation(taken: Taken, channels: Sequence[Channel]) -> Line:
    """The latest line without an orphan: algorithm 1 of `checkmate` (Wang et al. 1995), by the counts on channels.

    A receiver that has received more than its sender has sent steps back, until there is none; as in the paper the
    latest checkpoints are tried first. The first checkpoints in `taken` must be consistent. Costs at most one step for
    each checkpoint, and each a look at its partition's channels.
    """
    around: dict[int, list[Channel]] = {number: [] for number in range(len(taken))}
    for channel in channels:
        around[channel.sender].append(channel)
    at = [len(each) - 1 for each in taken]
    pending = set(range(len(taken)))
    while pending:
        for channel in around[pending.pop()]:
            sent = taken[channel.sender][at[channel.sender]].sent[channel.id]
            while taken[channel.receiver][at[channel.receiver]].received[channel.id] > sent:
                at[channel.receiver] -= 1
                pending.add(channel.receiver)
    return tuple(each[i] for each, i in zip(taken, at, strict=True))


def last_common(taken: Taken, channels: Sequence[Channel]) -> Line:
    """The checkpoints of the last round that every partition has finished: aligned, so that nothing is in flight."""
    number = max(set.intersection(*({each.number for each in of} for of in taken)))
    return tuple(next(each for each in of if each.number == number) for of in taken)


def last_common_or_ended(taken: Taken, channels: Sequence[Channel]) -> Line:
    """The same by borders, where the last checkpoint of a partition whose input has ended stands for all later ones.

    Raises `ValueError` if there are none, as `last_common` does.
    """
    numbers = [{each.number for each in of} for of in taken]
    ends = [min((each.number for each in of if each.last), default=math.inf) for of in taken]
    for number in sorted(set().union(*numbers), reverse=True):
        if all(number in stored or end < number for stored, end in zip(numbers, ends, strict=True)):
            return tuple(each for of in taken if (each := at_border(of, number)) is not None)
    raise ValueError("no border has a checkpoint of every partition")


def at_border(taken: Sequence[Checkpoint], number: int) -> Checkpoint | None:
    """The checkpoint of a partition that it took at the border with this number, or that stands for it; None if there
    is none."""
    return next((each for each in taken if each.number == number or (each.last and each.number < number)), None)


def is_needed(log: Checkpoint, line: Line, channels: Sequence[Channel], published: int) -> bool:
    """Whether some data in the log of a checkpoint has not arrived before a line, or has yet to be published."""
    return any(
        last > (published if channel == OUTSIDE else line[channels[channel].receiver].received[channel])
        for channel, last in log.logged.items()
    )
