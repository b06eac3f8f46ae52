"""The partitions that a slot hosts, by number, and which of them may have work."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from testbed.core.by_batch.partition import BatchedPartition
from testbed.core.dataflow.layout import Layout
from testbed.core.frames import Frame, data_bytes
from testbed.core.partition.partition import Partition
from testbed.output_log.partition import Budget, LoggedPartition, keeps_log
from testbed.output_log.policies import Saving
from testbed.runtime.job import Job
from testbed.runtime.slot.check_budget import PacedBudget
from testbed.runtime.slot.log_costs import LogCosts

# at(number, event, *arguments): something happens to a partition; nothing if it is not here or was never restored.
At: TypeAlias = Callable[..., None]


class Timed(Partition):
    """A partition that measures its CPU time [s], and reports to `on_checkpoint` how long each checkpoint took [s].

    processing_s  CPU time of its turns, without that of any checkpoint that was taken meanwhile [s]
    checkpoint_s  CPU time for taking checkpoints, in its turns and between them [s]
    input_bytes   of a copy: size of the messages that have come for it
    """

    on_checkpoint: Callable[[float, float], None]
    processing_s = checkpoint_s = 0.0
    input_bytes = 0

    def checkpoint(self, number: int | None = None, forced: bool = False) -> None:
        """Take a checkpoint, as the partition does, and report how long that took."""
        begun_s, begun_cpu_s = time.perf_counter(), time.thread_time()
        super().checkpoint(number, forced)
        cpu_s = time.thread_time() - begun_cpu_s
        self.checkpoint_s += cpu_s
        self.on_checkpoint(time.perf_counter() - begun_s, cpu_s)

    def on_read_back(self, seconds: float) -> None:
        """It was restored; to fetch and read what it needed took so long."""

    @property
    def retained_bytes(self) -> int:
        """Size of the output that it keeps in memory for others that may need it again [bytes]."""
        return 0


class TimedBatchedPartition(Timed, BatchedPartition):
    """A partition that works batch by batch."""

    def on_frame(self, frame: Frame) -> None:
        if self.muted:
            self.input_bytes += data_bytes(frame)
        super().on_frame(frame)

    @property
    def retained_bytes(self) -> int:
        return self.sending.retained.unstored_bytes + self.withheld.size_bytes


class TimedLoggedPartition(TimedBatchedPartition, LoggedPartition):
    """A partition that keeps an output log, and measures what that costs. To save parts counts as a checkpoint.

    check_s  the time that it has spent on saving parts [s]
    """

    check_s = 0.0

    def __init__(self, *parts: Any, saving: Saving, budget: Budget) -> None:
        self._costs = LogCosts()
        super().__init__(*parts, policy=saving.policy(self._costs), budget=budget)

    def on_read_back(self, seconds: float) -> None:
        self._costs.add_read(self.recorded.extent.length, seconds)

    def save_parts(self) -> None:
        before, begun_s, begun_cpu_s = self.recorded.checks, time.perf_counter(), time.thread_time()
        if not self.recorded.replaying:
            self._costs.set_taken_in(self.recorded.operator.position, self.processing_s, begun_s)
        super().save_parts()
        took_s, cpu_s = time.perf_counter() - begun_s, time.thread_time() - begun_cpu_s
        self._costs.add_checks(self.recorded.checks - before, cpu_s)
        self.check_s += took_s
        self.checkpoint_s += cpu_s
        self.on_checkpoint(took_s, cpu_s)

    @property
    def counts_of_log(self) -> dict[str, float]:
        """What its log has and costs (`RecordedOperator.counts`), and `check_s`."""
        return {**self.recorded.counts, "check_s": self.check_s}


class Hosted:
    """The partitions of one session. A partition that is woken gets a turn.

    checkpoint_s      time that partitions have spent in taking checkpoints [s]
    checkpoint_cpu_s  CPU time of that [s]
    """

    def __init__(self, job: Job, layout: Layout) -> None:
        self._layouts, self._schemas = layout.partitions, [channel.schema for channel in layout.channels]
        self._job = job
        self._partitions: dict[int, Timed] = {}
        self._awake: dict[int, None] = {}
        self.checkpoint_s = self.checkpoint_cpu_s = 0.0

    def __contains__(self, number: int) -> bool:
        return number in self._partitions

    def __getitem__(self, number: int) -> Timed:
        return self._partitions[number]

    def __iter__(self) -> Iterator[Timed]:
        return iter(self._partitions.values())

    def make(self, number: int) -> Timed:
        """A new partition, which has yet to be restored."""
        job = self._job
        common = self._layouts[number], len(self._layouts), self._schemas, job.protocol_class, job.partition_limits
        partition: Timed
        if keeps_log(self._layouts[number], job.protocol_class):
            budget = PacedBudget(job.saving.pace)
            partition = TimedLoggedPartition(*common, job.batching, saving=job.saving, budget=budget)
        elif job.protocol_class.by_batch:
            partition = TimedBatchedPartition(*common, job.batching)
        else:
            partition = Timed(*common)
        partition.on_checkpoint = self._add_checkpoint
        self._partitions[number] = partition
        return partition

    def remove(self, number: int) -> None:
        """A copy is of no more use."""
        if (partition := self._partitions.pop(number, None)) is not None and partition.epoch >= 0:
            partition.leave()
        self._awake.pop(number, None)

    def restored(self, number: int) -> Partition | None:
        """The partition if it is here and was restored once; None otherwise."""
        partition = self._partitions.get(number)
        return partition if partition is not None and partition.epoch >= 0 else None

    def has(self, partition: Partition) -> bool:
        """Whether it is of this session: what an earlier one began ends no later one."""
        return self._partitions.get(partition.number) is partition

    def wake(self, number: int) -> None:
        """The partition may have something to do."""
        self._awake[number] = None

    @property
    def awake(self) -> bool:
        """Whether any partition may have something to do."""
        return bool(self._awake)

    def turn(self) -> Iterator[Timed]:
        """Those that may have something to do, each once; who is woken after its turn waits for the next call."""
        for number in list(self._awake):
            del self._awake[number]
            yield self._partitions[number]

    @property
    def working_s(self) -> float:
        """CPU time of this thread without that for checkpoints [s]. Its differences are what turns take.

        A checkpoint that is taken between two turns is then in neither.
        """
        return time.thread_time() - self.checkpoint_cpu_s

    def clear(self) -> None:
        """Forget all partitions: the session is over."""
        self._partitions, self._awake = {}, {}

    def _add_checkpoint(self, seconds: float, cpu_s: float) -> None:
        self.checkpoint_s += seconds
        self.checkpoint_cpu_s += cpu_s
