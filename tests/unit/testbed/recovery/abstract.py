"""Workers without data: what a partition knows of its life, its checkpoints and its channels, and no more.

A partition follows orders as `BatchedPartition` does.
"""

from __future__ import annotations

from typing import NamedTuple

from testbed.core.control import Failure, Go, Rejoin, Stable, Waiting
from testbed.core.dataflow.layout import PartitionLayout
from tests.unit.testbed.recovery.asked import Back


class Wrong(AssertionError):
    """An invariant does not hold."""


class In(NamedTuple):
    """The receiving end of a channel: its epoch, and the partition's checkpoint when that epoch began here."""

    epoch: int
    had: int


class Out(NamedTuple):
    """The sending end of a channel.

    epoch   of what is sent
    held    whether it waits for Go
    down    whether the receiver is known to have failed
    since   all after the checkpoint with this number is sent in this epoch
    """

    epoch: int
    held: bool
    down: bool
    since: int

    @property
    def sends(self):
        return not self.held and not self.down


class Life(NamedTuple):
    """A partition on a worker.

    began  the checkpoint to which it was restored
    at     the last checkpoint that it took
    kept   all that was sent since the checkpoint with this number is retained
    """

    epoch: int
    runs: bool
    began: int
    at: int
    kept: int
    ins: tuple[In, ...]
    outs: tuple[Out, ...]


def restored(layout: PartitionLayout, order: Back) -> Life:
    """A partition that is back at a checkpoint."""
    at = order.number
    ins, outs = In(order.epoch, at), Out(order.epoch, False, False, at)
    return Life(order.epoch, False, at, at, at, (ins,) * len(layout.inputs), (outs,) * len(layout.outputs))


def followed(layout: PartitionLayout, life: Life, order) -> Life:
    """The partition after any order but `Restore`. Raises `Wrong` if it can't be followed."""
    match order:
        case Rejoin():
            return _rejoined(layout, life, order)
        case Go(epoch) if epoch != life.epoch:
            outs = (each._replace(held=each.held and each.epoch != epoch) for each in life.outs)
            return life._replace(outs=tuple(outs))
        case _ if order.epoch != life.epoch:
            return life
        case Go():
            return life._replace(runs=True)
        case Failure(_, partitions):
            outs = (
                each._replace(down=each.down or channel.receiver in partitions)
                for channel, each in zip(layout.outputs, life.outs, strict=True)
            )
            return life._replace(outs=tuple(outs))
        case Stable(_, number):
            if number > life.at:
                raise Wrong(f"{layout.name} lets go what is before checkpoint {number} and has taken {life.at}")
            return life._replace(kept=max(life.kept, number))
        case Waiting():  # it sends the same, at another time
            return life
    raise Wrong(f"{layout.name} is told {order}")


def _rejoined(layout, life, order):
    if order.outputs and not life.kept <= order.number <= life.at:
        raise Wrong(f"{layout.name} retains from {life.kept} to {life.at} and is told {order}")
    ins = (
        In(order.epoch, life.at) if channel.id in order.inputs else each
        for channel, each in zip(layout.inputs, life.ins, strict=True)
    )
    outs = (
        Out(order.epoch, True, False, order.number) if channel.id in order.outputs else each
        for channel, each in zip(layout.outputs, life.outs, strict=True)
    )
    return life._replace(ins=tuple(ins), outs=tuple(outs))
