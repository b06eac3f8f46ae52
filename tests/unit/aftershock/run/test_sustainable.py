"""The search for the sustainable rate on a simulated query: due and read are counted, time is the test's."""

import pytest

from aftershock.run import sustainable
from aftershock.run.engines.choice import engine_of
from aftershock.run.sustainable import ProbeRecords
from experiments.errors import EnvironmentFailure
from experiments.spec import Experiment
from infra.broker import Broker
from journal.events.query import QueryReady
from journal.events.services import RecordsSent
from journal.events.testbed import RunPhase
from journal.reader import raw_entries
from journal.writer import Journal
from results.runs import store
from tests.unit.example_events import batch_committed, example, report
from workloads.schedule import Schedule
from workloads.sending.load_config import LOAD_FILE, LoadConfig

NS = 10**9
START_NS = 1_795_173_799 * NS
TESTBED = {
    "workload": {"name": "nexmark", "query": "q1"},
    "engine": {"name": "dataflow", "checkpoint_interval_s": 1, "partitions": 3},
}


class Clock:
    def __init__(self):
        self.now_ns = START_NS

    def time_ns(self):
        return self.now_ns


class SimulatedRun:
    """A generator that delivers at most `delivers` records/s, and a query that reads at most `reads` of them.

    What both would do in a tick of half a second is reckoned when the run waits.
    """

    def __init__(self, folder, clock, reads, delivers=1e9, **load):
        self.clock, self.reads, self.delivers, self.orders, self.folder = clock, reads, delivers, folder, folder
        self.experiment = Experiment(load={"mode": "sustainable", "rate": 1000, **load}, **TESTBED)
        self.failed = 0
        self.schedule = Schedule(clock.now_ns, 1000.0, 3)
        self.counts = [(clock.now_ns, 0.0, 0.0)]  # moment, delivered, read
        load = LoadConfig(Broker(""), self.experiment.workload, self.schedule)
        store.write_json(folder / LOAD_FILE, load.to_json())
        self.journals = {name: Journal(self.journal_path(name)) for name in ("generator", "query")}

    @property
    def engine(self):
        return engine_of(self.experiment)

    def journal_path(self, name):
        return self.folder / f"{name}.jsonl"

    def tell(self):
        """What both write of the last tick."""
        at_ns, delivered, read = self.counts[-1]
        self.journals["generator"].record(example(RecordsSent, at_ns, delivered=int(delivered), failed=self.failed))
        self.journals["query"].record(report(at_ns, positions={"bids.0": int(read)}))

    def wait(self, what, met, services, limit_s, usual_s=None):
        last_ns = self.clock.now_ns + limit_s * NS
        while not met():
            assert self.clock.now_ns < last_ns, f"{what} takes too long"
            self.tick()

    def tick(self):
        self.clock.now_ns += NS // 2
        schedule = Schedule(**store.read_json(self.orders / LOAD_FILE)["schedule"])
        _, delivered, read = self.counts[-1]
        due = schedule.due_count(self.clock.now_ns)
        if batch_records := self.experiment.load.batch_records:
            due = schedule.in_full_batches(due, batch_records)
        delivered = max(delivered, min(due, delivered + self.delivers / 2))
        self.counts.append((self.clock.now_ns, delivered, min(delivered, read + self.reads / 2)))
        self.tell()


@pytest.fixture
def clock(monkeypatch):
    ticking = Clock()
    monkeypatch.setattr(sustainable, "time", ticking)
    return ticking


def searched(live):
    """The entries of the search's journal, and the load that it leaves."""
    since_ns = sustainable.find(live, live.schedule)
    schedule = Schedule(**store.read_json(live.orders / LOAD_FILE)["schedule"])
    *probes, found = list(raw_entries(live.journal_path("search")))
    return probes, found, schedule, since_ns


@pytest.mark.parametrize("capacity", [130, 3000, 50_000])
def test_the_capacity_of_a_query_is_bracketed(tmp_path, clock, capacity):
    """In two probes, since bursts have shown it."""
    probes, found, schedule, since_ns = searched(SimulatedRun(tmp_path, clock, capacity))
    assert [entry["outcome"] for entry in probes] == ["sustained", "not-sustained"]
    assert found["end"] == "closed"
    assert found["low"] <= 1.02 * capacity, "growth below 2 % cannot be told from none"
    assert found["high"] >= capacity
    assert found["high"] <= 1.05 * found["low"]
    assert schedule.rate == pytest.approx(0.8 * found["low"])
    assert since_ns > probes[-1]["ended_ns"]
    assert [entry["probe"] for entry in probes] == list(range(len(probes)))
    for entry in probes:
        assert (entry["outcome"] == "sustained") == (entry["rate"] <= found["low"])
        if entry["outcome"] == "sustained":
            assert entry["read"] == pytest.approx(entry["rate"] * 10, rel=0.1)
            assert entry["ended_ns"] - entry["watched_ns"] == 10 * NS, "a probe is cut short only when it is hopeless"
            assert abs(entry["lag_begin"]) <= entry["rate"], "each probe begins with nothing left to read"


