"""The batch job ends with one line if a message can't be used: the line names the message."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from aftershock.run.live_run import complaint
from spark_jobs.tables import job
from spark_jobs.tables.bad_messages import bad_message
from spark_jobs.tables.orders import Orders

LINE = "the topic input, partition 1, offset 20: no Arrow batch: Expected to read 7 bytes"
PYTHON = f"""An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "batched_messages.py", line 90, in _records
    raise _unusable(message, found)
ValueError: {LINE}

JVM stacktrace:
org.apache.spark.SparkException: Job aborted
"""
RAISED = f"Job aborted due to stage failure: Lost task 0.0: [USER_RAISED_EXCEPTION] {LINE} SQLSTATE: P0001\n\tat org.x"


@pytest.mark.parametrize("error", [PYTHON, RAISED, LINE], ids=["python", "raised", "alone"])
def test_the_message_is_told_and_nothing_else(error: str) -> None:
    assert bad_message(error) == LINE


def test_other_errors_name_no_message() -> None:
    assert bad_message("no such table: the topic input") is None


class Session:
    """Stands for a Spark session and for what makes it."""

    stopped = False

    def appName(self, _name: str) -> Session:
        return self

    def getOrCreate(self) -> Session:
        return self

    def stop(self) -> None:
        self.stopped = True


def fails_with(error: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    """The job is about to carry out a stage that fails so."""

    def fails(*_: object) -> None:
        raise PySparkException(error)

    session, orders = Session(), Orders(folder / "orders")
    session.builder = session
    orders.give("archive", [])
    monkeypatch.setattr(job, "SparkSession", session)
    monkeypatch.setattr(job, "STAGES", {"archive": fails})
    monkeypatch.setattr(sys, "argv", ["job.py", str(folder), str(orders.folder)])
    return session


def test_an_error_about_something_else_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = fails_with("no such table", tmp_path, monkeypatch)
    with pytest.raises(PySparkException, match="no such table"):
        job.main()
    assert session.stopped


def test_the_job_ends_with_the_line_that_a_user_gets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    session = fails_with(PYTHON, tmp_path, monkeypatch)
    with pytest.raises(SystemExit) as end:
        job.main()
    assert end.value.code == f"Error: {LINE}"
    assert session.stopped
    logged = capsys.readouterr().err
    assert "Traceback" in logged, "the log has the whole of it"
    (tmp_path / "tables.log").write_text(f"{logged}{end.value.code}\n", encoding="utf-8")
    assert complaint(tmp_path, "tables.log") == f"Error: {LINE}"
