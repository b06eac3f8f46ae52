"""The load of `side_by_side`: records at a rate, and whether the driver itself kept that rate."""

from __future__ import annotations

import time

from benchmarks.engines.peer_engine import RunningEngine, Task
from benchmarks.engines.result_timing import LATE_S, Results
from experiments.errors import EnvironmentFailure
from workloads.inputs import TopicStream, records
from workloads.schedule import Schedule
from workloads.sending.input_sender import InputSender

FIRST_RATE, FIRST_LIMIT_S = 200.0, 120.0  # until the first result is out
READ_S = 0.02


class LateRecords:
    """Counts the records that the broker did not have `LATE_S` after they were due, each once."""

    def __init__(self) -> None:
        self.count = self._seen = 0

    def look(self, overdue: int, delivered: int) -> None:
        """Of all records, `overdue` were due `LATE_S` ago, and the broker has `delivered`."""
        self.count += max(0, overdue - max(self._seen, delivered))
        self._seen = max(self._seen, overdue)


class PacedFeed:
    """Sends the input at a rate that can be changed, while results are read."""

    def __init__(self, task: Task, results: Results, running: RunningEngine) -> None:
        self._spec, self._results, self._running = task.spec, results, running
        self._topic = task.input
        self.schedule = Schedule(time.time_ns(), FIRST_RATE, task.partitions)
        self._sender = InputSender(task.broker, task.input, records(self._spec, self.schedule), self.schedule)
        self._late = LateRecords()

    @property
    def sent(self) -> int:
        """Records sent so far, of which the broker need not have all."""
        return self._sender.sent

    @property
    def delivered(self) -> int:
        """Records that the broker has."""
        return self._sender.delivered

    @property
    def late(self) -> int:
        """Records that the broker got too late, or has not got."""
        return self._late.count

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
        self._late.look(self.schedule.due_count(time.time_ns() - round(LATE_S * 1e9)), self._sender.delivered)
        self._results.read(READ_S)
        self._running.require()

    def close(self) -> None:
        """Nothing more is sent."""
        self._sender.finish()