class SlowingRun(SimulatedRun):
    """A query that gets slower when a probe begins: in each of the first `count` it reads `factor` times as many."""

    def __init__(self, folder, clock, reads, factor, count, **load):
        super().__init__(folder, clock, reads, **load)
        self.factor, self.count = factor, count

    def wait(self, what, met, services, limit_s, usual_s=None):
        if what.startswith("probe") and self.count:
            self.reads, self.count = self.reads * self.factor, self.count - 1
        super().wait(what, met, services, limit_s, usual_s)


@pytest.mark.parametrize("factor", [0.9, 0.6, 0.1])
def test_a_query_that_is_slower_than_its_bursts_showed_is_bracketed_by_what_the_failed_probe_measures(
    tmp_path, clock, factor
):
    probes, found, *_ = searched(SlowingRun(tmp_path, clock, 3000, factor, 1))
    assert [entry["outcome"] for entry in probes] == ["not-sustained", "sustained", "not-sustained"]
    assert found["low"] <= 1.02 * factor * 3000
    assert found["high"] >= factor * 3000
    assert found["end"] == "closed"


def test_a_query_that_is_faster_than_its_bursts_showed_is_bracketed_nevertheless(tmp_path, clock):
    probes, found, *_ = searched(SlowingRun(tmp_path, clock, 3000, 2.5, 1))
    assert found["low"] <= 1.02 * 7500
    assert found["high"] >= 7500
    assert found["end"] == "closed"
    assert len(probes) <= 8, "steps of 4.5, 9, 19, 42 and 100 % up, until one fails"


def test_bursts_get_denser_until_one_keeps_the_query_busy_for_as_long_again(tmp_path, clock):
    live = SimulatedRun(tmp_path, clock, 3000)
    begun = Schedule(START_NS, 1000.0, 3, START_NS)  # nothing is due yet
    ended, measured = sustainable._measured(live, sustainable.LoadJournals(live), begun)
    assert measured == pytest.approx(3000, rel=0.01)
    assert ended.due_count(clock.now_ns) == pytest.approx(2 * (1000 + 2000 + 4000 + 8000), abs=4), "2 s each"
    assert live.counts[-1][2] == pytest.approx(30_000, abs=1), "nothing is left"


def test_the_records_of_all_probes_follow_each_other(tmp_path, clock):
    live = SimulatedRun(tmp_path, clock, 3000)
    _, _, schedule, since_ns = searched(live)
    assert schedule.due_count(since_ns) == pytest.approx(live.counts[-1][1], abs=1)
    assert live.counts[-1][1] == pytest.approx(live.counts[-1][2])


def test_a_search_does_not_wait_for_a_batch_that_is_not_full(tmp_path, clock):
    """Nothing is due after a probe has ended, so that its last records stay until the next one has begun."""
    probes, found, *_ = searched(SimulatedRun(tmp_path, clock, 3000, batch_records=100))
    assert found["end"] == "closed"
    assert found["high"] <= 1.05 * found["low"]
    assert found["low"] <= 1.02 * 3000
    assert found["high"] >= 3000 * 0.98
    assert [entry["outcome"] for entry in probes] == ["sustained", "not-sustained"]


def test_the_last_batch_is_waited_for_if_it_is_full(tmp_path, clock):
    live = SimulatedRun(tmp_path, clock, 100, batch_records=100)
    ended = sustainable._drained(live, sustainable.LoadJournals(live), Schedule(START_NS, 300.0, 3))
    assert ended.due_count(clock.now_ns) == 300, "one batch for each partition, and nothing beyond it"
    assert live.counts[-1][2] == 300


