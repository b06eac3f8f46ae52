"""How the batch that fills an interval is approached, on executors whose batches cost what a formula says."""

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JJavaError, Py4JNetworkError
from pyspark.errors import StreamingQueryException

from aftershock.run.engines.engine import read_calibration
from experiments.engines import EngineSpec
from experiments.errors import EnvironmentFailure
from experiments.workloads.catalogue import NexmarkSpec
from infra.broker import Broker
from journal.events.common import FAILURES
from journal.events.query import BatchTiming
from journal.reader import events
from spark_jobs.calibration import Calibration
from spark_jobs.streaming import calibration, driver
from spark_jobs.streaming.calibration import CLOSE_ENOUGH, LOAD_FACTOR, WARM, approach, batches_of
from spark_jobs.streaming.config import JobConfig
from workloads.sending.producing import TopicSender

TARGET_S = 7.6
FOUND = Calibration(100.0, 0.4, 125.0, 2)


@dataclass
class Executors:
    """Batches take `fixed_s`, `known_s` of it seen as overhead, and `overhead_s` and `work_s` per thousand records."""

    fixed_s: float
    known_s: float
    work_s: float
    overhead_s: float = 0.0
    pace: dict[str, float] = field(default_factory=dict)  # by topic, where the machine is slower for a while
    asked: list[str] = field(default_factory=list)

    def batch(self, records: int, pace: float = 1.0) -> BatchTiming:
        per_thousand_s, overhead_s = self.work_s + self.overhead_s, self.overhead_s * records / 1000
        return BatchTiming(records, (self.fixed_s + per_thousand_s * records / 1000) * pace, self.known_s + overhead_s)

    def measure(self, topic: str, records: int) -> list[BatchTiming]:
        self.asked.append(topic)
        first = BatchTiming(records, 30.0, 4.0)  # on cold executors, or of a query that has just started
        return [first, *[self.batch(records, self.pace.get(topic, 1.0))] * (3 if topic == WARM else 1)]


WORD_COUNT = {"fixed_s": 2.7, "known_s": 0.4, "work_s": 0.094}  # the default experiment on two idle cores, about


