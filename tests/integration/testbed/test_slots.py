"""The runtime without Spark: slots as processes that are killed at random and at chosen moments, each protocol, no JVM.

The same campaign, but short, as `benchmarks/testbed/kills.py`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from experiments.workloads.catalogue import ReachabilitySpec
from testbed.runtime.job import Job
from tests.integration.testbed.exact_results import judged
from tests.integration.testbed.kills.campaign import Campaign, Episode
from tests.integration.testbed.kills.jobs import CYCLIC, PRICES, TREE, job_of, moments_of
from tests.integration.testbed.kills.slots import Slots
from tests.integration.testbed.kills.watching import Stage, Watch
from tests.object_stores import BUCKET, ENVIRONMENT, s3_server

pytestmark = pytest.mark.extended

KILLS, LIMIT_S = 6, 120.0
ROUNDS = 4  # of checkpoints, without a kill: lives before may have been too short to read much
KILLS_WITH_S3 = 3
KILLS_OF_TREE, FEWEST_OF_TREE = 3, 100
FEWEST_OF_PRICES = 20  # 25 kills had 175 to 12,961
WITH_S3 = {"uncoordinated": ("q12", 5, "global", 50), "output-log": (PRICES, 9, "passive", 10)}
# Of each a query, a seed, and the fewest records that are compared: there were 560, 287 and 53 on a busy machine.
CASES = {
    "coordinated": ("q12", 3, 100),
    "uncoordinated": ("q8", 2, 50),
    "communication-induced": (CYCLIC, 4, 10),
}


def strike(job: Job, root: Path, kills: int, seed: int, variables: dict[str, str] | None = None) -> Episode:
    """A run with a number of kills; all of its results are there once, and no slot ended by itself."""
    cyclic = isinstance(job.workload, ReachabilitySpec)  # has input from before its start, and soon too many results
    checkpoints = 0 if cyclic else ROUNDS * len(job.layout().partitions)
    rig = Slots(job, root, variables)
    try:
        episode = Campaign(rig, moments_of(job), seed, LIMIT_S).run(kills, checkpoints)
    finally:
        rig.close()
    assert sum(injection.kills for injection in episode.injections) >= kills
    assert episode.own_deaths == 0
    assert episode.verdict.exact, episode.verdict
    return episode


@pytest.mark.parametrize("protocol", CASES)
def test_every_result_is_there_once_whatever_happens_to_slots(tmp_path: Path, protocol: str) -> None:
    query, seed, fewest = CASES[protocol]
    job = job_of(query, protocol, seed, tmp_path, slots=2, kills=KILLS)
    assert strike(job, tmp_path, KILLS, seed).verdict.compared >= fewest


@pytest.mark.parametrize(("protocol", "recovery"), [("coordinated", "global"), ("batch-aligned", "passive")])
def test_every_result_of_a_tree_is_there_once_whatever_happens_to_slots(
    tmp_path: Path, protocol: str, recovery: str
) -> None:
    """Slots have different numbers of partitions: the tree ends in one."""
    job = replace(
        job_of(TREE, "coordinated", 7, tmp_path, slots=2, kills=KILLS_OF_TREE), protocol=protocol, recovery=recovery
    )
    assert strike(job, tmp_path, KILLS_OF_TREE, 7).verdict.compared >= FEWEST_OF_TREE


def test_every_average_is_there_once_whatever_happens_to_slots_with_output_logs(tmp_path: Path) -> None:
    job = replace(job_of(PRICES, "output-log", 8, tmp_path, slots=2, kills=KILLS), recovery="passive")
    assert strike(job, tmp_path, KILLS, 8).verdict.compared >= FEWEST_OF_PRICES


@pytest.mark.parametrize("protocol", WITH_S3)
def test_every_result_is_there_once_when_checkpoints_are_in_s3(tmp_path: Path, protocol: str) -> None:
    """Logs of messages, and output logs, go there, too."""
    query, seed, recovery, fewest = WITH_S3[protocol]
    job = replace(job_of(query, protocol, seed, tmp_path, slots=2, kills=KILLS_WITH_S3), recovery=recovery)
    with s3_server() as endpoint:
        job = replace(job, store=f"s3://{BUCKET}/{job.run_id}", store_endpoint=endpoint)
        episode = strike(job, tmp_path, KILLS_WITH_S3, seed, ENVIRONMENT)
        stored = job.object_store().keys()
    assert stored
    assert episode.verdict.compared >= fewest
    lines = [entry["line"] for entry in episode.journal if entry["event"] == "recovering"]
    assert any(any(line.values()) for line in lines), "it went on from checkpoints"


def test_a_checkpoint_that_rotted_is_given_up_for_the_one_before(tmp_path: Path) -> None:
    job = job_of("q12", "coordinated", 6, tmp_path, slots=2, kills=1)
    rig = Slots(job, tmp_path)
    watch = Watch(rig.journal, job.slots)

    def rounds() -> list[int]:
        return [entry["number"] for entry in watch.entries if entry["event"] == "round-stored"]

    try:
        watch.wait_for(lambda: len(rounds()) >= 3, LIMIT_S, rig.revive)
        losses = watch.losses
        rig.kill(rig.victims())
        watch.wait_for(lambda: watch.losses >= losses + job.slots, LIMIT_S)  # so that no slot stores anything more
        newest = rounds()[-1]
        (rotten,) = (Path(job.store) / "count.0").glob(f"state-{newest}-*")
        rotten.write_bytes(rotten.read_bytes()[::-1])
        watch.wait_for(lambda: watch.stage is Stage.RUNNING, LIMIT_S, rig.revive)
        rig.drain()
        watch.wait_for(lambda: watch.end is not None, LIMIT_S, rig.revive)
    finally:
        rig.close()
        watch.close()
    lines = [entry["line"]["count.0"] for entry in watch.entries if entry["event"] == "recovering"]
    assert lines[-2:] == [newest, newest - 1]
    verdict = judged(job, watch.end["positions"])
    assert verdict.compared
    assert verdict.exact, verdict
