"""What the topics of an own job are sent: lines and tables, keys, times, and turns."""

import json
from datetime import datetime

import pytest

from experiments.errors import BadInput
from experiments.workloads.catalogue import InputSpec, OwnJobSpec
from workloads import recorded
from workloads.inputs import sources, streams
from workloads.schedule import Schedule

START_NS = 1_795_173_799_675_000_000
SCHEDULE = Schedule(START_NS, 100.0, 3)


def job(**inputs):
    return OwnJobSpec(program="job.py", inputs=inputs)


@pytest.fixture
def lines(tmp_path):
    path = tmp_path / "orders.jsonl"
    path.write_text('{"order": 1}\n{"order": 2}\n{"order": 3}\n', encoding="utf-8")
    return InputSpec(file=str(path))


def test_a_line_is_a_record_and_the_file_comes_round_again(lines):
    (stream,) = streams(job(orders=lines), SCHEDULE)
    assert (stream.topic, stream.schedule, stream.keys) == ("orders", SCHEDULE, None)
    assert stream.values(2, 5) == [b'{"order": 3}', b'{"order": 1}', b'{"order": 2}']


def test_a_file_is_read_once_however_often_the_schedule_is_another(tmp_path):
    path = tmp_path / "dated.jsonl"
    path.write_text('{"ms": {due_ms}}\n', encoding="utf-8")
    (source,) = sources(job(orders=InputSpec(file=str(path))))
    path.unlink()
    for schedule in (SCHEDULE, Schedule(START_NS + 10**9, 50.0, 3)):
        stream = source.under(schedule)
        assert stream.schedule == schedule
        assert stream.values(1, 2) == [b'{"ms": %d}' % schedule.due_ms(1)]


def test_topics_take_turns_and_keep_the_schedule_together(lines):
    found = streams(job(orders=lines, bids=InputSpec(workload={"name": "nexmark"})), SCHEDULE)
    assert [stream.topic for stream in found] == ["orders", "bids"]
    due = sorted(stream.schedule.due_ms(position) for stream in found for position in range(50))
    assert due == [SCHEDULE.due_ms(position) for position in range(100)]
    assert json.loads(found[1].values(0, 1)[0])["kind"] == "person"


def test_a_record_that_asks_for_its_time_and_number_gets_them(tmp_path):
    path = tmp_path / "dated.jsonl"
    path.write_text('{"at": "{due}", "ms": {due_ms}, "id": {number}, "set": {"a": 1}}\n', encoding="utf-8")
    (stream,) = streams(job(orders=InputSpec(file=str(path))), SCHEDULE)
    first, later = (json.loads(stream.values(position, position + 1)[0]) for position in (0, 250))
    assert (first["ms"], first["id"], first["set"]) == (START_NS // 10**6, 0, {"a": 1})
    assert (later["ms"], later["id"]) == (first["ms"] + 2500, 250)
    assert datetime.fromisoformat(later["at"]).timestamp() * 1000 == later["ms"]


def test_a_table_keeps_its_keys_and_its_braces(tmp_path):
    path = tmp_path / "replayed.parquet"
    recorded.write(path, [b"{number}", b"\xff\x00"], [b"a", None])
    (stream,) = streams(job(orders=InputSpec(file=str(path))), SCHEDULE)
    assert stream.values(0, 3) == [b"{number}", b"\xff\x00", b"{number}"]
    assert stream.keys(1, 4) == [None, b"a", None]


@pytest.mark.parametrize("name", ["nowhere.jsonl", "empty.jsonl", "text.parquet"])
def test_a_file_that_holds_no_records_is_named(tmp_path, name):
    if name != "nowhere.jsonl":
        (tmp_path / name).write_text("" if name == "empty.jsonl" else "x", encoding="utf-8")
    with pytest.raises(BadInput, match=r"^workload\.inputs\.orders\.file: [^\n]*$"):
        streams(job(orders=InputSpec(file=str(tmp_path / name))), SCHEDULE)


def test_what_is_replayed_is_empty_until_it_was_copied():
    (stream,) = streams(job(orders=InputSpec(replay="kafka.example.com:9092/orders")), SCHEDULE)
    assert stream.values(0, 5) == []
