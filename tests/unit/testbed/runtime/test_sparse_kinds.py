"""A join whose inputs come in some partitions only: none of its partitions waits for the time of those without any."""

from dataclasses import replace

import pytest

from experiments.workloads.catalogue import NexmarkQuery, NexmarkSpec
from testbed.core.control import Stored
from testbed.core.dataflow.layout import Layout
from testbed.operators import Source
from testbed.runtime.slot.inputs import feeds
from tests.unit.testbed.runtime.lone_slot import LoneSlot
from tests.unit.testbed.small_job import JOB

BLOCK_EVENTS = 25  # persons and auctions are in the first half of every 50: all of them are in every other block


def job(tmp_path, query, **changes):
    return replace(
        JOB,
        workload=NexmarkSpec(query=query),
        slots=1,
        parallelism=2,
        input=replace(JOB.input, events=None, rate=10.0 * BLOCK_EVENTS, start_ns=0),
        output=replace(JOB.output, folder=str(tmp_path / "output")),
        store=str(tmp_path / "store"),
        **changes,
    )


def without_records(job):
    """The sources that have read much and had nothing."""
    layout: Layout = job.layout()
    sources = [each for each in layout.partitions if isinstance(each.element, Source)]
    reads = {each.name: [feeds(job)(each).read(position) for position in range(20)] for each in sources}
    return [name for name, found in reads.items() if all(read.batch.num_rows == 0 for read in found)]


def stored(slot):
    return {each.checkpoint.partition for each in slot.told if isinstance(each, Stored)}


@pytest.mark.parametrize("query", [NexmarkQuery.Q3, NexmarkQuery.Q8])
def test_every_partition_takes_checkpoints(tmp_path, query):
    """By batch each of them needs a border from all sources."""
    given = job(tmp_path, query, protocol="batch-aligned", batch_length_s=1.0, checkpoint_interval_s=1.0)
    assert without_records(given) == ["auctions.1", "persons.1"]
    slot = LoneSlot(given)
    try:
        slot.restore(1)
        slot.go(1)
        slot.until(lambda: stored(slot) == set(slot.everyone))
    finally:
        slot.close()
