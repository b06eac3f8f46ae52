"""Structured Streaming as an engine of `side_by_side`: one session on all cores, a micro-batch every `checkpoint_s`.

Started by the command in `benchmarks.engines.peer_engine`.
"""

from __future__ import annotations

import os
import signal
import sys

from benchmarks.engines.local_spark import local_spark
from benchmarks.engines.peer_engine import Task
from spark_jobs.streaming.job import records_of, to_topic
from workloads.queries import query


def main() -> None:
    """Run the query until SIGTERM."""
    task = Task.from_words(sys.argv[1:])
    with local_spark(os.cpu_count() or 1, task.partitions) as spark:
        results = query(records_of(spark, task.broker, task.input), task.spec)
        writer = to_topic(results, task.broker, task.output).option("checkpointLocation", str(task.folder / "state"))
        interval = f"{round(task.checkpoint_s * 1000)} milliseconds"
        running = writer.outputMode("append").trigger(processingTime=interval).start()
        asked: list[int] = []
        signal.signal(signal.SIGTERM, lambda number, _frame: asked.append(number))
        while not asked and not running.awaitTermination(1):
            continue  # a handler must not call Spark, which may be amid a call
        running.stop()


if __name__ == "__main__":
    main()
