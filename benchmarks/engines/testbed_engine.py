"""The protocol testbed as an engine of `side_by_side`: two slots as processes.

Started by the command in `benchmarks.engines.peer_engine`, to which options may be added: `[--protocol coordinated]
[--delivery exactly-once] [--spare-lines 1]`. With exactly-once delivery, results are out once their checkpoint is
stable. `coordinated` keeps one older line of checkpoints, in case the newest cannot be read, so its results are out one
interval later than with `--spare-lines 0`. Plain delivery does not wait for checkpoints.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time

from benchmarks.arguments import at_least
from benchmarks.engines.peer_engine import Task
from testbed.core.partition.partition import PartitionLimits
from testbed.operators import Delivery
from testbed.protocols import PROTOCOLS
from testbed.runtime.job import InputKind, Job, JobInput, OutputKind, OutputSpec
from tests.integration.testbed.kills.slots import Slots

SLOTS, RECORDS_A_MESSAGE, LOOK_S = 2, 1024, 0.1


def job_of(task: Task, options: argparse.Namespace) -> Job:
    """The job for what the driver asked for.

    Raises `BadInput` for a query that the testbed does not have, and for protocol `none` with exactly-once delivery.
    """
    return Job(
        run_id=task.output,
        workload=task.spec,
        protocol=options.protocol,
        slots=min(SLOTS, task.partitions),
        parallelism=task.partitions,
        input=JobInput(InputKind.KAFKA, None, broker=task.broker, topic=task.input),
        output=OutputSpec(OutputKind.KAFKA, Delivery(options.delivery), broker=task.broker, topic=task.output),
        store=str(task.folder / "store"),
        checkpoint_interval_s=task.checkpoint_s,
        spare_lines=options.spare_lines,
        limits=PartitionLimits(records_per_message=RECORDS_A_MESSAGE),
    )


def parsed(words: list[str]) -> argparse.Namespace:
    """The words of the task, as `task`, and the options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", nargs="+")
    parser.add_argument("--protocol", choices=list(PROTOCOLS), default="coordinated")
    parser.add_argument("--delivery", choices=[each.value for each in Delivery], default=Delivery.EXACTLY_ONCE.value)
    parser.add_argument("--spare-lines", type=at_least(0), default=1, help="older lines of checkpoints that are kept")
    return parser.parse_args(words)


def main() -> None:
    """Run the query until SIGTERM, or until its coordinator has ended."""
    options = parsed(sys.argv[1:])
    task = Task.from_words(options.task)
    slots = Slots(job_of(task, options), task.folder)
    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: asked.append(number))
    try:
        while not asked and not slots.has_ended():
            time.sleep(LOOK_S)
    finally:
        slots.close()


if __name__ == "__main__":
    main()
