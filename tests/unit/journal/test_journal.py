"""Journals: whole lines in the order of writing, with any number of writers and any end of a writer."""

import errno
import io
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass

import pytest

from journal.codec import LONGEST_LINE, Vocabulary, encode
from journal.event import Event
from journal.events.common import EntriesLost
from journal.reader import JournalFollower, events, losses, raw_entries
from journal.writer import Journal

TICK = """
from dataclasses import dataclass
from journal.event import Event
@dataclass(frozen=True)
class Tick(Event, name="tick"):
    number: int
    text: str = ""
    writer: str = ""
"""
WRITES = (
    TICK
    + """
import sys
from pathlib import Path
from journal.writer import Journal
journal = Journal(Path(sys.argv[1]))
for number in range(200):
    journal.record(Tick(number, "x" * 5000, sys.argv[2]))
"""
)


@dataclass(frozen=True)
class Tick(Event, name="tick"):
    number: int
    text: str = ""


@dataclass(frozen=True)
class Begun(Event, name="begun"):
    pass


@dataclass(frozen=True)
class Started(Event, name="started"):
    rate: float
    targets: tuple[str, ...]
    text: str


def test_events_come_back_as_they_were_written(tmp_path):
    journal, before_ns = Journal(tmp_path / "new" / "log.jsonl"), time.time_ns()
    journal.record(Started(2.5, ("worker-1",), "naïve\nword"))
    journal.record(Begun(at_ns=17))
    first, second = list(raw_entries(tmp_path / "new" / "log.jsonl"))
    assert before_ns <= first.pop("at_ns") <= time.time_ns()
    assert first == {"event": "started", "rate": 2.5, "targets": ["worker-1"], "text": "naïve\nword"}
    assert second == {"event": "begun", "at_ns": 17}


@pytest.mark.parametrize(
    ("text", "read"),
    [("/runs/\udcff", "/runs/?"), ("naïve \u2028 \U0001f600 \\udcff\r\n", "naïve \u2028 \U0001f600 \\udcff\r\n")],
)
def test_what_is_no_text_keeps_no_event_from_its_readers(tmp_path, text, read):
    Journal(tmp_path / "log.jsonl").record(Tick(1, text))
    assert [event.text for event in events(tmp_path / "log.jsonl", Vocabulary(Tick))] == [read]


def test_an_event_is_there_as_soon_as_it_is_written(tmp_path):
    journal = Journal(tmp_path / "log.jsonl")
    journal.record(Started(1.0, (), ""))
    assert [entry["event"] for entry in raw_entries(tmp_path / "log.jsonl")] == ["started"]
    journal.close()


def test_a_journal_that_was_never_begun_is_empty(tmp_path):
    assert list(raw_entries(tmp_path / "log.jsonl")) == []


def test_a_torn_last_line_is_left_out(tmp_path):
    path = tmp_path / "log.jsonl"
    Journal(path).record(Begun())
    with path.open("ab") as file:
        file.write(b'{"event": "torn", "at_ns": 12')
    assert [entry["event"] for entry in raw_entries(path)] == ["begun"]


