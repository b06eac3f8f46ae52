"""The batch job ends with one line if Spark gives up: it names the message that can't be used."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from aftershock.run.live_run import complaint
from spark_jobs.tables import job
from spark_jobs.tables.orders import Orders
from spark_jobs.tables.spark_errors import in_one_line

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
    assert in_one_line(error) == LINE


@pytest.mark.parametrize(
    ("error", "line"),
    [("\n no such table \nat org.x", "no such table"), ("", "no reason given")],
)
def test_of_other_errors_the_first_line_is_told(error: str, line: str) -> None:
    assert in_one_line(error) == line


class Session:
    """Stands for a Spark session and for what makes it."""

    stopped = False

    def appName(self, _name: str) -> Session:
        return self

    def getOrCreate(self) -> Session:
        return self

    def stop(self) -> None:
        self.stopped = True


def test_the_job_ends_with_the_line_that_a_user_gets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: object) -> None:
        raise PySparkException(PYTHON)

    session, orders = Session(), Orders(tmp_path / "orders")
    session.builder = session
    orders.give("archive", [])
    monkeypatch.setattr(job, "SparkSession", session)
    monkeypatch.setattr(job, "STAGES", {"archive": fails})
    monkeypatch.setattr(sys, "argv", ["job.py", str(tmp_path), str(orders.folder)])
    with pytest.raises(SystemExit) as end:
        job.main()
    assert end.value.code == f"Error: {LINE}"
    assert session.stopped
    logged = capsys.readouterr().err
    assert "Traceback" in logged, "the log has the whole of it"
    (tmp_path / "tables.log").write_text(f"{logged}{end.value.code}\n", encoding="utf-8")
    assert complaint(tmp_path, "tables.log") == f"Error: {LINE}"
