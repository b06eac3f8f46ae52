"""How soon survivors emit tentative results, and what takes that time.

`.venv/bin/python -m benchmarks.testbed.first_tentative --kills 10 --slide 1 --seed 1`
runs the testbed as processes, as `kills` does, once for each kill: a slot is killed and stays away until a
tentative result is out. Prints for each kill, and as median and range, all in ms:

    notice  from the death of the slot to its notice
    turned  from the notice until the coordinator hears of the first partition that is tentative
    slide   from the notice to the end of the batch that closes the window of the first result
    lag     from the later of the two until the result is out
    first   from the notice to the first result

So `turned` and `lag` are the testbed's own, and `slide` is the query's. A result is out when its file has been synced
to disk and has its name.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import pyarrow as pa

from benchmarks.arguments import above_zero, at_least_one
from benchmarks.one_line_errors import one_line_errors
from benchmarks.sigterm import end_by_sigterm
from benchmarks.testbed.by_kill import print_by_kill
from benchmarks.testbed.result_files import out_ns
from benchmarks.testbed.watched_slots import watched_slots
from testbed.core.partition.partition import PartitionLimits
from testbed.queries import BATCH
from testbed.runtime.job import Job
from tests.integration.testbed.kills.jobs import job_of
from tests.integration.testbed.kills.watching import Watch

MS, LIMIT_S, SETTLED_S = 1e6, 60.0, 3.0
QUERY, PROTOCOL, TURNED = "q12", "batch-aligned", "partition-tentative"


@dataclass(frozen=True)
class FirstResult:
    """What passed before the first tentative result of one kill [ms]."""

    notice: float
    turned: float
    slide: float
    lag: float
    first: float


@one_line_errors()
def main() -> None:
    """Kill a slot once in each run, and print when its first tentative result was out."""
    given = _arguments()
    end_by_sigterm()  # so that the slots end
    found = [_after_kill(given, given.seed * 1000 + number) for number in range(given.kills)]
    print_by_kill(found)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=at_least_one, default=10)
    parser.add_argument("--slots", type=at_least_one, default=3)
    parser.add_argument("--slide", type=above_zero, default=1.0, help="between the ends of windows [s]")
    parser.add_argument("--batch", type=above_zero, default=0.25, help="length of a batch [s]")
    parser.add_argument("--rate", type=above_zero, default=2000.0, help="events per second")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def _after_kill(given: argparse.Namespace, seed: int) -> FirstResult:
    random, root = Random(seed), Path(tempfile.mkdtemp(prefix="aftershock-tentative-"))
    job = job_of(QUERY, PROTOCOL, seed, root, given.slots, kills=1)
    windows = {"window_s": given.slide, "slide_s": given.slide}
    job = replace(job, recovery="passive", tentative=True, limits=PartitionLimits(), batch_length_s=given.batch)
    job = replace(job, workload=job.workload.model_copy(update=windows), checkpoint_interval_s=2.0)
    job = replace(job, input=replace(job.input, rate=given.rate))
    with watched_slots(job, root) as (rig, watch):
        watch.wait_for(lambda: watch.stored >= len(job.layout().partitions), LIMIT_S)
        time.sleep(random.uniform(1.0, SETTLED_S))
        death_ns = time.time_ns()
        rig.kill([random.choice(rig.victims())])
        watch.wait_for(lambda: _written(job) and any(each["event"] == TURNED for each in watch.entries), LIMIT_S)
        watch.follow()  # what became known while files were looked for
        found = _measured(job, watch, death_ns)
    shutil.rmtree(root)
    return found


def _measured(job: Job, watch: Watch, death_ns: int) -> FirstResult:
    notice_ns = min(each["at_ns"] for each in watch.entries if each["event"] == "worker-lost")
    first_ns, batch = min((out_ns(path), _batch(path)) for path in _written(job))
    turned_ns = min(each["at_ns"] for each in watch.entries if each["event"] == TURNED)
    closed_ns = job.batching.end_ns(batch)
    moments = (death_ns, notice_ns), (notice_ns, turned_ns), (notice_ns, closed_ns)
    own = (max(notice_ns, closed_ns), first_ns), (notice_ns, first_ns)
    return FirstResult(*((end - begin) / MS for begin, end in (*moments, *own)))


def _written(job: Job) -> list[Path]:
    """The files with tentative results."""
    return list(Path(job.output.tentative.folder).rglob("[!.]*.arrow"))


def _batch(path: Path) -> int:
    """The first batch of which a file has results."""
    return int(min(pa.ipc.open_stream(path.read_bytes()).read_all().column(BATCH).to_pylist()))


if __name__ == "__main__":
    main()
