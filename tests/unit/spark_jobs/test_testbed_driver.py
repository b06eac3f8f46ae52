"""When and how the testbed's driver program ends: it is a child of spark-submit, which gets the signal to stop."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from experiments.errors import EnvironmentFailure
from journal.events.common import DriverStarted
from journal.writer import Journal
from spark_jobs.testbed import driver
from spark_jobs.testbed.driver import Asked
from testbed.runtime.job import Job
from tests.unit.testbed.small_job import HERE, JOB

PARENT = """
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", sys.argv[1], sys.argv[2]])
time.sleep(600)
"""
CHILD = """
import sys
from pathlib import Path
from experiments.waiting import poll_while
from spark_jobs.testbed.driver import Asked
asked = Asked(Path(sys.argv[1]))
print("waits", asked.has_spark, flush=True)
poll_while(lambda: asked.to_drain and not asked.to_stop, interval_s=0.05)
print("ends", asked.has_spark, flush=True)
"""
LONGEST_S = 60.0  # much more than it takes


@pytest.fixture
def drained(tmp_path: Path) -> Path:
    path = tmp_path / "job.drain"
    path.touch()
    return path


def test_a_drained_program_ends_with_spark_submit_which_alone_gets_the_signal(drained: Path) -> None:
    command = [sys.executable, "-c", PARENT, CHILD, str(drained)]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "waits True\n"
        parent.terminate()
        told, _ = parent.communicate(timeout=LONGEST_S)  # the child has the other end of the pipe, too
        assert told == "ends False\n"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(parent.pid, signal.SIGKILL)


def test_a_program_is_asked_to_stop_by_a_signal_and_to_drain_by_a_file(drained: Path, tmp_path: Path) -> None:
    asked = Asked(tmp_path / "other.drain")
    assert (asked.to_stop, asked.to_drain, asked.has_spark) == (False, False, True)
    assert Asked(drained).to_drain
    asked.stop(signal.SIGTERM, None)
    assert (asked.to_stop, asked.has_spark) == (True, True)


@pytest.mark.parametrize("is_second", [False, True])
def test_only_the_first_driver_ends_the_run_because_the_store_refuses_at_its_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_second: bool
) -> None:
    """A second one knows that the store works. It waits for it, as the first one would have."""
    store, job_path, journal_path = (tmp_path / name for name in ("store", "query.json", "query.jsonl"))
    store.write_text("no directory, as long as it refuses")
    job = replace(JOB, store=str(store), store_key_file=str(tmp_path / "store.key"))
    job_path.write_text(json.dumps(job.to_json()), encoding="utf-8")
    if is_second:
        Journal(journal_path).record(DriverStarted())
    begun: list[Job] = []
    monkeypatch.setattr(sys, "argv", ["driver.py", str(job_path), str(journal_path)])
    monkeypatch.setattr(driver, "_session", lambda job: SimpleNamespace(stop=lambda: None))
    monkeypatch.setattr(driver, "run", lambda spark, job, journal, asked: begun.append(job))
    monkeypatch.setattr(signal, "signal", lambda number, act: None)
    with pytest.raises(SystemExit) as end:
        driver.main()
    assert (end.value.code, begun) == ((0, [job]) if is_second else (EnvironmentFailure.exit_code, []))


def test_a_stage_that_ends_by_any_error_fails_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is neither Spark's nor Py4J's ended the run with exit code 0."""

    def collect() -> None:
        raise OSError("the result of a task cannot be read")

    stage = SimpleNamespace(mapPartitionsWithIndex=lambda serve: SimpleNamespace(collect=collect))
    context = SimpleNamespace(parallelize=lambda items, partitions: stage)
    spark = SimpleNamespace(sparkContext=context, conf=SimpleNamespace(get=lambda name: HERE))
    monkeypatch.setattr(driver, "live_executors", lambda spark: set())
    job = replace(JOB, store=str(tmp_path / "store"))
    with pytest.raises(EnvironmentFailure, match=r"^the stage of slots failed: OSError: the result of a task cannot"):
        driver.run(spark, job, Journal(tmp_path / "journal.jsonl"), Asked(tmp_path / "job.drain"))
