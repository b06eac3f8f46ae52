"""The same NexMark queries at the same rates on several engines, from a topic to a topic.

`.venv/bin/python -m benchmarks.engines.side_by_side [--engine spark] [--engine testbed] [--engine NAME=COMMAND]
[--queries q1] [--rates 5000] [--seconds 20] [--repeats N]` starts a broker, and for each query and rate one
engine after the other; the order of the engines is reversed in every other repeat. What a command must do is in
`benchmarks.engines.peer_engine`: so anybody's engine can be put beside these two. The driver feeds the topic (a few
records until the first result is out, then the rate), and reads what is committed. COMMAND may also be one of these two
with options, to compare settings of one engine (`benchmarks.engines.testbed_engine`). For example, how late results of
the testbed are if they wait for one checkpoint, and if they wait for none:

    .venv/bin/python -m benchmarks.engines.side_by_side --engine 'early=testbed --spare-lines 0' \\
        --engine 'plain=testbed --delivery plain' --queries q1 --rates 20000 --checkpoint 5 --seconds 45

The first case runs once more before all others, and its row is discarded: it finds a cold broker and cold files. A row
is about the results that were due in the window:

    records/s    that the broker took in the window, of all kinds
    a core       records for each second of CPU time of the engine's processes, which are all that the command started;
                 - for an engine that does not keep up, or whose processes take no CPU time (`docker`)
    results      committed until the end, each once
    missing      results that were due and never came: of Q0, Q1, Q3, Q8 and Q12, where it is known how many were due
    doubled      results that came once more, in the whole run
    p50, p99     from when a result's last record was due (or its window ended) until it could be read [s]; a missing
                 result is infinitely late
    behind       how much of the load the engine did not keep up with (`benchmarks.engines.result_timing`)
    keeps up     whether nothing is missing and that is at most 2 %, as in a search for the sustainable rate. `void`:
                 the driver itself was late, so that the row says nothing of the engine
    waits        how much longer windows stay open for late events [s]; p50 and p99 include it. - is not known
    delivery     how often readers see a result (`benchmarks.engines.peer_engine.ResultDelivery`)
"""

from __future__ import annotations

import argparse
import gc
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.arguments import above_zero, at_least_one
from benchmarks.engines.comparison_row import HEAD, Row
from benchmarks.engines.paced_feed import PacedFeed
from benchmarks.engines.peer_engine import ENGINES, Engine, RunningEngine, Task
from benchmarks.engines.result_timing import Results
from benchmarks.machine_load import load_of_others
from benchmarks.one_line_errors import one_line_errors
from benchmarks.sigterm import end_by_sigterm
from benchmarks.testbed.nexmark_results import READ_OF_A_CYCLE, ExpectedResults
from experiments.errors import BadInput
from experiments.workloads.catalogue import NexmarkQuery, NexmarkSpec
from infra.broker import Broker
from infra.local import LocalDriver
from infra.services import kafka
from tests.integration.lone_broker import lone_broker
from workloads.nexmark.feed import LATENESS_S

SPARE_S = 3.0
LEAST_PERIODS = 9  # checkpoints and windows in the measured time: three in each third, whose medians are compared


@dataclass(frozen=True)
class Case:
    """One row to be measured; `run` counts the repeats."""

    query: str
    rate: float
    run: int
    engine: Engine


def cases_of(queries: Sequence[str], rates: Sequence[float], engines: Sequence[Engine], repeats: int) -> list[Case]:
    """All rows in their order, in which no engine always runs first."""
    return [
        Case(query, rate, run, engine)
        for query in queries
        for rate in rates
        for run in range(repeats)
        for engine in engines[:: 1 if run % 2 == 0 else -1]
    ]


