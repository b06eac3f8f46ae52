"""Invariants of tentative output in a simulated run."""

from __future__ import annotations

from experiments.errors import AftershockError
from testbed.core.by_batch.partition import BatchedPartition
from testbed.core.checkpoints import Checkpoint
from testbed.core.control import TurnedTentative
from testbed.core.dataflow.layout import Layout
from testbed.core.effects import PublishTentative
from testbed.core.frames import FrameKind
from testbed.operators import Sink


class TentativeBroken(AftershockError):
    """Something that is not exact is where only exact things may be, or the other way round."""


class TentativeChecks:
    """Told of what partitions do. Everything raises `TentativeBroken`.

    turned     how many lives of partitions have turned tentative
    batches    by sink partition the batches of which it has emitted tentative records
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._senders = [{channel.sender for channel in each.inputs} for each in layout.partitions]
        self._seen: set[tuple[int, int]] = set()
        self._exact_to: dict[tuple[int, int], int] = {}
        self._checkpoints: dict[tuple[int, int], tuple[dict[int, int], dict[int, int]]] = {}
        self._out: dict[tuple[int, int], int] = {}
        self._sinks = {each.number for each in layout.partitions if isinstance(each.element, Sink)}
        self._exact = set[tuple[int, int]]()
        self.turned = 0
        self.batches: set[tuple[int, int]] = set()

    def check(self, partition: BatchedPartition, informed: bool, down: frozenset[int], tentative: set[int]) -> None:
        """After every step, of a tentative partition; `tentative`: the others that are so.

        `informed`: whether no order is under way to it about that. Otherwise what it missed may be back.
        """
        if partition.sending.retained.has_other_than(FrameKind.DATA, FrameKind.BORDER):
            raise TentativeBroken(f"{partition.layout.name} retains what is tentative")
        life = partition.number, partition.epoch
        if life in self._seen:
            return
        self._seen.add(life)
        self.turned += 1
        if informed and not self._upstream(partition.number) & (down | tentative):
            raise TentativeBroken(f"{partition.layout.name} is tentative, and nothing that it depends on is missing")

    def on_turned(self, message: TurnedTentative) -> None:
        """A partition says that it is tentative."""
        self._exact_to[message.partition, message.epoch] = message.batch

    def check_checkpoint(self, partition: BatchedPartition, checkpoint: Checkpoint, last_batch: int) -> None:
        """A checkpoint is exact: every life of the partition has received and sent the same when it takes it.

        That of a sink may be stored when the sink has turned tentative since: it waits for output that it covers.
        """
        name = partition.layout.name
        if partition.tentative and last_batch >= self._exact_to[partition.number, partition.epoch]:
            raise TentativeBroken(f"{name} takes checkpoint {checkpoint.number} and is tentative")
        counts = checkpoint.sent, checkpoint.received
        if self._checkpoints.setdefault((checkpoint.partition, checkpoint.number), counts) != counts:
            raise TentativeBroken(
                f"{name} had received or sent something else at checkpoint {checkpoint.number} before"
            )

    def begins(self, number: int, epoch: int, out: int) -> None:
        """A life of a partition begins, when its exact output is published up to this number."""
        self._out[number, epoch] = out

    def promoted(self, copy: BatchedPartition) -> None:
        """A copy takes the place of its primary: the exact output of all that it has finished may be published."""
        finished = copy.intake.finished
        self._exact |= {each for each in self.batches if each[0] == copy.number and each[1] <= finished}

    def check_output(self, partition: BatchedPartition, effect: PublishTentative, heard: bool) -> None:
        """Tentative output comes from partitions that are tentative, and is of no batch that was out before this life.

        A sink need not know what another one emits that was taken for dead and goes on. `heard`: whether it is not
        itself one that was taken for dead. Then some later life has to finish the batch, even if an earlier one did:
        that one need not have put its output out.
        """
        name, batch = partition.layout.name, effect.batch
        if not partition.tentative:
            raise TentativeBroken(f"{name} is exact and puts out tentative records")
        if batch < self._out[partition.number, partition.epoch]:
            raise TentativeBroken(f"{name} puts out tentative records of batch {batch}, which is out")
        self.batches.add((partition.number, batch))
        if heard:
            self._exact.discard((partition.number, batch))

    def on_exact(self, partition: BatchedPartition) -> None:
        """Something has happened to an exact partition that was not taken for dead: note which batches sinks finish."""
        if partition.number in self._sinks and partition.intake.at_border:
            self._exact.add((partition.number, partition.batch))

    def is_uncorrected(self, partition: BatchedPartition) -> bool:
        """Whether exact output has yet to pass some batch of which this partition has emitted tentative records."""
        own = {each for each in self.batches if each[0] == partition.number}
        return partition.tentative or not own <= self._exact

    def check_corrected(self, partition: BatchedPartition) -> None:
        """At the end: the exact output has passed every batch with tentative output."""
        if self.is_uncorrected(partition):
            raise TentativeBroken(f"tentative output of {partition.layout.name} was not corrected")

    def _upstream(self, number: int) -> set[int]:
        found: set[int] = set()
        pending = [number]
        while pending:
            new = self._senders[pending.pop()] - found
            found |= new
            pending += new
        return found
