"""The testbed as an engine of `side_by_side`: the words of the command become a job."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.engines.peer_engine import Engine, ResultDelivery, Task
from benchmarks.engines.testbed_engine import job_of, parsed
from experiments.errors import BadInput
from infra.broker import Broker
from testbed.operators import Delivery
from testbed.runtime.job import Job


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return Task(Broker("127.0.0.1:9092", "client file"), "q12", 2.0, "input-1", "output-1", 2, 0.5, tmp_path)


def made_by(engine: str, task: Task) -> Job:
    """The job that the program makes of the command's words."""
    options = parsed(Engine.parse(engine).command_for(task)[3:])
    return job_of(Task.from_words(options.task), options)


def test_the_testbed_reads_and_writes_the_topics_of_the_task(task: Task) -> None:
    job = made_by("testbed", task)
    assert (job.input.topic, job.output.topic, job.parallelism) == ("input-1", "output-1", 2)
    assert (job.workload.query.value, job.workload.window_s, job.checkpoint_interval_s) == ("q12", 2.0, 0.5)
    assert (job.protocol, job.output.delivery, job.spare_lines) == ("coordinated", Delivery.EXACTLY_ONCE, 1)


def test_the_testbed_has_the_options_of_the_command(task: Task) -> None:
    task = replace(task, broker=Broker("127.0.0.1:9092"))  # whose credentials are an empty word
    early = made_by("early=testbed --spare-lines 0", task)
    assert (early.protocol, early.output.delivery, early.spare_lines) == ("coordinated", Delivery.EXACTLY_ONCE, 0)
    plain = made_by("plain=testbed --protocol none --delivery plain", task)
    assert (plain.protocol, plain.output.delivery, plain.spare_lines) == ("none", Delivery.PLAIN, 1)
    with pytest.raises(BadInput, match="without checkpoints nothing is ever safe"):
        made_by("never=testbed --protocol none", task)


def test_an_engine_of_ours_with_options_keeps_what_it_does_differently() -> None:
    texts = ("early=testbed --spare-lines 0", "plain=testbed --delivery plain", "plain=testbed --delivery=plain")
    found = [Engine.parse(text) for text in texts]
    assert [(each.name, each.waits_s) for each in found] == [("early", 0.0), ("plain", 0.0), ("plain", 0.0)]
    once, at_once = ResultDelivery.EXACTLY_ONCE, ResultDelivery.AT_LEAST_ONCE
    assert [each.delivery for each in found] == [once, at_once, at_once]
