"""Tentative output of the runtime without Spark: a slot is killed and stays away, and the others go on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from journal.event import Event
from journal.events.testbed import TESTBED, CheckpointStored, Finished, PartitionsAbsent, PartitionTentative
from journal.reader import events
from testbed.runtime.connectors.sinks import published
from testbed.runtime.job import Job
from tests.integration.testbed.exact_results import exact, judged
from tests.integration.testbed.kills.jobs import job_of
from tests.integration.testbed.kills.slots import Slots
from tests.unit.marked_processes import wait_for

pytestmark = pytest.mark.extended

LIMIT_S, STORED, ROWS = 120.0, 6, 20


def tentative_rows(job: Job) -> Counter[tuple]:
    """The tentative results, each with its batch."""
    tables = published(Path(job.output.tentative.folder))
    return Counter(row for table in tables for row in zip(*(c.to_pylist() for c in table.columns), strict=True))


def tentative_partitions(journal: Iterable[Event]) -> set[str]:
    return {each.partition for each in journal if isinstance(each, PartitionTentative)}


def number_going_on(job: Job) -> int:
    """How many partitions lack input: of two survivors, all but their sources."""
    return 2 * (len(job.layout().partitions) // 3 - 1)


def ended(rig: Slots) -> list[Event]:
    """The journal of a run from which a slot stays away for some results, and which then comes to its end."""

    def told(kind: type[Event]) -> list[Event]:
        return [each for each in events(rig.journal, TESTBED) if isinstance(each, kind)]

    wait_for(lambda: len(told(CheckpointStored)) > STORED, LIMIT_S)
    rig.kill(rig.victims()[:1])
    wait_for(lambda: tentative_rows(rig.job).total() > ROWS, LIMIT_S)
    wait_for(lambda: len(tentative_partitions(events(rig.journal, TESTBED))) >= number_going_on(rig.job), LIMIT_S)
    rig.revive()
    wait_for(lambda: told(PartitionsAbsent)[-1].partitions == (), LIMIT_S)
    rig.drain()
    wait_for(lambda: bool(told(Finished)), LIMIT_S)
    return list(events(rig.journal, TESTBED))


def test_survivors_put_out_what_they_have_and_all_of_it_exactly_in_the_end(tmp_path: Path) -> None:
    job = replace(job_of("q12", "batch-aligned", 1, tmp_path, slots=3, kills=1), recovery="passive", tentative=True)
    rig = Slots(job, tmp_path)
    try:
        journal = ended(rig)
    finally:
        rig.close()
    (end,) = (each for each in journal if isinstance(each, Finished))
    verdict = judged(job, end.positions)
    assert verdict.exact, verdict
    assert rig.own_deaths == 0
    absent = [each.partitions for each in journal if isinstance(each, PartitionsAbsent)]
    assert absent[0]
    assert absent[-1] == ()
    assert len(tentative_partitions(journal)) == number_going_on(job)
    groups = {row[:2] for row in exact(job, end.positions)}
    found = {row[:2] for row in tentative_rows(job)}
    assert found < groups  # every window and bidder with tentative output has an exact result, and others have, too