@pytest.mark.parametrize("fixed_s", [0.1, 0.65, 2.0, 3.0])
@pytest.mark.parametrize("known", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("work_s", [0.02, 0.19, 0.7])
@pytest.mark.parametrize("overhead_s", [0.0, 0.02])
def test_the_batch_fills_its_time(fixed_s, known, work_s, overhead_s):
    """Of an error of `CLOSE_ENOUGH`, what is scaled in proportion keeps the fixed part: here at most half of it."""
    executors = Executors(fixed_s, known * fixed_s, work_s, overhead_s)
    found = approach(executors.measure, TARGET_S)
    assert executors.batch(found.batch_records).duration_s == pytest.approx(TARGET_S, rel=CLOSE_ENOUGH * 0.55)
    assert found.load_rate == pytest.approx(LOAD_FACTOR * found.batch_records / TARGET_S)


def test_the_first_full_batch_of_the_word_count_is_close():
    executors = Executors(**WORD_COUNT)
    found = approach(executors.measure, TARGET_S)
    assert executors.asked == [WARM, "calibration-1"]
    full = executors.batch(found.batch_records)
    assert found.service_rate == pytest.approx(full.rate, rel=0.03)
    assert found.overhead_s == 0.4


@pytest.mark.parametrize("fixed_s", [0.0, 4.0])
def test_a_full_batch_that_is_not_close_is_measured_again(fixed_s):
    executors = Executors(fixed_s, known_s=0.0, work_s=0.06)
    found = approach(executors.measure, TARGET_S)
    assert executors.asked == [WARM, "calibration-1", "calibration-2"]
    assert executors.batch(found.batch_records).duration_s == pytest.approx(TARGET_S, rel=0.03)


@pytest.mark.parametrize("pace", [1.5, 1.8])
def test_a_line_drawn_while_the_machine_changed_its_pace_is_not_followed(pace):
    executors = Executors(fixed_s=0.1, known_s=0.0, work_s=0.19, pace={WARM: pace})
    records = []
    approach(lambda topic, count: records.append(count) or executors.measure(topic, count), TARGET_S)
    assert all(executors.batch(count).duration_s < 1.4 * TARGET_S for count in records)


def test_a_machine_that_was_slow_during_the_warm_up_is_asked_again():
    executors = Executors(**WORD_COUNT, pace={WARM: 2.0})
    found = approach(executors.measure, TARGET_S)
    assert executors.asked == [WARM, "calibration-1", "calibration-2", "calibration-3"]
    assert executors.batch(found.batch_records).duration_s == pytest.approx(TARGET_S, rel=0.03)


def test_of_batches_that_get_faster_the_later_half_counts():
    executors = Executors(**WORD_COUNT)

    def measure(topic: str, records: int) -> list[BatchTiming]:
        steady = executors.batch(records)
        return [executors.batch(records, pace) for pace in (2.0, 1.6, 1.3)] + [steady] * 2

    found = approach(measure, TARGET_S)
    assert executors.batch(found.batch_records).duration_s == pytest.approx(TARGET_S, rel=0.03)


@pytest.mark.parametrize(("target_s", "batches"), [(0.95, 16), (3.8, 4), (7.6, 2), (28.5, 2)])
def test_short_batches_are_measured_as_long_as_a_jvm_gets_faster(target_s, batches):
    assert batches_of(target_s) == batches


def test_batches_that_read_more_than_they_shall_are_not_awaited_beyond_the_end_of_their_input(monkeypatch):
    """Of six partitions Spark reads six records at least: of 20 batches with 2 records each, 7 use up the input."""
    measured = {}

    def measure(_spark, _config, topic, records, is_enough):
        found = []
        while not is_enough(found) and len(found) < 100:
            found.append(BatchTiming(max(records, 6), 0.5, 0.4))
        measured[topic] = len(found)
        return found

    monkeypatch.setattr(calibration, "_feed", lambda *_: None)
    monkeypatch.setattr(calibration, "_measure", measure)
    monkeypatch.setattr(calibration, "approach", lambda measure, _target_s: measure("calibration-1", 2) and FOUND)
    monkeypatch.setattr(calibration, "batches_of", lambda _target_s: 20)
    config = JobConfig(Broker(""), "", NexmarkSpec(), EngineSpec(), 1, 2, "checkpoint", "")
    assert calibration.calibrate(None, config, SimpleNamespace(record=lambda _: None)) == FOUND
    assert measured == {"calibration-1": 7}


def test_an_interval_that_the_overhead_fills_still_has_records():
    found = approach(Executors(fixed_s=9.0, known_s=9.0, work_s=0.2).measure, TARGET_S)
    assert found.batch_records > 0
    assert found.overhead_s > TARGET_S


class Unanswered(TopicSender):
    """A sender to a broker that gives no answer to the last seven records."""

    def __init__(self, _broker, topic, *_):
        self.topic, self.sent, self.failed, self._records = topic, 0, 0, 1
        self._producer = ["a message"] * 7

    def send_until(self, count):
        self.sent = count

    def finish(self, limit_s=0.0):
        """Nothing comes."""


def test_input_that_the_broker_does_not_take_ends_it(monkeypatch):
    """Otherwise batches would be awaited that never come."""
    monkeypatch.setattr(calibration, "InputSender", Unanswered)
    config = JobConfig(Broker(""), "", NexmarkSpec(), EngineSpec(), 1, 2, "checkpoint", "")
    count = calibration.WARM_RECORDS * calibration.WARM_BATCHES
    told = f"the broker took {count - 7} of {count} records for the topic {WARM}, and refused 0"
    with pytest.raises(EnvironmentFailure, match=told):
        calibration.feed_warm_up(config)


def test_a_calibration_that_fails_ends_the_run_with_its_reason(tmp_path, monkeypatch):
    """Its supervisor starts the driver again, which must not calibrate for ever."""
    tried, journal = [], tmp_path / "query.jsonl"

    def fails(*_, **given):
        tried.append(given)
        raise EnvironmentFailure("the broker took 3 of 4 records", "look at its log")

    config = JobConfig(Broker(""), "local[1]", NexmarkSpec(), EngineSpec(), 1, 2, "checkpoint", "")
    (tmp_path / "query.json").write_text(json.dumps(config.to_json()), encoding="utf-8")
    monkeypatch.setattr(driver, "_session", fails)
    monkeypatch.setattr(sys, "argv", ["driver.py", *map(str, (tmp_path / "query.json", journal, tmp_path / "none"))])
    for _ in range(2):
        with pytest.raises(SystemExit) as end:
            driver.main()
        assert end.value.code == EnvironmentFailure.exit_code
    assert tried == [{"to_calibrate": True}]
    assert [failed.error for failed in events(journal, FAILURES)] == ["the broker took 3 of 4 records; look at its log"]


def of_the_jvm(words: str) -> Py4JJavaError:
    """An error of the JVM, without one."""

    class Told(Py4JJavaError):
        def __init__(self) -> None:
            self.java_exception = None

        def __str__(self) -> str:
            return words

    return Told()


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            of_the_jvm(
                "An error occurred while calling o90.start.\n: java.io.IOException: disk is full\n\tat a.B.c(D:1)"
            ),
            "An error occurred while calling o90.start. : java.io.IOException: disk is full",
        ),
        (Py4JNetworkError("Answer from Java side is empty"), "Answer from Java side is empty"),
        (
            StreamingQueryException("[STREAM_FAILED] Query\n\tat a.B.c(D:1)\nJob aborted\nmore"),
            "[STREAM_FAILED] Query Job aborted",
        ),
    ],
    ids=["Java", "JVM gone", "query"],
)
def test_an_error_of_spark_in_a_calibration_ends_the_run_at_once(tmp_path, monkeypatch, capsys, error, told):
    tried, journal = [], tmp_path / "query.jsonl"

    def calibrate(*given):
        tried.append(given)
        raise error

    config = JobConfig(Broker(""), "local[1]", NexmarkSpec(), EngineSpec(), 1, 2, "checkpoint", "")
    (tmp_path / "query.json").write_text(json.dumps(config.to_json()), encoding="utf-8")
    monkeypatch.setattr(driver, "_session", lambda *_, **__: None)
    monkeypatch.setattr(driver, "_all_up", lambda *_: True)
    monkeypatch.setattr(driver, "calibrate", calibrate)
    monkeypatch.setattr(sys, "argv", ["driver.py", *map(str, (tmp_path / "query.json", journal, tmp_path / "none"))])
    for _ in range(2):  # the supervisor starts it again
        with pytest.raises(SystemExit) as end:
            driver.main()
        assert end.value.code == EnvironmentFailure.exit_code
    assert len(tried) == 1
    line = f"the calibration of the query failed: {told}; see query.log of the run"
    assert [failed.error for failed in events(journal, FAILURES)] == [line]
    assert "Traceback" in capsys.readouterr().err


