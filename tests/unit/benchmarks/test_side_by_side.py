"""What an engine is told, and what is made of its results, without a broker."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.engines import result_timing, side_by_side
from benchmarks.engines.comparison_row import Row
from benchmarks.engines.paced_feed import LateRecords
from benchmarks.engines.peer_engine import ENGINES, Engine, ResultDelivery, RunningEngine, Task
from benchmarks.engines.result_timing import Results, Timing
from benchmarks.engines.side_by_side import cases_of, check_times, expected_results, rows_of, waits_s
from experiments.errors import BadInput, EnvironmentFailure
from experiments.waiting import poll_until
from experiments.workloads.catalogue import NexmarkQuery, NexmarkSpec
from infra.broker import Broker
from testbed.runtime.connectors.sources import stream_of
from workloads.nexmark.feed import LATENESS_S
from workloads.nexmark.stream import events_of
from workloads.schedule import Schedule

BEGIN_MS, THIRD_MS, START_MS = 1_000_000, 10_000, 1_700_000_000_000
LONG_S = 60.0
PLACE = ("t", 1, 7)


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return Task(Broker("127.0.0.1:9092", "client file"), "q12", 2.0, "input-1", "output-1", 2, 0.5, tmp_path)


@pytest.fixture
def results() -> Results:
    return Results(None)  # nothing is read here


def fill(results: Results, latency_ms) -> None:
    """A result every 100 ms, out so long after it was due."""
    for number, due_ms in enumerate(range(BEGIN_MS, BEGIN_MS + 3 * THIRD_MS, 100)):
        body = {"start_ms": due_ms, "end_ms": due_ms, "key": f"0:{number}", "value": "{}"}
        results.take((json.dumps(body).encode(), due_ms + latency_ms(due_ms - BEGIN_MS), PLACE, False))


@pytest.mark.parametrize("name", list(ENGINES))
def test_an_engine_of_ours_is_told_the_whole_task(name: str, task: Task) -> None:
    python, flag, module, *words = Engine.parse(name).command_for(task)
    assert (python, flag, module) == (sys.executable, "-m", f"benchmarks.engines.{name}_engine")
    assert Task.from_words(words) == task


def test_somebody_elses_command_is_filled_in(task: Task) -> None:
    engine = Engine.parse("flink=./start.sh --topic={input} '{broker} {query}' $HOME")
    assert engine.command_for(task) == ["./start.sh", "--topic=input-1", "127.0.0.1:9092 q12", "$HOME"]


@pytest.mark.parametrize("text", ["flink", "=./start.sh", "flink=", "flink= "])
def test_an_engine_without_name_or_command_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="NAME=COMMAND"):
        Engine.parse(text)


@pytest.mark.parametrize("command", ["run {topic}", "run {}", "run {broker.port}", "run {input"])
def test_an_unknown_word_in_braces_is_refused(command: str, task: Task) -> None:
    with pytest.raises(BadInput, match="only these in braces: "):
        Engine("flink", command).command_for(task)


def test_an_engine_that_ends_is_told_with_the_end_of_its_log(task: Task) -> None:
    running = RunningEngine(Engine("brief", f"{sys.executable} -c 'print(\"no such topic\"); exit(3)'"), task)
    running._process.wait(LONG_S)
    with pytest.raises(EnvironmentFailure, match="brief has ended with code 3: no such topic"):
        running.require()
    running.stop()


def test_what_an_engine_started_costs_and_ends_with_it(task: Task) -> None:
    child = f"{sys.executable} -c 'sum(range(10**7)); print(1, flush=True); import time; time.sleep({LONG_S:g})'"
    running = RunningEngine(Engine("shell", f'sh -c "{child} & wait"'), task)
    running.require()
    log = task.folder / "log"
    assert poll_until(lambda: log.read_text() == "1\n", interval_s=0.02, limit_s=LONG_S)
    _, grandchild = running._processes()
    assert running.cpu_s() > 0, "the shell itself takes hardly any"
    running.stop()
    assert poll_until(lambda: not grandchild.is_running(), interval_s=0.02, limit_s=LONG_S)


def test_processes_that_have_ended_cost_as_well(task: Task) -> None:
    child = f"{sys.executable} -c 'sum(range(10**7))'"
    running = RunningEngine(Engine("shell", f'sh -c "{child}; echo done; sleep {LONG_S:g}"'), task)
    log = task.folder / "log"
    assert poll_until(lambda: log.read_text() == "done\n", interval_s=0.02, limit_s=LONG_S)
    used_s = running.cpu_s()
    running.stop()
    assert used_s > 0.05


def test_an_engine_that_keeps_up_is_not_behind(results: Results) -> None:
    fill(results, lambda since_ms: 500)
    timing = results.between(BEGIN_MS, BEGIN_MS + 3 * THIRD_MS)
    assert timing == Timing(300, 0.5, 0.5, 0.0)


def test_an_engine_that_does_nine_tenths_of_the_load_falls_behind(results: Results) -> None:
    fill(results, lambda since_ms: since_ms / 9)  # at .9 of the rate a record is done at 10/9 of its time
    timing = results.between(BEGIN_MS, BEGIN_MS + 3 * THIRD_MS)
    assert timing.behind == pytest.approx(1 / 9)
    assert not row(timing).keeps_up


def test_only_what_was_due_in_the_window_counts(results: Results) -> None:
    fill(results, lambda since_ms: 0 if THIRD_MS <= since_ms < 2 * THIRD_MS else 9000)
    timing = results.between(BEGIN_MS + THIRD_MS, BEGIN_MS + 2 * THIRD_MS)
    assert timing == Timing(100, 0.0, 0.0, 0.0)


def test_an_engine_whose_last_results_are_missing_does_not_keep_up(results: Results) -> None:
    fill(results, lambda since_ms: 0)
    timing = results.between(BEGIN_MS + THIRD_MS, BEGIN_MS + 6 * THIRD_MS)
    assert math.isnan(timing.behind)
    assert not row(timing).keeps_up


def test_a_result_that_comes_again_is_counted_by_itself(results: Results) -> None:
    fill(results, lambda since_ms: 0)
    fill(results, lambda since_ms: 1000)
    assert (len(results), results.doubled) == (300, 300)
    assert results.between(BEGIN_MS, BEGIN_MS + 3 * THIRD_MS).p99_s == 0


@pytest.mark.parametrize("value", [None, b"", b"[]", b"{}", b'{"start_ms": 1, "end_ms": null, "key": "k"}', b"\xff"])
def test_a_message_that_is_no_result_is_told_with_its_place(results: Results, value: bytes | None) -> None:
    results.take((value, 0.0, PLACE, False))
    with pytest.raises(EnvironmentFailure, match="topic t, partition 1, offset 7 is no result"):
        results.between(BEGIN_MS, BEGIN_MS + 1)


def row(timing: Timing, **given: Any) -> Row:
    found = Row(
        query="q1",
        rate=100.0,
        run=0,
        engine="spark",
        delivery=ResultDelivery.AT_LEAST_ONCE,
        waits_s=2.0,
        records=2000,
        sent_late=0.0,
        measured_s=20.0,
        cpu_s=10.0,
        timing=timing,
        doubled=0,
        load_1min=1.0,
    )
    return replace(found, **given)


TIMELY = Timing(1840, 0.5, 1.0, 0.01, missing=0)


def test_a_row_has_rates_by_the_clock_and_by_cpu_time() -> None:
    found = row(TIMELY)
    assert found.keeps_up is True
    assert str(found).split()[4:6] == ["100", "200"]


def test_a_row_tells_what_an_engine_does_differently_on_purpose() -> None:
    assert str(row(TIMELY)).split()[-5:-1] == ["2", "at", "least", "once"]
    assert str(row(TIMELY, waits_s=None, delivery=ResultDelivery.AS_ASKED)).split()[-4:-1] == ["-", "as", "asked"]


@pytest.mark.parametrize(
    ("name", "query", "wait_s"),
    [("spark", "q12", LATENESS_S), ("spark", "q1", 0.0), ("testbed", "q12", 0.0), ("peer=./run", "q12", None)],
)
def test_only_windows_on_spark_wait_for_late_events(name: str, query: str, wait_s: float | None) -> None:
    assert waits_s(Engine.parse(name), NexmarkSpec(query=NexmarkQuery(query))) == wait_s


def test_the_testbed_shows_results_once_and_spark_at_least_once() -> None:
    found = [Engine.parse(name).delivery for name in ("spark", "testbed", "peer=./run")]
    assert found == [ResultDelivery.AT_LEAST_ONCE, ResultDelivery.EXACTLY_ONCE, ResultDelivery.AS_ASKED]


@pytest.mark.parametrize(
    ("late", "why"),
    [
        ({"sent_late": 0.011}, "void: the driver sent 1.1% of the records"),
        ({"timing": replace(TIMELY, read_late=0.011)}, "void: the driver read 1.1% of the results"),
    ],
)
def test_a_row_is_void_if_the_driver_was_late(late: dict[str, Any], why: str) -> None:
    found = row(**{"timing": TIMELY, **late})
    assert found.keeps_up is None
    assert " void " in str(found).splitlines()[0]
    assert why in str(found).splitlines()[1]
    assert found.records_per_core_second is None


def test_a_driver_that_is_hardly_late_does_no_harm() -> None:
    assert row(replace(TIMELY, read_late=0.01), sent_late=0.01).keeps_up is True


@pytest.mark.parametrize("changed", [{"missing": 1}, {"behind": 0.021}])
def test_there_is_no_rate_of_a_core_for_an_engine_that_does_not_keep_up(changed: dict[str, Any]) -> None:
    found = row(replace(TIMELY, **changed))
    assert found.keeps_up is False
    assert str(found).split()[5] == "-"


def test_an_engine_whose_cpu_time_is_not_seen_is_told() -> None:
    found = row(TIMELY, cpu_s=0.0)
    assert found.keeps_up is True
    assert str(found).split()[5] == "-"
    assert "less than 0.01 s of CPU time" in str(found)


def test_results_that_never_came_are_infinitely_late(results: Results) -> None:
    fill(results, lambda since_ms: 500)
    window = BEGIN_MS, BEGIN_MS + 3 * THIRD_MS
    found = row(results.between(*window, expected=304))
    assert found.timing == Timing(300, 0.5, math.inf, 0.0, missing=4)
    assert found.keeps_up is False
    assert "4 results never came" in str(found)
    assert results.between(*window, expected=601).p50_s == math.inf
    assert results.between(*window, expected=300) == Timing(300, 0.5, 0.5, 0.0, missing=0)


@pytest.mark.parametrize("query", [NexmarkQuery.Q0, NexmarkQuery.Q1])
def test_a_result_is_expected_of_every_bid(query: NexmarkQuery) -> None:
    begin_ms = START_MS + 5000
    assert expected_results(NexmarkSpec(query=query), Fed(), begin_ms, begin_ms + 2000) == 200 * 46 / 50


def test_counts_are_expected_of_the_windows_that_end_in_time() -> None:
    spec = NexmarkSpec(query=NexmarkQuery.Q12, window_s=2.0, slide_s=2.0)
    bids = events_of(stream_of(spec, Fed.schedule), "bids", 0, Fed.sent).to_pylist()
    ends = [end_ms for end_ms, _ in {((each["date_time"] // 2000 + 1) * 2000, each["bidder"]) for each in bids}]
    for begin_ms, end_ms in ((START_MS + 3000, START_MS + 7000), (START_MS + 3999, START_MS + 6001)):
        wanted = sum(begin_ms <= each < end_ms for each in ends)
        assert wanted > 5
        assert expected_results(spec, Fed(), begin_ms, end_ms) == wanted


def test_of_other_queries_nobody_knows_how_many_results_are_due() -> None:
    assert expected_results(NexmarkSpec(query=NexmarkQuery.Q4), Fed(), START_MS, START_MS + 1000) is None


class Fed:
    """A feed that has sent ten seconds of events, none of them at the moment at which a window ends."""

    schedule, sent = Schedule((START_MS + 3) * 10**6, 100.0, 2), 1000


class Messages:
    """A consumer that brings a given number of results at every look."""

    def __init__(self, *counts: int) -> None:
        self._counts, self._offset = iter(counts), 0

    def consume(self, most: int, seconds: float) -> list[SimpleNamespace]:
        found = range(self._offset, self._offset + next(self._counts))
        self._offset = found.stop
        return [message(number) for number in found]


def message(number: int) -> SimpleNamespace:
    value = json.dumps({"start_ms": BEGIN_MS, "end_ms": BEGIN_MS, "key": str(number)}).encode()
    told = {"error": None, "value": value, "topic": "t", "partition": 0, "offset": number}
    return SimpleNamespace(**{name: lambda answer=answer: answer for name, answer in told.items()})


def late_share(counts: list[int], looks_ms: list[int], monkeypatch: pytest.MonkeyPatch) -> float:
    """Share of the results that are read late, with looks at these moments; the first is the consumer's beginning."""
    clock = iter(looks_ms)
    monkeypatch.setattr(result_timing.time, "time_ns", lambda: next(clock) * 10**6)
    results = Results(Messages(*counts))
    for _ in counts:
        results.read(0.0)
    return results.between(BEGIN_MS, BEGIN_MS + 1).read_late


