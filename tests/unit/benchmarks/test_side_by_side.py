"""What an engine is told, and what is made of its results, without a broker."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import pytest

from benchmarks.engines.peer_engine import COMMANDS, Engine, RunningEngine, Task
from benchmarks.engines.result_timing import Results, Timing
from benchmarks.engines.side_by_side import Row
from benchmarks.engines.testbed_engine import job_of
from experiments.errors import BadInput, EnvironmentFailure
from experiments.waiting import poll_until
from infra.broker import Broker

BEGIN_MS, THIRD_MS = 1_000_000, 10_000
LONG_S = 60.0


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
        results.take(json.dumps(body).encode(), due_ms + latency_ms(due_ms - BEGIN_MS), "here")


@pytest.mark.parametrize("name", list(COMMANDS))
def test_an_engine_of_ours_is_told_the_whole_task(name: str, task: Task) -> None:
    python, flag, module, *words = Engine.parse(name).command_for(task)
    assert (python, flag, module) == (sys.executable, "-m", f"benchmarks.engines.{name}_engine")
    assert Task.from_words(words) == task


def test_the_testbed_reads_and_writes_the_topics_of_the_task(task: Task) -> None:
    job = job_of(task)
    assert (job.input.topic, job.output.topic, job.parallelism) == ("input-1", "output-1", 2)
    assert (job.workload.query.value, job.workload.window_s, job.checkpoint_interval_s) == ("q12", 2.0, 0.5)


def test_somebody_elses_command_is_filled_in(task: Task) -> None:
    engine = Engine.parse("flink=./start.sh --topic={input} '{broker} {query}' $HOME")
    assert engine.command_for(task) == ["./start.sh", "--topic=input-1", "127.0.0.1:9092 q12", "$HOME"]


@pytest.mark.parametrize("text", ["flink", "=./start.sh", "flink="])
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
    assert running.cpu_s() > 0.05
    running.stop()


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
    assert row(timing).to_json()["timing"]["behind"] is None


def test_a_result_that_comes_again_is_counted_by_itself(results: Results) -> None:
    fill(results, lambda since_ms: 0)
    fill(results, lambda since_ms: 1000)
    assert (len(results), results.doubled) == (300, 300)
    assert results.between(BEGIN_MS, BEGIN_MS + 3 * THIRD_MS).p99_s == 0


@pytest.mark.parametrize("value", [None, b"", b"[]", b"{}", b'{"start_ms": 1, "end_ms": null, "key": "k"}', b"\xff"])
def test_a_message_that_is_no_result_is_told_with_its_place(results: Results, value: bytes | None) -> None:
    with pytest.raises(EnvironmentFailure, match="topic t, partition 1, offset 7 is no result"):
        results.take(value, 0.0, "topic t, partition 1, offset 7")


def row(timing: Timing) -> Row:
    return Row("q1", 100.0, "spark", 2000, 20.0, 10.0, timing, 0, 1.0)


def test_a_row_has_rates_by_the_clock_and_by_cpu_time() -> None:
    found = row(Timing(1840, 0.5, 1.0, 0.01))
    document = found.to_json()
    assert (document["records_per_second"], document["records_per_core_second"]) == (100.0, 200.0)
    assert document["keeps_up"] is True
    assert str(found).split()[3:5] == ["100", "200"]
