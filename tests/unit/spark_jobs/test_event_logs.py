"""The event logs of Spark, which a driver on a host may have replaced by anything: no JVM is needed to read them."""

import os
import stat
from pathlib import Path

import pytest

from spark_jobs.tables.streaming import event_logs
from spark_jobs.tables.streaming.event_logs import spark_events

JOB = '{"Event":"SparkListenerJobStart","Job ID":%d}\n'
KINDS = {"SparkListenerJobStart"}


def test_of_the_event_logs_only_regular_files_of_the_run_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "raw" / "spark-events"
    folder.mkdir(parents=True)
    (tmp_path / "other").write_text(JOB % 7)
    (folder / "app-1").write_text(JOB % 1)
    (folder / "app-2").symlink_to(tmp_path / "other")
    os.mkfifo(folder / "app-4")
    (folder / "app-5").mkdir()
    if not os.geteuid():
        os.mknod(folder / "app-6", stat.S_IFCHR | 0o666, os.makedev(1, 5))  # /dev/zero
    (folder / "app-7").write_text(JOB % 2)
    assert [event["Job ID"] for event in spark_events(tmp_path / "raw", KINDS)] == [1, 2]


def test_an_event_log_with_a_second_name_is_read_as_recompute_makes_one(tmp_path: Path) -> None:
    (tmp_path / "raw" / "spark-events").mkdir(parents=True)
    (tmp_path / "old").write_text(JOB % 3)
    (tmp_path / "raw" / "spark-events" / "app-1").hardlink_to(tmp_path / "old")
    assert [event["Job ID"] for event in spark_events(tmp_path / "raw", KINDS)] == [3]


def test_of_an_event_log_with_a_line_without_end_what_is_before_that_is_read(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(event_logs, "LONGEST_LINE", 100)
    folder = tmp_path / "raw" / "spark-events"
    folder.mkdir(parents=True)
    whole = (JOB % 1).rstrip()
    (folder / "app-1").write_text(whole.ljust(99) + "\n" + "x" * 101 + JOB % 2)
    (folder / "app-2").write_text(JOB % 3)
    assert [event["Job ID"] for event in spark_events(tmp_path / "raw", KINDS)] == [1, 3]
    told = "spark-events/app-1 has a line of more than 100 characters: it is not read, nor what follows\n"
    assert capsys.readouterr().err == told


@pytest.mark.parametrize("torn", [b'"Job', b'"Job ID":2,"\xc3'])
def test_a_line_that_a_killed_driver_did_not_finish_is_left_out(tmp_path: Path, torn: bytes) -> None:
    folder = tmp_path / "raw" / "spark-events"
    folder.mkdir(parents=True)
    (folder / "app-1.inprogress").write_bytes((JOB % 1).encode() + b'{"Event":"SparkListenerJobStart",' + torn)
    (folder / "app-2").write_text(JOB % 3)
    assert [event["Job ID"] for event in spark_events(tmp_path / "raw", KINDS)] == [1, 3]
