"""How long a killed slot holds up the output, with active copies and without.

`.venv/bin/python -m benchmarks.testbed.reached --recovery partially-active --ratio 1 --kills 10 --seed 1`
runs the testbed as processes, as `kills` does, once for each kill: the process of a slot that hosts partitions
is killed, with one standby slot for each slot. Prints for each kill, and as median and range: the age of the recovery
line (since the last checkpoint), the time from death to notice, from notice until all go on, and from death to reached.
An output is reached when every sink has put out a batch that ended after the death, so when its file has been synced to
disk and has its name; `usual` is how long that takes for a moment without a fault, half a second before. All times are
in ms.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import cast

from benchmarks.arguments import above_zero, at_least_one, from_0_to_1
from benchmarks.one_line_errors import one_line_errors
from benchmarks.sigterm import end_by_sigterm
from benchmarks.testbed.by_kill import print_by_kill
from benchmarks.testbed.result_files import out_ns
from benchmarks.testbed.watched_slots import watched_slots
from testbed.core.partition.partition import PartitionLimits
from testbed.recovery import STRATEGIES
from testbed.runtime.job import Job
from tests.integration.testbed.exact_results import judged
from tests.integration.testbed.kills.jobs import QUERIES, job_of
from tests.integration.testbed.kills.watching import Entry

MS, LIMIT_S, BEFORE_S = 1e6, 120.0, 0.5


@dataclass(frozen=True)
class Outage:
    """What one kill cost [ms]."""

    line_age: float
    notice: float
    ready: float
    reached: float
    usual: float


@one_line_errors()
def main() -> None:
    """Kill a slot once in each run, and print what that cost."""
    given = _arguments()
    end_by_sigterm()  # so that the slots end
    outages = [_outage(given, given.seed * 1000 + number) for number in range(given.kills)]
    print_by_kill(outages)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recovery", choices=STRATEGIES, default="partially-active")
    parser.add_argument("--ratio", type=from_0_to_1, default=1.0, help="partially-active: share of copied partitions")
    parser.add_argument("--query", choices=QUERIES, default="q1")
    parser.add_argument("--kills", type=at_least_one, default=10)
    parser.add_argument("--slots", type=at_least_one, default=2)
    parser.add_argument("--rate", type=above_zero, default=4000.0, help="events per second")
    parser.add_argument("--interval", type=above_zero, default=5.0, help="between checkpoints [s]")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def _outage(given: argparse.Namespace, seed: int) -> Outage:
    random, root = Random(seed), Path(tempfile.mkdtemp(prefix="aftershock-reached-"))
    job = job_of(given.query, "batch-aligned", seed, root, given.slots, kills=1)
    job = replace(job, input=replace(job.input, rate=given.rate), checkpoint_interval_s=given.interval)
    job = replace(job, limits=PartitionLimits(), standby=given.slots)
    job = replace(job, recovery=given.recovery, replication_ratio=given.ratio)
    with watched_slots(job, root) as (rig, watch):
        watch.wait_for(lambda: watch.stored >= len(job.layout().partitions), LIMIT_S, rig.revive)
        watch.wait(lambda: False, random.uniform(1, given.interval - 0.5), rig.revive)
        joined = [each["host"] for each in watch.entries if each["event"] == "worker-joined"]
        victim = random.choice(joined[: job.slots])
        death_ns = time.time_ns()
        rig.kill([rig.hosts[victim]])
        watch.wait_for(lambda: _reached_ns(job, death_ns) is not None, LIMIT_S, rig.revive)
        rig.drain()
        watch.wait_for(lambda: watch.end is not None, LIMIT_S, rig.revive)
        end = cast(Entry, watch.end)  # it has been waited for
        if not (verdict := judged(job, end["positions"])).exact:
            sys.exit(f"seed {seed}: not exactly once, {verdict}; its files are in {root}")
        found = _measured(job, watch.entries, death_ns)
    shutil.rmtree(root)
    return found


def _measured(job: Job, entries: list[Entry], death_ns: int) -> Outage:
    stored_ns = max(each["at_ns"] for each in entries if each["event"] == "checkpoint" and each["at_ns"] < death_ns)
    lost_ns = _first(entries, "worker-lost", death_ns)
    ready_ns, before_ns = _first(entries, "ready", lost_ns), death_ns - round(BEFORE_S * 1e9)
    return Outage(
        (death_ns - stored_ns) / MS,
        (lost_ns - death_ns) / MS,
        (ready_ns - lost_ns) / MS,
        (cast(int, _reached_ns(job, death_ns)) - death_ns) / MS,  # it has been waited for, so it was reached
        (cast(int, _reached_ns(job, before_ns)) - before_ns) / MS,
    )


def _first(entries: list[Entry], event: str, since_ns: int) -> int:
    return int(min(each["at_ns"] for each in entries if each["event"] == event and each["at_ns"] >= since_ns))


def _reached_ns(job: Job, moment_ns: int) -> int | None:
    """When every sink had put out a batch that ended after a moment; None as long as one has not."""
    reached = list[int | None]()
    for folder in Path(job.output.folder).iterdir():
        ended = (path for path in folder.glob("[0-9]*.arrow") if int(path.stem) * job.batching.length_ns >= moment_ns)
        reached.append(min(map(out_ns, ended), default=None))
    known = [each for each in reached if each is not None]
    return max(known) if known and len(known) == len(reached) else None


if __name__ == "__main__":
    main()
