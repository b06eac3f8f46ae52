"""How long partitions take to roll back to a checkpoint, without Spark's start of an executor: objects read, checked,
decoded and in place.

The states are those of `ppa` figure 6's dataflow at 1,000 tuples/s a source, all partitions one after the other, and of
NexMark's Q3, which remembers persons and auctions. The bound is on CPU time, since other work on the machine is no part
of it; the wall clock is printed, too.
Run by hand: .venv/bin/pytest -s benchmarks/speed/test_restore_speed.py
"""

import time
from pathlib import Path
from typing import TypeAlias, cast

import pytest

from benchmarks.machine_load import load_of_others
from benchmarks.testbed.slot import OneSlot
from experiments.workloads.catalogue import NexmarkQuery, NexmarkSpec
from experiments.workloads.window_tree import WindowTreeSpec
from testbed.core.checkpoints import Line
from testbed.core.control import Restore
from testbed.operators import Delivery
from testbed.runtime.job import InputKind, Job, JobInput, OutputKind, OutputSpec
from testbed.runtime.slot.hosted import Hosted
from testbed.stores.store import ObjectStore

Workload: TypeAlias = WindowTreeSpec | NexmarkSpec
LEAST_MB, MOST_S_PER_10_MB, LONGEST_S = 5.0, 0.3, 600.0
TREE = WindowTreeSpec(window_s=30.0, slide_s=1.0)
PAIRS = NexmarkSpec(query=NexmarkQuery.Q3)


def job_of(folder: Path, workload: Workload, sources: int, rate: float) -> Job:
    """As fast as it can, with a checkpoint for every five seconds of the events' time."""
    return Job(
        run_id="restore",
        workload=workload,
        protocol="batch-aligned",
        slots=1,
        parallelism=sources,
        input=JobInput(InputKind.GENERATED, None, 0, rate),
        output=OutputSpec(OutputKind.NOWHERE, Delivery.EXACTLY_ONCE),
        store=str(folder / "store"),
    )


def line_behind(job: Job, batch: int) -> tuple[Line, ObjectStore]:
    """The line of a slot that has come to a checkpoint behind this batch, and the store that has its objects."""
    slot, end_s = OneSlot(job), time.monotonic() + LONGEST_S
    number = batch // cast(int, job.batching.per_checkpoint)
    try:
        while (line := slot.line)[0].number < number:
            assert time.monotonic() < end_s
            slot.run(0.1)
        return line, slot.store
    finally:
        slot.close()


@pytest.mark.parametrize(
    ("workload", "sources", "rate", "seconds"),
    [(TREE, 16, 16_000.0, 45), (PAIRS, 2, 100_000.0, 60)],
    ids=["window-tree", "q3"],
)
def test_restore_without_the_start_of_an_executor(
    tmp_path: Path, workload: Workload, sources: int, rate: float, seconds: int
) -> None:
    load, job = load_of_others(), job_of(tmp_path, workload, sources, rate)
    line, store = line_behind(job, round(seconds / job.batch_length_s))
    hosted = Hosted(job, job.layout())
    size, wall_s, cpu_s = 0, time.perf_counter(), time.process_time()
    for checkpoint in line:
        objects = {key: store.get(key) for key in checkpoint.state_keys}
        partition = hosted.make(checkpoint.partition)
        partition.restore(Restore(1, checkpoint, ()), objects)
        size += sum(map(len, objects.values()))
    wall_s, cpu_s, size_mb = time.perf_counter() - wall_s, time.process_time() - cpu_s, size / 1e6
    times = f"{cpu_s * 1000:.0f} ms CPU, {wall_s * 1000:.0f} ms"
    print(f"\n{len(line)} partitions, {size_mb:.1f} MB: {times}, load {load:.0f}")
    assert size_mb > LEAST_MB
    assert cpu_s * 10 / size_mb < MOST_S_PER_10_MB
