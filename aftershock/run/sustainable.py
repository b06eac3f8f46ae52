"""Finds the highest rate at which the query's lag stays bounded.

Bursts show about how many records the query can read in a second. From there on the probes are run that
`models.sustainable` asks for. Each burst and each probe begins with nothing left to read. The journal has every probe
with what decided it, and what was found.
"""

from __future__ import annotations

import logging
import time
from dataclasses import asdict, dataclass, replace
from math import inf
from typing import Any, TypeAlias

import numpy as np

from aftershock.run.live_run import LiveRun
from experiments.errors import EnvironmentFailure
from experiments.misfits.batches import most_in_batch
from experiments.spec import Experiment
from experiments.wording import significant
from journal.event import Event
from journal.events.search import Found, ProbeJudged
from journal.events.services import GENERATOR, RecordsSent
from journal.reader import JournalFollower
from journal.writer import Journal
from models.sustainable import service_rate
from models.sustainable.duration import burst_s, settle_s
from models.sustainable.lag import Judged, Sample, is_overwhelmed, judge
from models.sustainable.search import Search
from results.runs import store
from workloads.schedule import Schedule
from workloads.sending.load_config import LOAD_FILE, LoadConfig

log = logging.getLogger(__name__)

NS = 1e9
SERVICES = {"broker", "spark-master", "query", "generator"}
LEAD_S = 1.0  # from an order to when it takes effect: the generator must have seen it by then
SLACK_S = 60.0
STILL_S, STILL_INTERVALS = 300.0, 30.0  # without a commit, to read what is left: one batch may have all of it
Counts: TypeAlias = list[tuple[int, int]]


@dataclass(frozen=True)
class Probe:
    """A schedule that is tried, and between which moments lag is watched [ns]."""

    number: int
    schedule: Schedule
    started_ns: int
    watched_ns: int
    ended_ns: int


class Deliveries:
    """How many records the broker had by when [ns], and how many it refused: a digest of the generator's journal."""

    def __init__(self) -> None:
        self.counts: Counts = [(0, 0)]
        self.refused = 0

    def take(self, event: Event) -> None:
        """Take in the next event of the generator's journal."""
        if isinstance(event, RecordsSent):
            self.counts.append((event.at_ns, event.delivered))
            self.refused = event.failed


class LoadJournals:
    """What a run's journals say by now. Only new entries are read: otherwise a long search would disturb the query."""

    def __init__(self, live: LiveRun) -> None:
        engine = live.engine
        self._query = JournalFollower(live.journal_path("query"), engine.vocabulary, engine.reads)
        self._generator = JournalFollower(live.journal_path("generator"), GENERATOR, Deliveries)

    @property
    def read(self) -> Counts:
        """How many records the query has read by when [ns]."""
        return self._query.poll().counts

    @property
    def delivered(self) -> Counts:
        """How many records the broker had by when [ns]."""
        return self._generator.poll().counts

    def refuse_losses(self) -> None:
        """Raises `EnvironmentFailure` if the broker refused records: what is due can then never be read."""
        if refused := self._generator.poll().refused:
            reason = f"the broker refused {refused:,} records, which the query can never read"
            raise EnvironmentFailure(reason, "see generator.log and the broker's logs of the run")


def set_load(live: LiveRun, schedule: Schedule) -> None:
    """Have the generator go on by this schedule."""
    path = live.orders / LOAD_FILE
    config = LoadConfig.from_json(store.read_json(path))
    store.write_json(path, replace(config, schedule=schedule).to_json())


def find(live: LiveRun, schedule: Schedule) -> int:
    """Search, then begin the load that the measurement window is to have; returns the moment of that [ns].

    `schedule` is what the generator follows until then. Raises `EnvironmentFailure` if no rate was sustained, if
    batches would fill too slowly at the next one, if the query does not get on with what a burst or a probe left it, or
    if the broker refuses records.
    """
    load, journal, looks = live.experiment.load, Journal(live.journal_path("search")), LoadJournals(live)
    ended, measured = _measured(live, looks, _drained(live, looks, schedule))
    log.info("the query reads %s records/s of a burst", significant(measured))
    search = Search.near(measured, load.precision, load.probes)
    while search.end is None:
        _require_full_batches(live.experiment, search.rate)
        probe = _begin(live, search.probes, ended, search.rate)
        judged, pace = _watch(live, looks, probe, journal)
        told = significant(search.rate)
        log.info("probe %d, %s records/s: %s, %s", probe.number, told, judged.outcome.value, judged.why)
        search = search.after(judged.outcome, pace)
        ended = _drained(live, looks, probe.schedule)
    journal.record(Found(search.low, search.high, search.end.value))
    found = [significant(rate) if rate else "none" for rate in (search.low, search.high)]
    log.info("records/s sustained: %s, not sustained: %s (search ended by %s)", *found, search.end.value)
    if search.low is None:
        tried = f"{search.probes} probes down to {significant(probe.schedule.rate)} records/s"
        raise EnvironmentFailure(f"no rate was sustained: {tried}", "allow more load.probes, or a longer load.probe_s")
    return _begin(live, search.probes, ended, load.share * search.low).started_ns


