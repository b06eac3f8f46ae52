"""Measures how fast a job runs undisturbed, from topic to topic, to set a saturating load."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from infra.broker import Broker
from journal.event import Event
from journal.events.testbed import TESTBED, EpochReady, Finished, PartMeasured, Report, TestbedCalibrated
from journal.reader import events
from journal.writer import Journal
from spark_jobs.calibration import Calibration
from testbed.runtime.job import Job
from testbed.source_positions import events_read
from workloads.inputs import TopicStream, records
from workloads.schedule import Schedule
from workloads.sending.feeds import feed_of
from workloads.topics import CALIBRATION_OUTPUT, FULL, WARM

WARM_EVENTS, WARM_RATE = 30_000, 10_000.0
FULL_S = 10.0  # as many events as the part before would take so long for
LEAST_S = 3.0  # so long a part must be watched while it reads at its pace
MORE, MOST_EVENTS = 10, 2_000_000  # the factor for the next part if a part ended too soon to be watched; the limit
LOAD_FACTOR = 1.25  # a saturating source is this much faster than the dataflow
FEWEST_STEPS = 2

RunJob = Callable[[Job, Journal], None]


class Step(NamedTuple):
    """Events read and time spent on checkpoints [s, of all slots] by a moment [ns]."""

    at_ns: int
    read: int
    checkpoint_s: float


def calibrate(job: Job, run: RunJob, journal: Journal, log: Path) -> Calibration:
    """Run the job on topics filled beforehand, briefly, then for some ten seconds.

    A fast job reads the events of the brief part before it can be watched. The time of that part is then only that of
    the start and the end, which says nothing about the job's pace. So the next part gets more events, until one lasts.
    Raises `ValueError` for a job that does not read from Kafka, and `EnvironmentFailure` if the broker does not take
    all events of a part.
    """
    if job.input.broker is None:
        raise ValueError("only a job whose input is in Kafka can be calibrated")
    count, rate = WARM_EVENTS, WARM_RATE
    for topic in (WARM, *FULL):
        events_in = _in_full_batches(job, count)
        part = _part(job, topic, events_in, rate)
        _fill(job.input.broker, part, events_in)
        own = log.with_name(f"{log.stem}-{topic}{log.suffix}")
        run(part, Journal(own))
        told = list(events(own, TESTBED))
        steps = list(_steps(told))
        found = _figures(part, events_in, told, steps)
        journal.record(PartMeasured(topic, events_in, found.service_rate, found.overhead_s, found.load_rate))
        if topic != WARM and (_watched_s(_at_its_pace(steps)) >= LEAST_S or count == MOST_EVENTS):
            break
        rate = found.service_rate
        count = min(MOST_EVENTS, max(WARM_EVENTS, round(rate * FULL_S)) if _is_seen(steps) else MORE * count)
    journal.record(TestbedCalibrated(found.service_rate, found.overhead_s, found.load_rate))
    return found


def _in_full_batches(job: Job, count: int) -> int:
    """`count` events; if events come in batches, rounded up so that the last batches are full."""
    if job.input.batch_records is None:
        return count
    length = job.input.batch_records * job.parallelism
    return -(-count // length) * length


def _part(job: Job, topic: str, events: int, rate: float) -> Job:
    return replace(
        job,
        run_id=f"{job.run_id}-{topic}",
        input=replace(job.input, topic=topic, events=events, rate=rate, start_ns=time.time_ns()),
        output=replace(job.output, topic=CALIBRATION_OUTPUT),
        store=f"{job.store}-{topic}",
        store_key_file=None,
    )


def _fill(broker: Broker, job: Job, count: int) -> None:
    schedule = Schedule(job.input.start_ns, job.input.rate, job.parallelism)
    stream = TopicStream(job.input.topic, records(job.workload, schedule), schedule)
    feed = feed_of(broker, job.workload, stream, job.input.batch_records)
    feed.send_until(count)
    feed.require(count)


def _figures(job: Job, count: int, journal: Sequence[Event], steps: Sequence[Step]) -> Calibration:
    """The rate once the job is at its pace, and what checkpoints took of a slot's time in all these steps.

    If too few of them were seen, the rate of the whole part.
    """
    if not _is_seen(steps):
        ready_ns = next(event.at_ns for event in journal if isinstance(event, EpochReady))
        end_ns = next(event.at_ns for event in journal if isinstance(event, Finished))
        rate, share = count / (end_ns - ready_ns) * 1e9, 0.0
    else:
        at_pace = _at_its_pace(steps)
        rate = (at_pace[-1].read - at_pace[0].read) / _watched_s(at_pace)
        share = (steps[-1].checkpoint_s - steps[0].checkpoint_s) / job.slots / _watched_s(steps)
    return Calibration(rate, share * job.checkpoint_interval_s, LOAD_FACTOR * rate)


def _at_its_pace(steps: Sequence[Step]) -> Sequence[Step]:
    """The second half, if that is seen: a fast job takes some seconds until it is as fast as it will be."""
    later = steps[len(steps) // 2 :]
    return later if _is_seen(later) else steps


def _is_seen(steps: Sequence[Step]) -> bool:
    return len(steps) >= FEWEST_STEPS


def _watched_s(steps: Sequence[Step]) -> float:
    """From the first to the last of these reports [s]."""
    return (steps[-1].at_ns - steps[0].at_ns) / 1e9 if steps else 0.0


def _steps(journal: Iterable[Event]) -> Iterator[Step]:
    """Every report while there were events to read."""
    reports = [event for event in journal if isinstance(event, Report) and event.positions]
    for report, following in pairwise(reports):
        read = events_read(report.positions)
        if 0 < read < events_read(following.positions):
            yield Step(report.at_ns, read, report.checkpoint_s)