def measured(engine: Engine, task: Task, rate: float, warm_s: float, seconds: float, run: int = 0) -> Row:
    """One engine with one query at one rate."""
    load = load_of_others()
    kafka.create_topics(task.broker, {task.input: task.partitions, task.output: task.partitions})
    results, running = Results.of_topic(task.broker, task.output, task.partitions), RunningEngine(engine, task)
    gc.disable()  # a collection looks at all results that were taken, and makes the load late by more than LATE_S
    try:
        feed = PacedFeed(task, results, running)
        feed.until_first_result()
        feed.set_rate(rate)
        feed.run(warm_s)
        begin_ns, begin_cpu_s, delivered, late = time.time_ns(), running.cpu_s(), feed.delivered, feed.late
        feed.run(seconds)
        end_ns, end_cpu_s = time.time_ns(), running.cpu_s()
        delivered, late = feed.delivered - delivered, feed.late - late
        feed.run(_until_out_s(task))
        feed.close()
    finally:
        gc.enable()
        running.stop()
        results.close()
    begin_ms, end_ms = begin_ns / 1e6, end_ns / 1e6
    due = feed.schedule.due_count(end_ns) - feed.schedule.due_count(begin_ns)
    return Row(
        query=task.query,
        rate=rate,
        run=run,
        engine=engine.name,
        delivery=engine.delivery,
        waits_s=waits_s(engine, task.spec),
        records=delivered,
        sent_late=late / max(due, 1),
        measured_s=(end_ns - begin_ns) / 1e9,
        cpu_s=end_cpu_s - begin_cpu_s,
        timing=results.between(begin_ms, end_ms, expected_results(task.spec, feed, begin_ms, end_ms)),
        doubled=results.doubled,
        load_1min=load,
    )


def expected_results(spec: NexmarkSpec, feed: PacedFeed, begin_ms: float, end_ms: float) -> int | None:
    """How many results were due in a time, of what was sent; None of a query where that is not known.

    The records before have other times than the schedule of the window says, so the time must begin at least a window
    after the last change of the rate.
    """
    if spec.query not in READ_OF_A_CYCLE:
        return None
    return ExpectedResults(spec, feed.schedule, feed.sent).due_between(begin_ms, end_ms)


def waits_s(engine: Engine, spec: NexmarkSpec) -> float | None:
    """How long an engine waits for late events before it closes a window. Results of single records do not wait."""
    return engine.waits_s and (0.0 if spec.by_record else engine.waits_s)


def _until_out_s(task: Task) -> float:
    """How long an engine that keeps up may take after the window until its results are committed."""
    spec = task.spec
    window_s = 0.0 if spec.by_record else spec.window_s + LATENESS_S
    return window_s + spec.settling_ms / 1e3 + 2 * task.checkpoint_s + SPARE_S


@one_line_errors()
def main() -> None:
    """Measure, and print a line for each engine, query and rate."""
    given = _arguments()
    end_by_sigterm()
    check_times(given)
    engines = [Engine.parse(text) for text in given.engine or ENGINES]
    print(HEAD, flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="aftershock-side-by-side-") as root,
        lone_broker(LocalDriver(), Path(root) / "broker") as handle,
    ):
        for row in rows_of(engines, handle.kafka, Path(root), given):
            print(row, flush=True)


def check_times(given: argparse.Namespace) -> None:
    """Raises `BadInput` if the run is too short for its checkpoints and windows."""
    longest_s = max(given.checkpoint, given.window)
    if given.seconds < LEAST_PERIODS * longest_s:
        least = f"at least {LEAST_PERIODS * longest_s:g}: {LEAST_PERIODS} times --checkpoint and --window"
        raise BadInput("seconds", given.seconds, least)
    if given.warm < given.window:
        raise BadInput("warm", given.warm, f"at least {given.window:g}: --window")


def rows_of(engines: list[Engine], broker: Broker, root: Path, given: argparse.Namespace) -> Iterator[Row]:
    """Measure all cases, the first one twice: its first row is discarded."""
    cases = cases_of(given.queries, given.rates, engines, given.repeats)
    for number, case in enumerate([*cases[:1], *cases]):
        folder = root / f"engine-{number}"
        folder.mkdir()
        topics = f"input-{number}", f"output-{number}"
        task = Task(broker, case.query, given.window, *topics, given.partitions, given.checkpoint, folder)
        row = measured(case.engine, task, case.rate, given.warm, given.seconds, case.run)
        if number:
            yield row


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", action="append", help="spark, testbed or NAME=COMMAND; may be repeated")
    parser.add_argument("--queries", nargs="+", choices=[each.value for each in NexmarkQuery], default=["q1"])
    parser.add_argument("--rates", nargs="+", type=above_zero, default=[5000.0], help="records a second, of all kinds")
    parser.add_argument("--seconds", type=above_zero, default=20.0, help="that are measured")
    parser.add_argument("--repeats", type=at_least_one, default=1, help="rows of each engine")
    parser.add_argument("--warm", type=above_zero, default=15.0, help="seconds at the rate before that")
    parser.add_argument("--window", type=above_zero, default=2.0, help="length of the queries' windows [s]")
    parser.add_argument(
        "--checkpoint", type=above_zero, default=2.0, help="seconds between checkpoints or micro-batches"
    )
    parser.add_argument("--partitions", type=at_least_one, default=2)
    return parser.parse_args()


if __name__ == "__main__":
    main()
