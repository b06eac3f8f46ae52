"""Kills of the testbed's slots, and whether a record was lost or came twice.

`.venv/bin/python -m benchmarks.testbed.kills --protocol coordinated --query q12 --kills 200 --seed 1 [--spark]`
runs episodes of `--episode` kills each: a coordinator, slots, a store, all of them real processes; SIGKILL at random
and at chosen moments, now and then to all slots at once, and SIGSTOP until a slot was given up. At the end of each the
output is compared with what the events that were read must give, record by record. With `--spark` the slots are Spark
tasks on a local cluster, and what dies is by chance a slot, its executor, or the whole host. Prints a table; of its
times the median and the 99th percentile: `detect` from a kill to the loss that the coordinator notes, `restart` from
there until somebody is in its place, `restore` from there until all go on. Ends with 1 if anything is wrong, and keeps
that episode's files.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.arguments import at_least, at_least_one, from_0_to_1
from benchmarks.one_line_errors import one_line_errors
from benchmarks.sigterm import end_by_sigterm
from experiments.spec import ClusterSpec
from infra.drivers import driver_of
from testbed.protocols import PROTOCOLS
from testbed.recovery import STRATEGIES
from testbed.runtime.job import Job
from tests.integration.testbed.kills.campaign import Campaign, Episode, Stuck
from tests.integration.testbed.kills.figures import table
from tests.integration.testbed.kills.hosts import Hosts
from tests.integration.testbed.kills.jobs import QUERIES, job_of, moments_of
from tests.integration.testbed.kills.rig import Rig
from tests.integration.testbed.kills.slots import Slots

LIMIT_S = 600.0  # for one recovery, on a machine that has much other work
MakeRig = Callable[[Job, Path, int], Rig]


@dataclass(frozen=True)
class Case:
    """What episodes are run of; `kills`: of each episode; `records`: in a message; the other fields: as in `Job`."""

    protocol: str
    recovery: str
    query: str
    kills: int
    slots: int = 3
    standby: int = 0
    replication_ratio: float = 0.5
    records: int = 16

    def job(self, seed: int, root: Path) -> Job:
        """The job of one episode, with all its files below a folder."""
        job = job_of(self.query, self.protocol, seed, root, self.slots, self.kills, self.records)
        return replace(job, recovery=self.recovery, standby=self.standby, replication_ratio=self.replication_ratio)


class EpisodeFailed(Exception):
    """An episode did not come to its end, or its output is not exact; the message says where its files are."""


@one_line_errors()
def main() -> None:
    """Run episodes until there were enough kills, and print the table."""
    given = _arguments()
    end_by_sigterm()  # so that the slots of the episode end, and the cluster
    case = Case(
        given.protocol,
        given.recovery,
        given.query,
        given.episode,
        given.slots,
        given.standby,
        given.ratio,
        given.records,
    )
    episodes: list[Episode] = []
    with _rigs(given) as rig_of:
        while sum(map(kills_of, episodes)) < given.kills:
            try:
                episodes.append(run_episode(case, given.seed * 1000 + len(episodes), rig_of))
            except EpisodeFailed as error:
                sys.exit(str(error))
            last = episodes[-1]
            print(f"{len(episodes)}: {len(last.injections)} injections, {last.verdict}", flush=True)
    print(table(given.protocol, given.query, episodes))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--protocol", choices=[name for name in PROTOCOLS if name != "none"], default="coordinated")
    parser.add_argument("--recovery", choices=STRATEGIES, default="global")
    parser.add_argument("--query", choices=QUERIES, default="q12")
    parser.add_argument("--kills", type=at_least_one, default=200)
    parser.add_argument("--episode", type=at_least_one, default=25, help="kills of each run")
    parser.add_argument("--records", type=at_least_one, default=16, help="the most in a message; 1: messages in ranges")
    parser.add_argument("--slots", type=at_least_one, default=3)
    parser.add_argument("--standby", type=at_least(0), default=0, help="slots to spare")
    parser.add_argument("--ratio", type=from_0_to_1, default=0.5, help="partially-active: share of copied partitions")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--spark", action="store_true", help="slots are Spark tasks, each on a worker of a cluster")
    return parser.parse_args()


@contextmanager
def _rigs(given: argparse.Namespace) -> Iterator[MakeRig]:
    """What makes a rig of a job: processes, or a program on a cluster that is there until all is over."""
    if not given.spark:
        yield as_processes
        return
    spec = ClusterSpec(workers=given.slots, worker_memory_mb=512)
    driver, root = driver_of(spec.driver), Path(tempfile.mkdtemp(prefix="aftershock-kills-"))
    cluster = driver.provision(spec, "dataflow-kills", root)
    try:
        yield lambda job, folder, seed: Hosts(driver, cluster, job, folder, seed)
    finally:
        driver.destroy(cluster)
    shutil.rmtree(root)


def as_processes(job: Job, folder: Path, seed: int) -> Rig:
    """Slots and coordinator as processes of this machine."""
    return Slots(job, folder)


def run_episode(case: Case, seed: int, rig_of: MakeRig = as_processes) -> Episode:
    """One run with its kills; raises `EpisodeFailed`."""
    root = Path(tempfile.mkdtemp(prefix="aftershock-kills-"))
    job = case.job(seed, root)
    try:
        with closing(rig_of(job, root, seed)) as rig:
            episode = Campaign(rig, moments_of(job), seed, LIMIT_S).run(case.kills)
    except (Stuck, TimeoutError) as error:  # a rig says by `TimeoutError` that it has not begun
        raise EpisodeFailed(f"seed {seed}: {error}; its files are in {root}") from error
    if not episode.verdict.exact:
        raise EpisodeFailed(f"seed {seed}: not exactly once, {episode.verdict}; its files are in {root}")
    shutil.rmtree(root)
    return episode


def kills_of(episode: Episode) -> int:
    """How many slots were killed in it."""
    return sum(injection.kills for injection in episode.injections)


if __name__ == "__main__":
    main()
