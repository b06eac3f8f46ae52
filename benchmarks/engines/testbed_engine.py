"""The protocol testbed as an engine of `side_by_side`: two slots as processes, protocol `coordinated`, exactly once.

Started by the command in `benchmarks.engines.peer_engine`.
"""

from __future__ import annotations

import signal
import sys
import time

from benchmarks.engines.peer_engine import Task
from experiments.workloads import NexmarkQuery, NexmarkSpec
from testbed.core.partition.partition import PartitionLimits
from testbed.operators import Delivery
from testbed.runtime.job import InputKind, Job, JobInput, OutputKind, OutputSpec
from tests.integration.testbed.kills.slots import Slots

SLOTS, RECORDS_A_MESSAGE, LOOK_S = 2, 1024, 0.1


def job_of(task: Task) -> Job:
    """The job for what the driver asked for; raises `BadInput` for a query that the testbed does not have."""
    return Job(
        run_id=task.output,
        workload=NexmarkSpec(query=NexmarkQuery(task.query), window_s=task.window_s, slide_s=task.window_s),
        protocol="coordinated",
        slots=min(SLOTS, task.partitions),
        parallelism=task.partitions,
        input=JobInput(InputKind.KAFKA, None, broker=task.broker, topic=task.input),
        output=OutputSpec(OutputKind.KAFKA, Delivery.EXACTLY_ONCE, broker=task.broker, topic=task.output),
        store=str(task.folder / "store"),
        checkpoint_interval_s=task.checkpoint_s,
        limits=PartitionLimits(records_per_message=RECORDS_A_MESSAGE),
    )


def main() -> None:
    """Run the query until SIGTERM, or until its coordinator has ended."""
    task = Task.from_words(sys.argv[1:])
    slots = Slots(job_of(task), task.folder)
    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: asked.append(number))
    try:
        while not asked and not slots.has_ended():
            time.sleep(LOOK_S)
    finally:
        slots.close()


if __name__ == "__main__":
    main()