def _measured(live: LiveRun, looks: LoadJournals, ended: Schedule) -> tuple[Schedule, float]:
    """About how many records/s the query reads while it always has some left, and the schedule with its end.

    The query reads bursts, each twice as dense as the one before. One that it is still reading as long after its end as
    it lasted has kept it busy from its begin on.
    """
    rate, lasts_ns = live.experiment.load.rate, burst_s(live.experiment.engine.checkpoint_interval_s) * NS
    while True:
        ended, reports = _burst(live, looks, ended, rate)
        busy_ns, found = reports[-1][0] - (ended.end_ns or 0), service_rate.of_burst(reports)
        if found and busy_ns > lasts_ns:
            return ended, found
        rate *= 2


def _burst(live: LiveRun, looks: LoadJournals, ended: Schedule, rate: float) -> tuple[Schedule, Counts]:
    """Have a burst of records at this rate [records/s] read; returns its schedule with its end, and the reports.

    The first report is made up: what had been read when the burst began. The last one is the first by which all of the
    burst had been read.
    """
    lasts_s = burst_s(live.experiment.engine.checkpoint_interval_s)
    start_ns, burst = _from_now_on(live, ended, rate)
    nearly_over_ns = start_ns + round((lasts_s - LEAD_S) * NS)
    what = f"a burst of {significant(rate)} records/s"
    live.wait(what, lambda: time.time_ns() >= nearly_over_ns, SERVICES, lasts_s + SLACK_S, lasts_s)
    ended, read = _drained(live, looks, burst), looks.read
    before = max(count for at_ns, count in read if at_ns < start_ns)
    last_ns = min(at_ns for at_ns, count in read if count == read[-1][1])
    return ended, [(start_ns, before), *(report for report in read if start_ns <= report[0] <= last_ns)]


def _require_full_batches(experiment: Experiment, rate: float) -> None:
    """Raises `EnvironmentFailure` if batches would fill too slowly in a window after this rate [records/s].

    With the experiment only `load.rate` was checked, and the query may sustain less.
    """
    load = experiment.load
    if load.batch_records is None or load.batch_records <= (most := most_in_batch(load, experiment.engine, rate)):
        return
    slow = f"{load.share:g} of that would not fill a batch of {load.batch_records} records in each checkpoint interval"
    remedy = f"lower load.batch_records, to {most} for that rate" if most else "leave load.batch_records out"
    raise EnvironmentFailure(f"the search would try {rate:g} records/s next, and {slow}", remedy)


def _drained(live: LiveRun, looks: LoadJournals, schedule: Schedule) -> Schedule:
    """The schedule with its end, once the query has read all that it made due."""
    end_ns = time.time_ns() + round(LEAD_S * NS)
    ended = schedule.ending(end_ns)
    set_load(live, ended)
    due = ended.due_count(end_ns)
    if batch_records := live.experiment.load.batch_records:
        due = ended.in_full_batches(due, batch_records)  # what is left goes out with what the next schedule makes due
    else:
        due -= len(live.experiment.workload.input_topics)  # each may owe the last one
    still_s = max(STILL_S, STILL_INTERVALS * live.experiment.engine.checkpoint_interval_s)
    moved_ns, known = end_ns, -1

    def is_read() -> bool:
        nonlocal moved_ns, known
        looks.refuse_losses()
        read = looks.read[-1][1]
        if read != known:
            moved_ns, known = time.time_ns(), read
        elif time.time_ns() - moved_ns > still_s * NS:
            reason = f"for {still_s:.0f} s the query has read none of the {due - read:,} records that are left to it"
            raise EnvironmentFailure(reason, "load.rate is far above what the query does: lower it")
        return time.time_ns() > end_ns and read >= due

    live.wait("the query to read what is left", is_read, SERVICES, inf)
    return ended


