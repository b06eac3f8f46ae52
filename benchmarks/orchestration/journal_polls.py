"""What a poll of a run's journals costs after hours: CPU time and peak memory.

`.venv/bin/python -m benchmarks.orchestration.journal_polls [--hours 6] [--how followed|whole] [--polls 20]
[--partitions 8]` writes the journals of a run of the testbed as long as that (its query reports twice a second what
every partition did, the injector strikes every ten seconds, four hosts are sampled each second). Then it asks what a
step that waits asks each half second: whether the query has committed since, and whether injector and services are
well. `followed` is how steps ask; `whole` reads the journals from their beginning at each poll, to compare. The first
poll of a process is told apart; of the later ones the median.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import count, islice
from statistics import median

from aftershock.run.engines.choice import engine_of
from aftershock.run.fault_state import FaultState
from aftershock.run.run_journals import forget, journals
from benchmarks.arguments import above_zero, at_least, at_least_one
from benchmarks.machine_load import load_of_others
from benchmarks.one_line_errors import one_line_errors
from experiments import spec
from experiments.fault_kinds import FaultKind
from journal.events.injector import INJECTOR, Healed, Injected, Striking
from journal.events.services import HostSample
from journal.events.testbed import TESTBED, Committed, Report, RunPhase
from journal.reader import events
from journal.writer import Journal
from results.runs import store

RUN_ID = "hours"
MIB = 2**20
TALLIES = ("messages", "data_bytes", "protocol_bytes", "records", "forced", "checkpoints")


@one_line_errors()
def main() -> None:
    """Write hours of journals, then print what a poll of them costs, in time and memory."""
    given, load = _arguments(), load_of_others()
    with tempfile.TemporaryDirectory() as home:
        os.environ["AFTERSHOCK_HOME"] = home
        writer = Hours(given.partitions)
        for _ in writer.halves_of_a_second(round(given.hours * 7200)):
            pass
        size = sum(path.stat().st_size for path in store.live(RUN_ID).raw.glob("*.jsonl"))
        print(f"{given.hours:g} h, {size / MIB:.0f} MiB of journals, {given.how}; load {load:.1f}")
        poll = {"followed": followed, "whole": whole}[given.how]
        cpu_s = [processor_time_s(poll) for _ in writer.halves_of_a_second(given.polls)]
        forget()
        peaks = [most_memory(poll) for _ in writer.halves_of_a_second(given.polls)]
    for what, cpu, peak in (("first poll", cpu_s[0], peaks[0]), ("later polls", median(cpu_s[1:]), median(peaks[1:]))):
        print(f"{what:12} {cpu * 1e3:10.2f} ms of processor time, {peak / MIB:8.2f} MiB at the peak")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=above_zero, default=6.0)
    parser.add_argument("--how", choices=["followed", "whole"], default="followed")
    parser.add_argument("--polls", type=at_least(2), default=20, help="the first is told apart")
    parser.add_argument("--partitions", type=at_least_one, default=8, help="of each of three operators")
    return parser.parse_args()


class Hours:
    """Writes what a run writes, half a second at a time."""

    def __init__(self, partitions: int) -> None:
        run = store.live(RUN_ID)
        store.write_json(run.experiment_path, spec.load("dataflow-q12").model_dump(mode="json"))
        self._query, self._injector, self._hosts = (
            Journal(run.journal_path(name)) for name in ("query", "injector", "hosts")
        )
        names = [f"{operator}.{number}" for operator in ("bids", "count", "sink") for number in range(partitions)]
        self._tallies = {name: dict.fromkeys(TALLIES, 123_456_789) for name in names}
        self._sources = names[:partitions]
        self._numbers = count(1)

    def halves_of_a_second(self, number: int) -> Iterator[None]:
        """As many, each of which has been written when it is given."""
        for half_second in islice(self._numbers, number):
            self._go_on(half_second)
            yield

    def _go_on(self, half_second: int) -> None:
        positions = dict.fromkeys(self._sources, half_second * 1000)
        self._query.record(Report(1, RunPhase.RUNNING, self._tallies, positions, 8, 2**20, 3.5, 1.5, 2.5))
        if half_second % 2 == 0:
            self._query.record(Committed(positions))
            for host in ("gateway", "worker-1", "worker-2", "worker-3"):
                self._hosts.record(HostSample(host, half_second * 0.25, 2**30))
        if half_second % 20 == 0:
            strike = half_second, "worker-1", FaultKind.KILL
            for event in (Striking(*strike, 1), Injected(*strike, 1, 1, 2, {}, {}), Healed(*strike, 1, 2, {}, {})):
                self._injector.record(event)


def followed() -> int:
    """A poll as the observer makes it: journals are read on from where the last poll ended."""
    with journals(RUN_ID) as seen:
        seen.faults.failure(running=True)
        seen.faults.held_services(time.time_ns())
        return seen.query.commits.since(0)


def whole() -> int:
    """The same poll without following: every journal is read from its beginning."""
    run = store.live(RUN_ID)
    experiment = spec.validate(store.read_json(run.experiment_path))
    faults, commits = FaultState(), engine_of(experiment).commits()
    for _ in ("what failed", "what is held up"):
        for strike in events(run.journal_path("injector"), INJECTOR):
            faults.take(strike)
    for event in events(run.journal_path("query"), TESTBED):
        commits.take(event)
    return commits.since(0)


def processor_time_s(poll: Callable[[], int]) -> float:
    """What a poll takes of this process's CPU time."""
    began_s = time.process_time()
    poll()
    return time.process_time() - began_s


def most_memory(poll: Callable[[], int]) -> int:
    """In bytes; apart from the processor time, since tracing takes some."""
    tracemalloc.start()
    poll()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


if __name__ == "__main__":
    main()
