"""The runtime without Spark: slots as processes that are killed at random and at chosen moments, each protocol, no JVM.

The same campaign, but short, as `benchmarks/dataflow_kills.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.spark_jobs.kills.campaign import Campaign
from tests.integration.spark_jobs.kills.jobs import CYCLIC, job_of, moments_of
from tests.integration.spark_jobs.kills.slots import Slots

KILLS, LIMIT_S = 6, 120.0
# Of each a query, a seed, and the fewest records that are compared: there were 560, 287 and 53 on a busy machine.
CASES = {
    "coordinated": ("q12", 3, 100),
    "uncoordinated": ("q8", 2, 50),
    "communication-induced": (CYCLIC, 4, 10),
}


@pytest.mark.parametrize("protocol", CASES)
def test_every_result_is_there_once_whatever_happens_to_slots(tmp_path: Path, protocol: str) -> None:
    query, seed, fewest = CASES[protocol]
    job = job_of(query, protocol, seed, tmp_path, slots=2, kills=KILLS)
    rig = Slots(job, tmp_path)
    try:
        episode = Campaign(rig, moments_of(job), seed, LIMIT_S).run(KILLS)
    finally:
        rig.close()
    assert sum(blow.kills for blow in episode.blows) >= KILLS
    assert episode.own_deaths == 0
    assert episode.verdict.compared >= fewest
    assert episode.verdict.exact, episode.verdict