def test_a_successor_goes_on_after_a_torn_line(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"event": "whole", "at_ns": 1}\n{"event": "torn", "at_')
    Journal(path).record(Begun())
    Journal(path).record(Tick(1))
    assert [entry["event"] for entry in raw_entries(path)] == ["whole", "begun", "tick"]


def test_several_processes_write_whole_lines(tmp_path):
    path = tmp_path / "log.jsonl"
    writers = [subprocess.Popen([sys.executable, "-c", WRITES, str(path), name]) for name in "abc"]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    found = list(raw_entries(path))
    assert len(found) == 600
    for name in "abc":
        assert [entry["number"] for entry in found if entry["writer"] == name] == list(range(200))


class Numbers:
    """Keeps the numbers of all events, and counts how many were taken in, ever."""

    taken = 0

    def __init__(self):
        self.found = []

    def take(self, event):
        Numbers.taken += 1
        self.found.append(event.number)


@pytest.fixture
def followed(tmp_path):
    Numbers.taken = 0
    journal = Journal(tmp_path / "log.jsonl")
    for number in range(3):
        journal.record(Tick(number))
    return JournalFollower(tmp_path / "log.jsonl", Vocabulary(Tick), Numbers)


def test_a_followed_journal_is_read_on_from_where_the_last_look_ended(tmp_path, followed):
    assert followed.poll().found == [0, 1, 2]
    assert followed.poll().found == [0, 1, 2]
    Journal(tmp_path / "log.jsonl").record(Tick(3))
    assert followed.poll().found == [0, 1, 2, 3]
    assert Numbers.taken == 4


def test_a_line_is_taken_in_when_it_is_whole(tmp_path, followed):
    with (tmp_path / "log.jsonl").open("ab", buffering=0) as file:
        file.write(b'{"event": "tick", "at_ns": 1, "num')
        assert followed.poll().found == [0, 1, 2]
        file.write(b'ber": 3}\n')
        assert followed.poll().found == [0, 1, 2, 3]
        file.write(b'{"event": "\xc3')  # a writer was killed amid a letter
    Journal(tmp_path / "log.jsonl").record(Tick(4))
    assert followed.poll().found == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("line", ['{"event": "tick", "at_ns": 1}', "5", '["tick"]', '"tick"'])
def test_an_entry_that_cannot_be_used_is_left_out_and_said_once(tmp_path, followed, caplog, line):
    with (tmp_path / "log.jsonl").open("a") as file:
        file.write(line + "\n")
    Journal(tmp_path / "log.jsonl").record(Tick(3))
    assert followed.poll().found == [0, 1, 2, 3]
    assert followed.poll().found == [0, 1, 2, 3]
    (said,) = caplog.messages
    assert str(tmp_path / "log.jsonl") in said


class Inverses(Numbers):
    """Keeps the inverse of each number."""

    def take(self, event):
        self.found.append(1 / event.number)


def test_an_event_with_which_a_digest_cannot_calculate_is_left_out(tmp_path, caplog):
    journal = Journal(tmp_path / "log.jsonl")
    for number in (1, 0, 2):
        journal.record(Tick(number))
    followed = JournalFollower(tmp_path / "log.jsonl", Vocabulary(Tick), Inverses)
    assert followed.poll().found == [1.0, 0.5]
    assert [message.count("ZeroDivisionError") for message in caplog.messages] == [1]


@pytest.mark.parametrize("again", [1, 3, 5])
def test_a_journal_that_was_truncated_and_written_again_is_taken_in_anew(tmp_path, followed, again):
    followed.poll()
    os.truncate(tmp_path / "log.jsonl", 0)
    journal = Journal(tmp_path / "log.jsonl")
    for number in range(again):
        journal.record(Tick(10 + number))
    assert followed.poll().found == [10 + number for number in range(again)]


def test_a_journal_that_was_replaced_is_taken_in_anew(tmp_path, followed):
    followed.poll()
    text = (tmp_path / "log.jsonl").read_bytes()
    (tmp_path / "new.jsonl").write_bytes(text + b'{"event": "tick", "at_ns": 1, "number": 7}\n')
    (tmp_path / "new.jsonl").rename(tmp_path / "log.jsonl")
    assert followed.poll().found == [0, 1, 2, 7]
    assert Numbers.taken == 3 + 4
    (tmp_path / "log.jsonl").unlink()
    assert followed.poll().found == []


@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own with room for a few pages, and a way to make room on it."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = os.geteuid() == 0 and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if not mounted or mounted.returncode:
        pytest.skip("only root can mount a small file system (the test of a limited file size needs no root)")
    (folder / "ballast").write_bytes(bytes(40 * 1024))
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def numbers(path):
    return [entry["number"] for entry in raw_entries(path) if entry["event"] == "tick"]


def losses_told(path):
    return [(entry["count"], entry["error"]) for entry in raw_entries(path) if entry["event"] == EntriesLost.name]


def test_entries_that_a_full_disk_took_are_counted_and_torn_lines_swallow_none(small_disk, caplog):
    path = small_disk / "log.jsonl"
    journal = Journal(path)
    for number in range(12):
        journal.record(Tick(number, "x" * 3000))
    there = numbers(path)
    assert there == [*range(len(there))]
    assert 0 < len(there) < 12
    assert not path.read_bytes().endswith(b"\n")  # a part of the next one fitted
    assert len([said for said in caplog.messages if "No space left on device" in said]) == 1
    (small_disk / "ballast").unlink()
    journal.record(Tick(12))
    assert numbers(path) == [*there, 12]
    ((count, error),) = losses_told(path)
    assert (count, error) == (12 - len(there), "[Errno 28] No space left on device")
    assert str(count) in caplog.messages[-1]
    journal.record(Tick(13))
    assert (numbers(path)[-1], len(losses_told(path))) == (13, 1)


def test_a_line_torn_by_another_writer_swallows_no_entry(small_disk):
    path = small_disk / "log.jsonl"
    other, journal = Journal(path), Journal(path)
    journal.record(Tick(0))
    other.record(Tick(1, "x" * 60_000))
    assert not path.read_bytes().endswith(b"\n")
    (small_disk / "ballast").unlink()
    journal.record(Tick(2))
    assert numbers(path) == [0, 2]


def test_what_was_lost_is_said_at_the_end_at_the_latest(small_disk):
    path = small_disk / "log.jsonl"
    journal = Journal(path)
    journal.record(Tick(0, "x" * 60_000))
    (small_disk / "ballast").unlink()
    journal.close()
    assert [count for count, _ in losses_told(path)] == [1]


FILLS = (
    TICK
    + """
import resource, sys
from pathlib import Path
from journal.writer import Journal
journal = Journal(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, resource.RLIM_INFINITY))
for number in range(10):
    journal.record(Tick(number, "x" * 900))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
journal.record(Tick(10))
"""
)


def test_a_limited_file_size_is_a_full_disk(tmp_path):
    path = tmp_path / "log.jsonl"
    done = subprocess.run([sys.executable, "-c", FILLS, str(path)], capture_output=True, text=True, check=True)
    assert numbers(path) == [0, 1, 2, 3, 4, 10]
    assert losses_told(path) == [(5, "[Errno 27] File too large")]
    assert [line.count("File too large") for line in done.stderr.splitlines()] == [1, 1]  # when it began and ended


@pytest.mark.parametrize("surplus", [0, 1])
def test_an_entry_that_no_reader_would_take_is_counted_as_lost(tmp_path, followed, caplog, surplus):
    path = tmp_path / "log.jsonl"
    journal, entry = Journal(path), Tick(3)
    room = LONGEST_LINE - len(encode(entry)) + surplus
    journal.record(Tick(3, "x" * room, at_ns=entry.at_ns))
    journal.record(Tick(4))
    assert followed.poll().found == numbers(path) == ([0, 1, 2, 4] if surplus else [0, 1, 2, 3, 4])
    count, why = losses(path)
    assert (count, "an entry has 1,048,577 bytes, more than 1,048,576" in why) == (surplus, bool(surplus))
    assert len(caplog.messages) == 2 * surplus  # when it was lost, and that entries are written again


def test_a_disk_that_cannot_be_read_ends_no_service(tmp_path, monkeypatch):
    path = tmp_path / "log.jsonl"
    journal = Journal(path)
    journal.record(Tick(0))

    def fails(*_):
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(os, "pread", fails)
        journal.record(Tick(1))
    journal.record(Tick(2))
    assert numbers(path) == [0, 2]
    assert losses_told(path) == [(1, "[Errno 5] Input/output error")]


class ShortWrites(io.FileIO):
    """Takes seven bytes at most at a time, as the kernel may."""

    def write(self, data):
        return super().write(bytes(data[:7]))


def test_a_write_that_was_short_is_gone_on_with(tmp_path):
    path = tmp_path / "log.jsonl"
    journal = Journal(path)
    journal._file = ShortWrites(path, "a+b")
    for number in range(3):
        journal.record(Tick(number))
    assert numbers(path) == [0, 1, 2]


@pytest.mark.parametrize(
    "line",
    [
        *(b"5", b'["tick"]', b'"tick"', b'{"event": "\xc3', b"", b"[" * 200_000),
        *(b'{"at_ns": 1, "number": 7}', b'{"event": 5, "at_ns": 1, "number": 7}', b'{"event": "tick", "number": 7}'),
        *(b'{"event": "tick", "at_ns": %s, "number": 7}' % odd for odd in (b'"1"', b"1.5", b"true", b"null")),
        b'{"event": "tick", "at_ns": %d, "number": 7}' % 2**63,
    ],
)
def test_a_line_that_is_no_entry_is_passed_over(tmp_path, line):
    path = tmp_path / "log.jsonl"
    Journal(path).record(Tick(0))
    with path.open("ab") as file:
        file.write(line + b"\n")
    Journal(path).record(Tick(1))
    assert numbers(path) == [0, 1]


@pytest.mark.parametrize("surplus", [1, LONGEST_LINE])
def test_a_line_that_is_too_long_is_skipped_and_not_read_again_and_again(tmp_path, followed, surplus):
    followed.poll()
    path = tmp_path / "log.jsonl"
    with path.open("ab", buffering=0) as file:
        file.write(b'{"event": "tick", "at_ns": 1, "number": 7, "x": "' + b"x" * (LONGEST_LINE + surplus))
        assert followed.poll().found == [0, 1, 2]
        assert path.stat().st_size - followed._at <= LONGEST_LINE
        file.write(b'"}\n')
    Journal(path).record(Tick(3))
    assert followed.poll().found == numbers(path) == [0, 1, 2, 3]


@pytest.mark.parametrize("fields", [{}, {"count": "x", "error": "e"}, {"count": 1}, {"count": -1, "error": "e"},
                                    {"count": True, "error": "e"}, {"count": 1, "error": ["e"]}])  # fmt: skip
def test_losses_of_another_shape_are_none(tmp_path, fields):
    lost = {"event": EntriesLost.name, "at_ns": 1}
    (tmp_path / "log.jsonl").write_text(json.dumps(lost | fields) + "\n", encoding="utf-8")
    assert losses(tmp_path / "log.jsonl") == (0, "")
    Journal(tmp_path / "log.jsonl").record(EntriesLost(2, "full"))
    assert losses(tmp_path / "log.jsonl") == (2, "full")