def test_results_are_read_late_after_a_long_time_without_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    assert late_share([3, 1], [0, 50, 150], monkeypatch) == 0
    assert late_share([3, 1], [0, 50, 151], monkeypatch) == 0.25


def test_results_are_read_late_if_more_wait_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_timing, "MOST", 3)
    assert late_share([3, 1], [0, 60, 120], monkeypatch) == 0.25
    assert late_share([2, 2], [0, 60, 120], monkeypatch) == 0


def test_records_are_late_once_that_the_broker_does_not_have_in_time() -> None:
    late = LateRecords()
    late.look(overdue=100, delivered=120)
    assert late.count == 0
    late.look(overdue=150, delivered=120)
    late.look(overdue=150, delivered=130)
    assert late.count == 30
    late.look(overdue=160, delivered=200)
    late.look(overdue=210, delivered=200)
    assert late.count == 40


def test_a_row_counts_what_the_broker_took_and_has_the_load_before_the_run(
    task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(side_by_side.kafka, "create_topics", lambda *given: None)
    monkeypatch.setattr(side_by_side, "PacedFeed", SlowFeed)
    monkeypatch.setattr(side_by_side, "RunningEngine", lambda *given: SimpleNamespace(cpu_s=float, stop=lambda: None))
    monkeypatch.setattr(Results, "of_topic", lambda *given: Results(SimpleNamespace(close=lambda: None)))
    monkeypatch.setattr(SlowFeed, "load", 2.0)
    monkeypatch.setattr(os, "getloadavg", lambda: (SlowFeed.load, 0.0, 0.0))
    found = side_by_side.measured(Engine.parse("spark"), replace(task, query="q4"), 1000.0, 15.0, 1.0)
    assert found.records == 70
    assert (found.load_1min, SlowFeed.load) == (2.0, 99.0)
    assert found.void is not None


class SlowFeed:
    """A feed of which the broker takes 70 records a second, and the rest late; it loads the machine."""

    load = 2.0

    def __init__(self, *given: Any) -> None:
        self.schedule = Schedule(time.time_ns(), 1000.0, 2)
        self.delivered = self.late = 0

    def until_first_result(self) -> None: ...

    def set_rate(self, rate: float) -> None: ...

    def close(self) -> None: ...

    def run(self, seconds: float) -> None:
        SlowFeed.load = 99.0
        self.delivered += round(70 * seconds)
        self.late += round(930 * seconds)


def test_the_order_of_the_engines_alternates() -> None:
    engines = [Engine.parse("spark"), Engine.parse("testbed")]
    found = [(each.query, each.run, each.engine.name) for each in cases_of(["q1", "q12"], [10.0], engines, 2)]
    assert found == [
        (query, run, name)
        for query in ("q1", "q12")
        for run, names in enumerate((("spark", "testbed"), ("testbed", "spark")))
        for name in names
    ]


GIVEN = Namespace(
    queries=["q1"], rates=[10.0], repeats=2, window=2.0, checkpoint=1.0, partitions=2, warm=15.0, seconds=18.0
)


def test_the_first_case_is_discarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []
    monkeypatch.setattr(side_by_side, "measured", lambda engine, task, *given: ran.append(task.output) or len(ran))
    found = list(rows_of([Engine.parse("spark")], Broker("127.0.0.1:9092"), tmp_path, GIVEN))
    assert (found, len(set(ran))) == ([2, 3], 3)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"seconds": 17.9}, "at least 18"),
        ({"checkpoint": 2.1}, "at least 18.9"),
        ({"warm": 1.9}, "at least 2"),
    ],
)
def test_a_run_that_is_too_short_is_refused(changed: dict[str, float], why: str) -> None:
    check_times(GIVEN)
    with pytest.raises(BadInput, match=why):
        check_times(Namespace(**{**vars(GIVEN), **changed}))
