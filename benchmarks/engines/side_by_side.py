"""The same NexMark queries at the same rates on several engines, from a topic to a topic.

`.venv/bin/python -m benchmarks.engines.side_by_side [--engine spark] [--engine testbed] [--engine NAME=COMMAND]
[--queries q1] [--rates 5000] [--seconds 20] [--json]` starts a broker, and for each query and rate one engine after the
other. What a command must do is in `benchmarks.engines.peer_engine`: so anybody's engine can be put beside these two.
The driver feeds the topic (a few records until the first result is out, then the rate), and reads what is committed. A
row is about the results that were due in the window:

    records/s    sent to the topic in the window, of all kinds
    a core       records for each second of CPU time of the engine's processes, which are all that the command started
    results      committed until the end, each once; engines that give the same results have about the same number
    doubled      results that came once more, in the whole run
    p50, p99     from when a result's last record was due (or its window ended) until it could be read [s]
    behind       how much of the load the engine did not keep up with (`benchmarks.engines.result_timing`)
    keeps up     whether that is less than a twentieth
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.engines.peer_engine import COMMANDS, Engine, RunningEngine, Task
from benchmarks.engines.result_timing import Results, Timing
from benchmarks.sigterm import end_by_sigterm
from experiments.errors import AftershockError, EnvironmentFailure
from experiments.workloads import NexmarkQuery, NexmarkSpec
from infra.broker import Broker
from infra.local import LocalDriver
from infra.services import kafka
from tests.integration.lone_broker import lone_broker
from workloads.inputs import TopicStream, records
from workloads.nexmark.feed import LATENESS_S
from workloads.schedule import Schedule
from workloads.sending.input_sender import InputSender

FIRST_RATE, FIRST_LIMIT_S = 200.0, 120.0  # until the first result is out
SPARE_S, READ_S = 3.0, 0.02
KEEPS_UP = 0.05
HEAD = "query  rate     engine     records/s   a core    results  doubled  p50 s  p99 s  behind  keeps up  load"


@dataclass(frozen=True)
class Row:
    """What one engine did with one query at one rate."""

    query: str
    rate: float
    engine: str
    records: int
    seconds: float
    cpu_s: float
    timing: Timing
    doubled: int
    load: float

    @property
    def keeps_up(self) -> bool:
        """Also an engine that loses less than a twentieth of the load; not one of which nothing can be said."""
        return self.timing.behind < KEEPS_UP

    def to_json(self) -> dict[str, Any]:
        """The fields, the record rates, and whether it keeps up; what is not known is null."""
        timing = {name: None if value != value else value for name, value in asdict(self.timing).items()}
        rates = {
            "records_per_second": self.records / self.seconds,
            "records_per_core_second": self.records / self.cpu_s,
        }
        return {**asdict(self), "timing": timing, **rates, "keeps_up": self.keeps_up}

    def __str__(self) -> str:
        timing = self.timing
        return (
            f"{self.query:5} {self.rate:7,.0f} {self.engine:10} {self.records / self.seconds:9,.0f}"
            f" {self.records / self.cpu_s:8,.0f} {timing.results:10,} {self.doubled:8,} {timing.p50_s:6.2f}"
            f" {timing.p99_s:6.2f} {timing.behind:7.1%}  {'yes' if self.keeps_up else 'no':8} {self.load:5.0f}"
        )


class Feed:
    """Sends the input at a rate that can be changed, while results are read."""

    def __init__(self, task: Task, spec: NexmarkSpec, results: Results, running: RunningEngine) -> None:
        self._spec, self._results, self._running = spec, results, running
        self._topic = task.input
        self.schedule = Schedule(time.time_ns(), FIRST_RATE, task.partitions)
        self._sender = InputSender(task.broker, task.input, records(spec, self.schedule), self.schedule)

    def until_first_result(self) -> None:
        """Send a few records until the engine has written something; raises `EnvironmentFailure` if it does not."""
        deadline_s = time.monotonic() + FIRST_LIMIT_S
        while not len(self._results):
            if time.monotonic() > deadline_s:
                cause = f"no result within {FIRST_LIMIT_S:g} s; the engine's log ends: {self._running.told()}"
                raise EnvironmentFailure(cause, "look at its command")
            self._step()

    def set_rate(self, rate: float) -> None:
        """Go on at another rate with the next record."""
        self.schedule = self.schedule.then(time.time_ns(), rate)
        self._sender.follow(TopicStream(self._topic, records(self._spec, self.schedule), self.schedule))

    def run(self, seconds: float) -> None:
        """For `seconds`, send records when they are due, and read results."""
        deadline_s = time.monotonic() + seconds
        while time.monotonic() < deadline_s:
            self._step()

    def _step(self) -> None:
        self._sender.send_until(self.schedule.due_count(time.time_ns()))
        self._results.read(READ_S)
        self._running.require()

    def close(self) -> None:
        """Nothing more is sent."""
        self._sender.finish()


def measured(engine: Engine, task: Task, rate: float, warm_s: float, seconds: float) -> Row:
    """One engine with one query at one rate."""
    spec = NexmarkSpec(query=NexmarkQuery(task.query), window_s=task.window_s, slide_s=task.window_s)
    kafka.create_topics(task.broker, {task.input: task.partitions, task.output: task.partitions})
    results, running = Results.of_topic(task.broker, task.output, task.partitions), RunningEngine(engine, task)
    try:
        feed = Feed(task, spec, results, running)
        feed.until_first_result()
        feed.set_rate(rate)
        feed.run(warm_s)
        begin_ns, begin_cpu_s = time.time_ns(), running.cpu_s()
        feed.run(seconds)
        end_ns, end_cpu_s = time.time_ns(), running.cpu_s()
        feed.run(_until_out_s(spec, task))
        feed.close()
    finally:
        running.stop()
        results.close()
    sent = feed.schedule.due_count(end_ns) - feed.schedule.due_count(begin_ns)
    timing = results.between(begin_ns / 1e6, end_ns / 1e6)
    length_s, cpu_s = (end_ns - begin_ns) / 1e9, end_cpu_s - begin_cpu_s
    return Row(task.query, rate, engine.name, sent, length_s, cpu_s, timing, results.doubled, os.getloadavg()[0])


def _until_out_s(spec: NexmarkSpec, task: Task) -> float:
    """How long an engine that keeps up may take after the window until its results are committed."""
    window_s = 0.0 if spec.by_record else spec.window_s + LATENESS_S
    return window_s + spec.settling_ms / 1e3 + 2 * task.checkpoint_s + SPARE_S


def main() -> None:
    """Measure, and print a line for each engine, query and rate."""
    given = _arguments()
    end_by_sigterm()
    told = sys.stderr if given.json else sys.stdout
    try:
        engines = [Engine.parse(text) for text in given.engine or COMMANDS]
        with tempfile.TemporaryDirectory(prefix="aftershock-side-by-side-") as root:
            print(HEAD, file=told, flush=True)
            rows = []
            with lone_broker(LocalDriver(), Path(root) / "broker") as handle:
                for row in _rows(engines, handle.kafka, Path(root), given):
                    rows.append(row)
                    print(row, file=told, flush=True)
    except AftershockError as error:
        sys.exit(str(error))
    if given.json:
        print(json.dumps([row.to_json() for row in rows]))


def _rows(engines: list[Engine], broker: Broker, root: Path, given: argparse.Namespace) -> Iterator[Row]:
    cases = [(query, rate, engine) for query in given.queries for rate in given.rates for engine in engines]
    for number, (query, rate, engine) in enumerate(cases):
        folder = root / f"engine-{number}"
        folder.mkdir()
        topics = f"input-{number}", f"output-{number}"
        task = Task(broker, query, given.window, *topics, given.partitions, given.checkpoint, folder)
        yield measured(engine, task, rate, given.warm, given.seconds)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", action="append", help="spark, testbed or NAME=COMMAND; may be given several times")
    parser.add_argument("--queries", nargs="+", choices=[each.value for each in NexmarkQuery], default=["q1"])
    parser.add_argument("--rates", nargs="+", type=float, default=[5000.0], help="records a second, of all kinds")
    parser.add_argument("--seconds", type=float, default=20.0, help="that are measured")
    parser.add_argument("--warm", type=float, default=15.0, help="seconds at the rate before that")
    parser.add_argument("--window", type=float, default=2.0, help="length of the queries' windows [s]")
    parser.add_argument("--checkpoint", type=float, default=2.0, help="seconds between checkpoints or micro-batches")
    parser.add_argument("--partitions", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
