"""Measures how fast a job runs undisturbed, from topic to topic, for a load that is somewhat above that."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from experiments.errors import EnvironmentFailure
from journal.reader import read_journal
from journal.writer import Journal
from testbed.progress import events_read
from testbed.runtime.job import Job
from workloads.generator import Feed
from workloads.inputs import records
from workloads.schedule import Schedule
from workloads.topics import CALIBRATION_OUTPUT, FULL, WARM

WARM_EVENTS, WARM_RATE = 30_000, 10_000.0
FULL_S = 10.0  # as many events as the warm run would take so long for
LOAD_FACTOR = 1.25  # a saturating source is this much faster than the dataflow
FEWEST_STEPS = 2

RunJob = Callable[[Job, Journal], None]


def calibrate(job: Job, run: RunJob, journal: Journal, log: Path) -> dict[str, float]:
    """Run the job on topics filled beforehand, briefly, then for some ten seconds.

    Returns `service_rate` and `load_rate` [events/s], and `overhead_s`: what the checkpoints of one interval cost a
    slot [s]. Raises `EnvironmentFailure` if the run is too short to tell.
    """
    events, found = WARM_EVENTS, {"service_rate": WARM_RATE}
    for topic in (WARM, FULL[0]):
        part = _part(job, topic, events, found["service_rate"])
        _fill(part)
        own = log.with_name(f"{log.stem}-{topic}{log.suffix}")
        run(part, Journal(own))
        found = _figures(part, read_journal(own))
        journal.write("calibration", topic=topic, events=events, **found)
        events = max(WARM_EVENTS, round(found["service_rate"] * FULL_S))
    journal.write("calibrated", **found)
    return found


def _part(job: Job, topic: str, events: int, rate: float) -> Job:
    return replace(
        job,
        run_id=f"{job.run_id}-{topic}",
        input=replace(job.input, topic=topic, events=events, rate=rate, start_ns=time.time_ns()),
        output=replace(job.output, topic=CALIBRATION_OUTPUT),
        store=f"{job.store}-{topic}",
    )


def _fill(job: Job) -> None:
    schedule = Schedule(job.input.start_ns, job.input.rate, job.parallelism)
    feed = Feed(job.input.at, job.input.topic, records(job.workload, schedule), schedule)
    feed.send_until(job.input.events)
    feed.finish()
    if feed.failed:
        raise EnvironmentFailure(f"the broker refused {feed.failed} events of the calibration", "look at its log")


def _figures(job: Job, journal: list[dict[str, Any]]) -> dict[str, float]:
    """From the middle of the run: after the first events were read, and before the last."""
    steps = list(_steps(job, journal))
    if len(steps) < FEWEST_STEPS:
        ready_ns, end_ns = (next(e["at_ns"] for e in journal if e["event"] == name) for name in ("ready", "finished"))
        rate, share = job.input.events / (end_ns - ready_ns) * 1e9, 0.0
    else:
        (first_ns, first, spent_s), (last_ns, last, then_s) = steps[0], steps[-1]
        seconds = (last_ns - first_ns) / 1e9
        rate, share = (last - first) / seconds, (then_s - spent_s) / job.slots / seconds
    overhead_s = share * job.checkpoint_interval_s
    return {"service_rate": rate, "overhead_s": overhead_s, "load_rate": LOAD_FACTOR * rate}


def _steps(job: Job, journal: list[dict[str, Any]]) -> Iterator[tuple[int, int, float]]:
    """Moment, events read and time spent on checkpoints, of every report while there were events to read."""
    reports = [entry for entry in journal if entry["event"] == "progress" and entry["positions"]]
    for entry, following in pairwise(reports):
        read = events_read(entry["positions"])
        if 0 < read < events_read(following["positions"]):
            yield entry["at_ns"], read, entry["checkpoint_s"]