@pytest.mark.parametrize(
    ("batch_records", "begin", "reads", "rate", "remedy"),
    [
        (150, 1000, 400, 399, "lower load.batch_records, to 106 for that rate"),  # at .8 of it, on 3 partitions
        (100, 1000, 250, 249, "lower load.batch_records, to 66 for that rate"),
        (1, 32, 2, 1.99, "leave load.batch_records out"),
    ],
)
def test_a_search_does_not_go_down_to_where_batches_do_not_fill(
    tmp_path, clock, batch_records, begin, reads, rate, remedy
):
    """There, lag is that of batches which wait for their last record, and not the query's."""
    live = SimulatedRun(tmp_path, clock, reads, batch_records=batch_records, rate=begin)
    with pytest.raises(EnvironmentFailure, match="would not fill a batch") as failure:
        sustainable.find(live, live.schedule)
    assert f"the search would try {rate:g}" in str(failure.value)
    assert remedy in str(failure.value)
    assert list(raw_entries(live.journal_path("search"))) == [], "no probe was made"


def test_a_hopeless_probe_is_cut_short(tmp_path, clock):
    live = SimulatedRun(tmp_path, clock, 3000)
    probe = sustainable.Probe(0, Schedule(START_NS, 100_000.0, 3), START_NS, START_NS + 4 * NS, START_NS + 14 * NS)
    sustainable.set_load(live, probe.schedule)
    journal = Journal(live.journal_path("search"))
    judged, pace = sustainable._watch(live, sustainable.LoadJournals(live), probe, journal)
    assert judged.outcome == "not-sustained"
    assert pace == pytest.approx(3000)
    assert clock.now_ns - START_NS < 7 * NS


def test_a_generator_that_delivers_less_leaves_the_bracket_open(tmp_path, clock):
    probes, found, *_ = searched(SimulatedRun(tmp_path, clock, 50_000, delivers=3000))
    assert (found["low"], found["high"], found["end"]) == (pytest.approx(3000, rel=0.01), None, "generator")
    assert [entry["outcome"] for entry in probes] == ["sustained", "void", "void"]


class RestingGeneratorRun(SimulatedRun):
    """The generator delivers bursts fast, and 2000 records/s in probes, as if it had to share the cores then."""

    def wait(self, what, met, services, limit_s, usual_s=None):
        self.delivers = 2000 if what.startswith("probe") else 1e9
        super().wait(what, met, services, limit_s, usual_s)


def test_a_generator_that_does_not_deliver_what_a_burst_showed_leaves_a_lower_bound(tmp_path, clock):
    probes, found, *_ = searched(RestingGeneratorRun(tmp_path, clock, 3000))
    assert [entry["outcome"] for entry in probes] == ["void", "void", "sustained", "void", "void"]
    assert (found["low"], found["high"], found["end"]) == (pytest.approx(2000, rel=0.01), None, "generator")


def test_a_query_that_reads_nothing_in_time_ends_the_run_in_one_line(tmp_path, clock):
    live = SlowingRun(tmp_path, clock, 1000, 0.1, 2, probes=2)
    with pytest.raises(EnvironmentFailure, match=r"sustained: 2 probes down to 99\.8 records/s") as failure:
        sustainable.find(live, live.schedule)
    assert "allow more load.probes" in str(failure.value)


def test_a_query_that_reads_on_is_waited_for_however_long_it_takes(tmp_path, clock):
    live = SimulatedRun(tmp_path, clock, 10, rate=10_000, precision=1)
    probes, found, *_ = searched(live)
    assert probes[0]["started_ns"] - START_NS > 2000 * NS, "a burst of 20,000 records"
    assert probes[0]["lag_begin"] < 20
    assert found["low"] <= 10.2


def test_a_query_that_reads_nothing_more_is_given_up_with_what_to_change(tmp_path, clock):
    live = SimulatedRun(tmp_path, clock, 0)
    with pytest.raises(EnvironmentFailure, match="for 300 s the query has read none of the ") as failure:
        sustainable.find(live, Schedule(START_NS, 1000.0, 3))
    assert "load.rate is far above what the query does" in str(failure.value)
    assert clock.now_ns - START_NS == pytest.approx(300 * NS, abs=5 * NS)


def test_records_that_the_broker_refused_are_not_waited_for(tmp_path, clock):
    live = SimulatedRun(tmp_path, clock, 3000)
    live.failed = 1200
    with pytest.raises(EnvironmentFailure, match="the broker refused 1,200 records"):
        sustainable.find(live, live.schedule)


