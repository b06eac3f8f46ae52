"""The batch job of a live run: one process for both stages, seen to end, and named when it fails.

In the place of spark-submit stands a program that follows the same orders.
"""

import itertools
import re
import secrets
import sys

import pytest

from aftershock.run import batch_job
from experiments.errors import EnvironmentFailure
from infra import launch
from infra.cluster import Handle
from infra.processes import members
from infra.services import spark
from journal.events.services import RecordsSent
from journal.writer import Journal
from results.runs.store import Run
from tests.unit.example_events import example
from tests.unit.marked_processes import wait_for

OBEDIENT = """
import os, sys
from pathlib import Path
from spark_jobs.tables.orders import Orders
orders = Orders(Path(sys.argv[1]))
while not orders.finished("build"):
    stage, arguments = orders.take(60.0)
    with open("done", "a") as told:
        print(stage, *arguments, os.getpid(), file=told)
    orders.finish(stage)
"""


@pytest.fixture
def owner():
    handle = Handle("run-1", "local", secrets.token_hex(8), "/nowhere")
    yield handle
    launch.stop(handle.token, 0.0)


@pytest.fixture
def run(tmp_path):
    found = Run("run-1", tmp_path / "run-1" / "result")
    found.raw.mkdir(parents=True)
    return found


@pytest.fixture
def program(monkeypatch):
    def put(text):
        def command(_master, _program, _result, orders, **_settings):
            return [sys.executable, "-c", text, orders]

        monkeypatch.setattr(spark, "submit_command", command)

    return put


def test_both_stages_are_done_by_the_process_that_was_started_ahead(run, owner, program):
    program(OBEDIENT)
    batch_job.start(run, owner)
    wait_for(lambda: members(owner.token))
    (started,) = members(owner.token)
    batch_job.start(run, owner)
    batch_job.carry_out("archive", run, "127.0.1.1:9092", owner=owner)
    batch_job.carry_out("build", run, owner=owner)
    done = (run.root.parent / "done").read_text().splitlines()
    assert done == [f"archive 127.0.1.1:9092 {started}", f"build {started}"]
    wait_for(lambda: not members(owner.token))


def test_a_stage_starts_the_job_where_none_runs(run, owner, program):
    program(OBEDIENT)
    batch_job.carry_out("build", run, owner=owner)
    assert (run.root.parent / "done").read_text().startswith("build ")


@pytest.mark.parametrize("ahead", [True, False])
def test_a_job_that_ends_before_its_stage_is_done_is_named_with_its_last_error(run, owner, program, ahead):
    program("print('NoSuchTopicError: input'); print('bye')")
    if ahead:
        batch_job.start(run, owner)
    told = re.escape("the job archive failed (NoSuchTopicError: input); see tables.log of the run")
    with pytest.raises(EnvironmentFailure, match=told):
        batch_job.carry_out("archive", run, owner=owner)


def test_a_job_that_hangs_is_given_up(run, owner, program, monkeypatch):
    program("import time; time.sleep(60)")
    monkeypatch.setattr(batch_job, "LIMIT_S", 0)
    with pytest.raises(EnvironmentFailure, match="the job archive took more than 0 s"):
        batch_job.carry_out("archive", run, owner=owner)
    assert members(owner.token), "it is the teardown that ends it, by its mark"


def test_tables_built_again_need_no_cluster(run, program):
    program(OBEDIENT)
    batch_job.build_again(run)
    program("raise ValueError('no ledger')")
    with pytest.raises(EnvironmentFailure, match=r"the job build failed \(ValueError: no ledger\)"):
        batch_job.build_again(run)


@pytest.mark.parametrize(("sent", "has_both"), [([], False), ([499_999], False), ([2, 500_000], True)])
def test_a_job_of_many_records_has_both_compilers(run, sent, has_both):
    for count in sent:
        Journal(run.raw / "generator.jsonl").record(example(RecordsSent, sent=count))
    assert any(spark.FIRST_COMPILER in word for word in batch_job._command(run)) is not has_both


def test_the_job_asks_for_a_secret_listens_on_loopback_and_is_told_no_secret(run):
    words = batch_job._command(run)
    settings = {word for before, word in itertools.pairwise(words) if before == "--conf"}
    assert settings >= {
        "spark.authenticate=true",
        "spark.ui.enabled=false",
        "spark.driver.host=127.0.0.1",
        "spark.driver.bindAddress=127.0.0.1",
        "spark.python.daemon.module=aftershock_guard",
    }
    assert not [setting for setting in settings if "secret" in setting]