def _begin(live: LiveRun, number: int, ended: Schedule, rate: float) -> Probe:
    started_ns, schedule = _from_now_on(live, ended, rate)
    watched_ns = started_ns + round(settle_s(live.experiment.engine.checkpoint_interval_s) * NS)
    return Probe(number, schedule, started_ns, watched_ns, watched_ns + round(live.experiment.probe_s * NS))


def _from_now_on(live: LiveRun, ended: Schedule, rate: float) -> tuple[int, Schedule]:
    """Have the generator go on at this rate [records/s]; returns from when [ns], and the schedule."""
    start_ns = time.time_ns() + round(LEAD_S * NS)
    schedule = ended.then(start_ns, rate)
    set_load(live, schedule)
    return start_ns, schedule


def _watch(live: LiveRun, looks: LoadJournals, probe: Probe, journal: Journal) -> tuple[Judged, float | None]:
    """Wait until the probe is over, or the query overwhelmed, and judge it.

    Returns what came of it, and how many records/s the query read meanwhile, if that is known.
    """
    rate, interval_s = probe.schedule.rate, live.experiment.engine.checkpoint_interval_s
    seen = _seen(looks, probe)

    def is_over() -> bool:
        nonlocal seen  # what ends the probe is what it is judged by
        seen = _seen(looks, probe)
        return seen.ended_ns == probe.ended_ns or is_overwhelmed(rate, interval_s, seen.lag[-1][1])

    left_s = (probe.ended_ns - time.time_ns()) / NS
    live.wait(f"probe {probe.number}, {significant(rate)} records/s", is_over, SERVICES, left_s + SLACK_S, left_s)
    judged = judge(rate, interval_s, seen.lag, seen.unread)
    about: dict[str, Any] = {"probe": probe.number, "rate": rate, "started_ns": probe.started_ns}
    journal.record(ProbeJudged(**(about | seen.figures | asdict(judged))))
    return judged, seen.pace


def _seen(looks: LoadJournals, probe: Probe) -> ProbeRecords:
    """What a probe shows by now: in its window once that is over, from its start as long as it is not."""
    ended_ns = min(time.time_ns(), probe.ended_ns)
    watched_ns = probe.watched_ns if ended_ns == probe.ended_ns else probe.started_ns
    return ProbeRecords(probe.schedule, watched_ns, ended_ns, looks.read, looks.delivered)


@dataclass(frozen=True)
class ProbeRecords:
    """What happened to the records of a schedule between two moments; counts `read` and `delivered` by moment [ns]."""

    schedule: Schedule
    watched_ns: int
    ended_ns: int
    read: Counts
    delivered: Counts

    @property
    def _samples(self) -> Counts:
        """The reports in between, and the end with what was read by then: a query that is stuck reports nothing."""
        known = [(at_ns, count) for at_ns, count in self.read if at_ns <= self.ended_ns]
        inside = [(at_ns, count) for at_ns, count in known if self.watched_ns <= at_ns < self.ended_ns]
        return [*inside, (self.ended_ns, known[-1][1])]

    @property
    def pace(self) -> float | None:
        """How many records/s were read from the first report in between to the last; None of fewer than two."""
        return service_rate.service_rate([(at, n) for at, n in self.read if self.watched_ns <= at < self.ended_ns])

    @property
    def lag(self) -> list[Sample]:
        """Records due and not read."""
        return [((at_ns - self.watched_ns) / NS, self.schedule.due_count(at_ns) - n) for at_ns, n in self._samples]

    @property
    def unread(self) -> list[Sample]:
        """Records that the broker had, not read."""
        return [((at_ns - self.watched_ns) / NS, _at(self.delivered, at_ns) - n) for at_ns, n in self._samples]

    @property
    def figures(self) -> dict[str, float]:
        """From when until when lag was watched, how many records were due, delivered and read meanwhile, and lag."""
        due, lag = self.schedule.due_count(self.ended_ns) - self.schedule.due_count(self.watched_ns), self.lag
        counts = {name: getattr(self, name) for name in ("delivered", "read")}
        moved = {name: _at(found, self.ended_ns) - _at(found, self.watched_ns) for name, found in counts.items()}
        moments = {"watched_ns": self.watched_ns, "ended_ns": self.ended_ns}
        return moments | {"due": due} | moved | {"lag_begin": lag[0][1], "lag_end": lag[-1][1]}


def _at(counts: Counts, at_ns: int) -> float:
    """A count at a moment, evenly between those that are known; after the last, the last."""
    moments_ns, known = zip(*counts, strict=True)
    return float(np.interp(at_ns, moments_ns, known))
