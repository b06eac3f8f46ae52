"""The testbed's calibration: which events each part is given, and what the journal of a part says of its pace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from experiments.errors import EnvironmentFailure
from experiments.workloads.catalogue import NexmarkSpec
from infra.broker import Broker
from journal.events.testbed import EpochReady, Finished, PartMeasured, Report, RunPhase
from journal.reader import events
from journal.writer import Journal
from spark_jobs.calibration import Calibration
from spark_jobs.testbed import calibration
from spark_jobs.testbed.calibration import FULL_S, LOAD_FACTOR, WARM_EVENTS, calibrate
from testbed.operators import Delivery
from testbed.runtime.job import InputKind, Job, JobInput, OutputKind, OutputSpec
from workloads.schedule import Schedule
from workloads.sending import feeds as senders
from workloads.sending.producing import TopicSender
from workloads.topics import CALIBRATION_OUTPUT, FULL, WARM

BROKER = Broker("127.0.0.2:9092")
RATE, SLOTS, INTERVAL_S, STEP_S = 20_000, 2, 5.0, 0.5
CHECKPOINT = 0.2  # share of the slots' time
JOB = Job(
    run_id="run",
    workload=NexmarkSpec(),
    protocol="coordinated",
    slots=SLOTS,
    parallelism=SLOTS,
    input=JobInput(InputKind.KAFKA, None, broker=BROKER),
    output=OutputSpec(OutputKind.KAFKA, Delivery.EXACTLY_ONCE, broker=BROKER),
    store="store",
    checkpoint_interval_s=INTERVAL_S,
)


def journal_of(part: Job, journal: Journal, step_s: float = STEP_S, rate: int = RATE, drain_s: float = 0.0) -> None:
    """What a job that reads `rate` events a second writes, with a report after every step, and until it has ended."""
    journal.record(EpochReady(1, (0, 1), at_ns=0))
    end_s = part.input.events / rate + drain_s
    for step in range(int(end_s / step_s) + 1):
        at_s = step * step_s
        positions = {"bids.0": min(round(at_s * rate), part.input.events)}
        spent_s = CHECKPOINT * SLOTS * at_s
        report = Report(1, RunPhase.RUNNING, {}, positions, SLOTS, 0, 0.0, 0.0, spent_s, at_ns=round(at_s * 1e9))
        journal.record(report)
    journal.record(Finished({"bids.0": part.input.events}, at_ns=round(end_s * 1e9)))


@pytest.fixture
def fed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Broker, str, int]]:
    """The topics that were filled: at which broker, and with how many events."""
    return feeds(monkeypatch)


def feeds(monkeypatch: pytest.MonkeyPatch, refused: int = 0, unanswered: int = 0) -> list[tuple[Broker, str, int]]:
    found: list[tuple[Broker, str, int]] = []

    class FakeSender(TopicSender):
        def __init__(self, broker: Broker, topic: str, *_: object) -> None:
            self.topic, self.sent, self.failed, self._records = topic, 0, refused, 1
            self._broker, self._producer = broker, ["a message"] * unanswered

        def send_until(self, count: int) -> None:
            found.append((self._broker, self.topic, count))
            self.sent = count

        def finish(self, limit_s: float = 0.0) -> None:
            """What has no answer gets none."""

    monkeypatch.setattr(senders, "InputSender", FakeSender)
    return found


class FakeBatchSender(TopicSender):
    """Keeps of each topic how many events were asked for, and how many of them are in a message."""

    asked: ClassVar[list[tuple[str, int, int]]] = []

    def __init__(self, _broker: Broker, topic: str, _spec: NexmarkSpec, _schedule: Schedule, records: int) -> None:
        self.topic, self.sent, self.failed, self._records = topic, 0, 0, records
        self._producer = []

    def send_until(self, count: int) -> None:
        self.asked.append((self.topic, count, self._records))
        self.sent = count

    def finish(self, limit_s: float = 0.0) -> None:
        """Nothing is on its way."""


def calibrated(folder: Path, run: Callable[[Job, Journal], None] = journal_of, job: Job = JOB) -> Calibration:
    return calibrate(job, run, Journal(folder / "query.jsonl"), folder / "calibration.jsonl")


def test_both_parts_read_topics_that_hold_their_events(fed: list[tuple[Broker, str, int]], tmp_path: Path) -> None:
    parts: list[Job] = []
    calibrated(tmp_path, lambda part, journal: parts.append(part) or journal_of(part, journal))
    assert fed == [(BROKER, WARM, WARM_EVENTS), (BROKER, FULL[0], round(RATE * FULL_S))]
    assert [(part.input.broker, part.input.topic, part.input.events) for part in parts] == fed
    assert {part.output.topic for part in parts} == {CALIBRATION_OUTPUT}
    assert len({(part.run_id, part.store) for part in parts}) == 2, "neither may see the other's checkpoints"


def test_the_second_part_tells_rate_and_cost(fed: list[tuple[Broker, str, int]], tmp_path: Path) -> None:
    found = calibrated(tmp_path)
    assert found.service_rate == pytest.approx(RATE)
    assert found.overhead_s == pytest.approx(CHECKPOINT * INTERVAL_S)
    assert found.load_rate == pytest.approx(LOAD_FACTOR * RATE)
    assert found.batch_records is None
    *parts, result = events(tmp_path / "query.jsonl", calibration.TESTBED)
    assert [(part.topic, part.events) for part in parts if isinstance(part, PartMeasured)] == [f[1:] for f in fed]
    assert replace(result, at_ns=0) == calibration.TestbedCalibrated(
        found.service_rate, found.overhead_s, found.load_rate, at_ns=0
    )


def test_input_in_batches_fills_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(FakeBatchSender, "asked", [])
    monkeypatch.setattr(senders, "BatchSender", FakeBatchSender)
    parts: list[Job] = []
    job = replace(JOB, input=replace(JOB.input, batch_records=700))
    found = calibrated(tmp_path, lambda part, journal: parts.append(part) or journal_of(part, journal), job)
    counts = [(part.input.topic, part.input.events, part.input.batch_records) for part in parts]
    assert counts == FakeBatchSender.asked == [(WARM, 30_800, 700), (FULL[0], 200_200, 700)]
    assert found.service_rate == pytest.approx(RATE)
    told = [each for each in events(tmp_path / "query.jsonl", calibration.TESTBED) if isinstance(each, PartMeasured)]
    assert [(each.topic, each.events) for each in told] == [each[:2] for each in counts]


@pytest.mark.parametrize("rate", [101_000, 400_000])
def test_a_job_that_reads_the_first_events_at_once_is_given_more_until_it_lasts(
    rate: int, fed: list[tuple[Broker, str, int]], tmp_path: Path
) -> None:
    """30,000 events last for .3 s, and the drain for 10: together they would make 2,900 events/s of it."""
    found = calibrated(tmp_path, lambda part, journal: journal_of(part, journal, rate=rate, drain_s=10.0))
    assert found.service_rate == pytest.approx(rate, rel=0.01)
    assert found.overhead_s == pytest.approx(CHECKPOINT * INTERVAL_S)
    counts = [count for _, _, count in fed]
    assert counts[:2] == [WARM_EVENTS, 10 * WARM_EVENTS]
    assert counts[-1] >= rate * calibration.LEAST_S
    assert max(counts) <= calibration.MOST_EVENTS


def test_a_job_that_begins_slowly_is_calibrated_at_its_pace(fed: list[tuple[Broker, str, int]], tmp_path: Path) -> None:
    """In its first two seconds it reads half as fast, so that its mean is too low for a load that saturates it."""

    def slow_at_first(part: Job, journal: Journal) -> None:
        journal.record(EpochReady(1, (0, 1), at_ns=0))
        count, fast, at_s, read = part.input.events, 140_000, 0.0, 0
        while read < count:
            at_s += STEP_S
            read = min(count, round(fast * (at_s / 2 if at_s <= 2 else at_s - 1)))
            journal.record(
                Report(1, RunPhase.RUNNING, {}, {"bids.0": read}, SLOTS, 0, 0.0, 0.0, 0.0, at_ns=round(at_s * 1e9))
            )
        journal.record(Finished({"bids.0": count}, at_ns=round(at_s * 1e9)))

    assert calibrated(tmp_path, slow_at_first).service_rate == pytest.approx(140_000)
    assert [count for _, _, count in fed] == [30_000, 300_000, 1_400_000]


def test_the_events_of_a_job_that_is_never_seen_to_read_have_a_limit(
    fed: list[tuple[Broker, str, int]], tmp_path: Path
) -> None:
    calibrated(tmp_path, lambda part, journal: journal_of(part, journal, step_s=1000.0))
    assert [count for _, _, count in fed] == [30_000, 300_000, 2_000_000]


def test_a_part_too_short_for_reports_tells_its_rate(fed: list[tuple[Broker, str, int]], tmp_path: Path) -> None:
    found = calibrated(tmp_path, lambda part, journal: journal_of(part, journal, step_s=1000.0))
    assert found.service_rate == pytest.approx(RATE)
    assert found.overhead_s == 0.0


@pytest.mark.parametrize(
    ("refused", "unanswered", "told"), [(3, 0, "took 29997 of 30000 .* refused 3"), (0, 2, "took 29998 .* refused 0")]
)
def test_events_that_the_broker_does_not_take_end_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, refused: int, unanswered: int, told: str
) -> None:
    """Otherwise the job would wait for them."""
    feeds(monkeypatch, refused, unanswered)
    with pytest.raises(EnvironmentFailure, match=f"the broker {told}") as failure:
        calibrated(tmp_path, lambda *_: pytest.fail("it has nothing to read"))
    assert f"for the topic {WARM}," in str(failure.value)


def test_a_job_that_does_not_read_from_kafka_is_not_calibrated(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="only a job whose input is in Kafka"):
        calibrated(tmp_path, job=replace(JOB, input=JobInput(InputKind.GENERATED, None)))
