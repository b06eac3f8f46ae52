"""The progress of a partition, for the slot's reports and the simulation."""

from __future__ import annotations

from testbed.core.checkpoints import OUTSIDE
from testbed.core.partition.partition import Partition
from testbed.operators import END_OF_TIME_NS


def progress(partition: Partition) -> dict[int, int]:
    """By input channel the number of the last data that it has processed; of a source, its position, as if that were
    the number on a channel from `OUTSIDE`."""
    return partition.intake.received or {OUTSIDE: partition.source_input.position}


def counts(partition: Partition) -> tuple[int, int]:
    """How many frames it has sent and processed on all its channels, by what its state knows of."""
    return sum(partition.sending.sent.values()), sum(partition.intake.received.values())


def finished(partition: Partition) -> bool:
    """Whether all input has ended and nothing is left to do; never behind a cycle, where no end is known."""
    return partition.running and partition.watermarks.current_ns == END_OF_TIME_NS and partition.idle


def aligning(partition: Partition) -> bool:
    """Whether some input channel has to wait for others."""
    return partition.running and partition.intake.blocks


def replaying(partition: Partition) -> bool:
    """Whether data from the logs has yet to be sent."""
    return partition.running and (partition.source_input.rereads or partition.sending.replaying)