def test_a_driver_that_is_started_again_takes_the_batch_that_the_first_one_found(tmp_path, monkeypatch):
    found, measured = Calibration(900.0, 0.5, 1100.0, 70), []
    monkeypatch.setattr(driver, "calibrate", lambda *given: measured.append(given) or found)
    monkeypatch.setattr(driver, "_all_up", lambda *_: True)
    path = tmp_path / "calibration.json"
    assert [driver._batch_records(None, None, None, path) for _ in range(2)] == [70, 70]
    assert len(measured) == 1
    assert read_calibration(path) == found


def test_what_a_driver_found_is_there_whole_or_not_at_all(tmp_path, monkeypatch):
    """The run reads it as soon as it is there, while a driver of either engine may be killed as it writes."""
    path, write = tmp_path / "calibration.json", Path.write_text

    def killed(file, text, **given):
        write(file, text[:9], **given)
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_text", killed)
    with pytest.raises(KeyboardInterrupt):
        Calibration(900.0, 0.5, 1100.0, 70).leave_in(path)
    assert not path.exists()
    monkeypatch.setattr(Path, "write_text", write)
    Calibration(900.0, 0.5, 1100.0).leave_in(path)
    assert read_calibration(path) == Calibration(900.0, 0.5, 1100.0)


def test_a_batch_that_its_checkpoint_filled_has_a_rate_all_the_same():
    """What state stores committed is summed over tasks, and may come to as much as the batch took."""
    assert BatchTiming(20_000, 1.2, 1.2).rate == pytest.approx(20_000 * 1000)
    assert BatchTiming(20_000, 1.2, 0.2).rate == pytest.approx(20_000)
