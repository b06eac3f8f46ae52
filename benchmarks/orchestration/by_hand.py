"""The word count as a user would start it by hand: `by_hand.py CONFIG.json PROGRESS.jsonl RECORDS`.

The other side of `no_fault_overhead.py`: the same session settings and the same query, but nothing of ours around it:
no listener, no watch, no supervisor.
"""

import sys
import time
from pathlib import Path

from spark_jobs.calibration import Calibration
from spark_jobs.streaming.config import JobConfig
from spark_jobs.streaming.job import session, start
from workloads.topics import INPUT, OUTPUT


def main() -> None:
    """Run the query until it has read the given number of records, and write the progress of its batches."""
    config_path, progress_path = map(Path, sys.argv[1:3])
    config = JobConfig.read(config_path)
    query = start(
        session(config),
        config,
        input_topic=INPUT,
        output_topic=OUTPUT,
        checkpoint=config.checkpoint,
        interval_s=config.engine.checkpoint_interval_s,
        batch_records=Calibration.read(config_path.with_name("calibration.json")).batch_records,
    )
    while sum(progress["numInputRows"] for progress in query.recentProgress) < int(sys.argv[3]):
        if not query.isActive:
            query.awaitTermination()  # raises why it has ended
        time.sleep(0.5)
    progress_path.write_text("".join(progress.json + "\n" for progress in query.recentProgress), encoding="utf-8")
    query.stop()


if __name__ == "__main__":
    main()
