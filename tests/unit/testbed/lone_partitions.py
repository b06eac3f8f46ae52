"""Partitions by themselves, without coordinator, worker and network."""

from testbed.core.by_batch.cutting import Batching
from testbed.core.by_batch.partition import BatchedPartition
from testbed.core.partition.partition import Partition, PartitionLimits
from testbed.protocols import PROTOCOLS


def named(layout, name):
    """The partition with this name."""
    return next(each for each in layout.partitions if each.name == name)


def lone(layout, of, protocol, limits):
    """One that works in order of arrival, and has yet to be restored."""
    return Partition(of, len(layout.partitions), _schemas(layout), protocol, limits)


def lone_by_batch(layout, of, limits=None, batching=None):
    """The same of one that works by batches, by default with a checkpoint at every border."""
    limits, batching = limits or PartitionLimits(), batching or Batching(5, 1)
    count, protocol = len(layout.partitions), PROTOCOLS["batch-aligned"]
    return BatchedPartition(of, count, _schemas(layout), protocol, limits, batching)


def _schemas(layout):
    return [channel.schema for channel in layout.channels]