def test_lag_counts_from_due_and_unread_from_delivered():
    schedule = Schedule(START_NS, 100.0)
    second = [START_NS + number * NS for number in range(6)]
    read = list(zip(second, (0, 50, 100, 150, 200, 250), strict=True))
    delivered = list(zip(second, (0, 60, 120, 180, 240, 300), strict=True))
    seen = ProbeRecords(schedule, second[2], second[5], read, delivered)
    assert seen.lag == [(0, 100), (1, 150), (2, 200), (3, 250)]
    assert seen.unread == [(0, 20), (1, 30), (2, 40), (3, 50)]
    assert seen.figures == {
        "watched_ns": second[2], "ended_ns": second[5],
        "due": 300, "delivered": 180, "read": 150, "lag_begin": 100, "lag_end": 250,
    }  # fmt: skip


def test_the_end_counts_too_with_what_was_read_by_then():
    read = [(START_NS + second * NS, 90) for second in range(1, 6)] + [(START_NS + 11 * NS, 1000)]
    seen = ProbeRecords(Schedule(START_NS, 100.0), START_NS + 2 * NS, START_NS + 10 * NS, read, [(START_NS, 0)])
    assert seen.lag == [(0, 110), (1, 210), (2, 310), (3, 410), (8, 910)]


class StuckRun(SimulatedRun):
    """A query of micro-batches, one a second, that is in time until it commits nothing more."""

    def __init__(self, folder, clock, until_s):
        super().__init__(folder, clock, 1e9)
        self.experiment = Experiment(engine={"checkpoint_interval_s": 1})
        self.until_ns, self.committed = START_NS + until_s * NS, 0

    def tell(self):
        at_ns, delivered, read = self.counts[-1]
        self.journals["generator"].record(example(RecordsSent, at_ns, delivered=int(delivered), failed=self.failed))
        if at_ns <= self.until_ns and len(self.counts) % 2 and int(read) > self.committed:
            self.journals["query"].record(batch(at_ns, self.committed, int(read)))
            self.committed = int(read)


@pytest.mark.parametrize(
    ("until_s", "outcome"),
    [
        (8, "not-sustained"),  # most commits are in time, then so much is due that the probe is cut
        (9, "not-sustained"),  # not cut, but 5 s of input are left at the end
        (11, "sustained"),  # 3 s are: a batch may be under way
        (14, "sustained"),
    ],
)
def test_a_query_that_stops_within_its_probe_has_not_sustained_it(tmp_path, clock, until_s, outcome):
    start_ns, end_ns = START_NS + 4 * NS, START_NS + 14 * NS
    probe = sustainable.Probe(0, Schedule(START_NS, 1000.0, 3), START_NS, start_ns, end_ns)
    journal = Journal(tmp_path / "search.jsonl")
    live = StuckRun(tmp_path, clock, until_s)
    judged, _ = sustainable._watch(live, sustainable.LoadJournals(live), probe, journal)
    assert judged.outcome == outcome, judged.why
    (entry,) = list(raw_entries(tmp_path / "search.jsonl"))
    assert (entry["ended_ns"] < end_ns) == (until_s == 8)


def batch(at_ns, start, end):
    source = {"startOffset": {"input": {"0": start}}, "endOffset": {"input": {"0": end}}}
    return batch_committed(at_ns, numInputRows=end - start, sources=[source])


def reads(experiment, journal):
    """What is made of a journal, after the beginning with nothing."""
    found = engine_of(experiment).reads()
    for event in journal:
        found.take(event)
    begun, *counts = found.counts
    assert begun == (0, 0)
    return counts


def test_micro_batches_are_added_up_and_reports_of_the_testbed_are_not():
    journal = [QueryReady((), at_ns=1), batch(2, 0, 10), batch(3, 10, 10), batch(4, 10, 25)]
    assert reads(Experiment(), journal) == [(2, 10), (4, 25)]
    beside = {"startOffset": {"rates": {"0": 0}}, "endOffset": {"rates": {"0": 1_000}}}
    (of_input,) = batch(5, 25, 30).progress["sources"]
    journal.append(batch_committed(5, numInputRows=1_005, sources=[of_input, beside]))
    assert reads(Experiment(), journal)[-1] == (5, 30), "records of topics beside the declared input do not count"
    testbed = [
        report(5, positions={"bids.0": 4, "bids.1": 3}),
        report(6, phase=RunPhase.RESTORING, positions={"bids.0": 4, "bids.1": 3}),
        report(7, positions={"bids.0": 4, "bids.1": 9}),
    ]
    assert reads(Experiment(**TESTBED), testbed) == [(5, 7), (7, 13)]
