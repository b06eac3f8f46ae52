"""Journals: whole lines in the order of writing, whoever writes and however the writer ends."""

import os
import subprocess
import sys
import time

import pytest

from infra.journal import Followed, Journal, read_journal

WRITES = """
import sys
from pathlib import Path
from infra.journal import Journal
journal = Journal(Path(sys.argv[1]))
for number in range(200):
    journal.write("tick", writer=sys.argv[2], number=number, text="x" * 5000)
"""


def test_events_come_back_as_they_were_written(tmp_path):
    journal, before_ns = Journal(tmp_path / "new" / "log.jsonl"), time.time_ns()
    journal.write("started", rate=2.5, targets=["worker-1"], text="naïve\nword")
    journal.write("ended", at_ns=17)
    first, second = read_journal(tmp_path / "new" / "log.jsonl")
    assert before_ns <= first.pop("at_ns") <= time.time_ns()
    assert first == {"event": "started", "rate": 2.5, "targets": ["worker-1"], "text": "naïve\nword"}
    assert second == {"event": "ended", "at_ns": 17}


def test_an_event_is_there_as_soon_as_it_is_written(tmp_path):
    journal = Journal(tmp_path / "log.jsonl")
    journal.write("started")
    assert [entry["event"] for entry in read_journal(tmp_path / "log.jsonl")] == ["started"]
    journal.close()


def test_a_journal_that_was_never_begun_is_empty(tmp_path):
    assert read_journal(tmp_path / "log.jsonl") == []


def test_a_torn_last_line_is_left_out(tmp_path):
    path = tmp_path / "log.jsonl"
    Journal(path).write("whole")
    with path.open("ab") as file:
        file.write(b'{"event": "torn", "at_ns": 12')
    assert [entry["event"] for entry in read_journal(path)] == ["whole"]


def test_a_successor_goes_on_after_a_torn_line(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"event": "whole", "at_ns": 1}\n{"event": "torn", "at_')
    Journal(path).write("restarted")
    Journal(path).write("ready")
    assert [entry["event"] for entry in read_journal(path)] == ["whole", "restarted", "ready"]


def test_several_processes_write_whole_lines(tmp_path):
    path = tmp_path / "log.jsonl"
    writers = [subprocess.Popen([sys.executable, "-c", WRITES, str(path), name]) for name in "abc"]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    found = read_journal(path)
    assert len(found) == 600
    for name in "abc":
        assert [entry["number"] for entry in found if entry["writer"] == name] == list(range(200))


class Numbers:
    """Keeps the numbers of all entries, and counts how many were taken in, ever."""

    taken = 0

    def __init__(self):
        self.found = []

    def take(self, entry):
        Numbers.taken += 1
        self.found.append(entry["number"])


@pytest.fixture
def followed(tmp_path):
    Numbers.taken = 0
    journal = Journal(tmp_path / "log.jsonl")
    for number in range(3):
        journal.write("tick", number=number)
    return Followed(tmp_path / "log.jsonl", Numbers)


def test_a_followed_journal_is_read_on_from_where_the_last_look_ended(tmp_path, followed):
    assert followed.look().found == [0, 1, 2]
    assert followed.look().found == [0, 1, 2]
    Journal(tmp_path / "log.jsonl").write("tick", number=3)
    assert followed.look().found == [0, 1, 2, 3]
    assert Numbers.taken == 4


def test_a_line_is_taken_in_when_it_is_whole(tmp_path, followed):
    with (tmp_path / "log.jsonl").open("ab", buffering=0) as file:
        file.write(b'{"event": "tick", "num')
        assert followed.look().found == [0, 1, 2]
        file.write(b'ber": 3}\n')
        assert followed.look().found == [0, 1, 2, 3]
        file.write(b'{"event": "\xc3')  # a writer was killed amid a letter
    Journal(tmp_path / "log.jsonl").write("tick", number=4)
    assert followed.look().found == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("line", ['{"event": "tick", "at_ns": 1}', "5", '["tick"]', '"tick"'])
def test_an_entry_that_cannot_be_used_is_left_out_and_said_once(tmp_path, followed, caplog, line):
    with (tmp_path / "log.jsonl").open("a") as file:
        file.write(line + "\n")
    Journal(tmp_path / "log.jsonl").write("tick", number=3)
    assert followed.look().found == [0, 1, 2, 3]
    assert followed.look().found == [0, 1, 2, 3]
    (said,) = caplog.messages
    assert str(tmp_path / "log.jsonl") in said


@pytest.mark.parametrize("again", [1, 3, 5])
def test_a_journal_that_was_truncated_and_written_again_is_taken_in_anew(tmp_path, followed, again):
    followed.look()
    os.truncate(tmp_path / "log.jsonl", 0)
    journal = Journal(tmp_path / "log.jsonl")
    for number in range(again):
        journal.write("tick", number=10 + number)
    assert followed.look().found == [10 + number for number in range(again)]


def test_a_journal_that_was_replaced_is_taken_in_anew(tmp_path, followed):
    followed.look()
    text = (tmp_path / "log.jsonl").read_bytes()
    (tmp_path / "new.jsonl").write_bytes(text + b'{"event": "tick", "at_ns": 1, "number": 7}\n')
    (tmp_path / "new.jsonl").rename(tmp_path / "log.jsonl")
    assert followed.look().found == [0, 1, 2, 7]
    assert Numbers.taken == 3 + 4
    (tmp_path / "log.jsonl").unlink()
    assert followed.look().found == []
