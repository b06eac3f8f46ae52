"""The batch job of a run, which is a Spark of its own: another user learns and does nothing by its ports."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from aftershock.run import batch_job
from infra import launch, tokens
from infra.cluster import Handle
from results.runs.store import Run
from tests.integration.infra.listeners import listeners_of
from tests.integration.infra.strangers import assert_no_port_is_open_to_all, assert_nothing_answers
from tests.unit.marked_processes import wait_for


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Handle]:
    """A cluster without hosts, whose batch job has started and awaits its first order."""
    run = Run("run-1", tmp_path / "run-1" / "result")
    run.raw.mkdir(parents=True)
    owner = Handle("run-1", "local", tokens.new("local"), str(tmp_path))
    owner.save()  # who has no handle is cleaned away
    batch_job.start(run, owner)
    try:
        # py4j's, and that of Spark's blocks
        wait_for(lambda: sum(each.is_port for each in listeners_of(owner.token)) >= 2, limit_s=120)
        yield owner
    finally:
        launch.stop(owner.token, 0.0)


def test_the_ports_of_the_batch_job_answer_nobody_else(job: Handle) -> None:
    assert_no_port_is_open_to_all(job.token, at_least=2)
    assert_nothing_answers(job.token, at_least=2)
