"""The interface of an engine in `side_by_side`: a command that runs one query from topic to topic until SIGTERM.

The command may have these words in braces, each of which is filled in:

    broker, credentials   HOST:PORT, and the file of a client's settings, one a line under librdkafka's names
    query, window_s       which query of docs/reference/nexmark.md, and the length of its windows [s]
    input, output         topics; each has `partitions` partitions
    checkpoint_s          how far apart checkpoints, commits or micro-batches shall be [s]
    folder                a folder of its own, for its files
    python                the interpreter that runs the driver

It reads the input from its beginning: one record a message, whose timestamp is when it was due. It writes each result
once, committed, as a JSON object with `start_ms`, `end_ms` and `key` (the window, and what names the result in it; of
results of single records when the last of them was due) and the rest as it likes. What it starts must be its
children, or it ends them by itself. CPU time is that of its children; what it has a daemon do (as `docker` does) is not
seen.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

import psutil

from benchmarks.log_end import end_of
from experiments.errors import BadInput, EnvironmentFailure
from experiments.workloads.catalogue import NexmarkQuery, NexmarkSpec
from infra.broker import Broker
from infra.launch import REPOSITORY
from workloads.nexmark.feed import LATENESS_S

STOP_S = 30.0
BEHIND_THE_LOAD = 5  # nice: on a machine that an engine fills, the driver must still send and read on time
PLAIN = re.compile(r"--delivery[ =]plain\b")  # an option of the testbed
OWN = "{broker} {credentials} {query} {window_s} {input} {output} {partitions} {checkpoint_s} {folder}"


class ResultDelivery(StrEnum):
    """How often, and when, readers of committed messages see a result.

    EXACTLY_ONCE   once, after its checkpoint was committed
    AT_LEAST_ONCE  before its micro-batch was committed, and again if that is repeated after a failure
    AS_ASKED       as its task says (each result once, committed); nobody has checked that of somebody else's engine
    """

    EXACTLY_ONCE = "exactly once"
    AT_LEAST_ONCE = "at least once"
    AS_ASKED = "as asked"


@dataclass(frozen=True)
class Task:
    """What an engine is to run, and where it reads and writes."""

    broker: Broker
    query: str
    window_s: float
    input: str
    output: str
    partitions: int
    checkpoint_s: float
    folder: Path

    @property
    def spec(self) -> NexmarkSpec:
        """The query as a workload, with windows that do not overlap."""
        return NexmarkSpec(query=NexmarkQuery(self.query), window_s=self.window_s, slide_s=self.window_s)

    @property
    def words(self) -> dict[str, str]:
        """What fills a command's words in braces."""
        found = {name: str(getattr(self, name)) for name in ("query", "window_s", "input", "output", "partitions")}
        found |= {"checkpoint_s": str(self.checkpoint_s), "folder": str(self.folder), "python": sys.executable}
        return {**found, "broker": self.broker.address, "credentials": self.broker.credentials or ""}

    @classmethod
    def from_words(cls, words: list[str]) -> Task:
        """What the command of an engine of this project was given: the reverse of `OWN`."""
        address, credentials, query, window_s, source, output, partitions, checkpoint_s, folder = words
        broker = Broker(address, credentials or None)
        return cls(broker, query, float(window_s), source, output, int(partitions), float(checkpoint_s), Path(folder))


@dataclass(frozen=True)
class Engine:
    """A name, the command, and what it does differently from others on purpose.

    waits_s   how much longer its windows stay open, for late events [s]; None: nobody knows
    """

    name: str
    command: str
    delivery: ResultDelivery = ResultDelivery.AS_ASKED
    waits_s: float | None = None

    @classmethod
    def parse(cls, text: str) -> Engine:
        """One of `ENGINES`, or NAME=COMMAND, whose first word may be one of them; raises `BadInput`.

        Words after it are options of that engine.
        """
        if text in ENGINES:
            return ENGINES[text]
        name, _, command = text.partition("=")
        if not name or not command.strip():
            raise BadInput("engine", text, f"{' or '.join(ENGINES)}, or NAME=COMMAND")
        first, *options = command.split()
        if first not in ENGINES:
            return cls(name, command)
        own = ENGINES[first]
        delivery = ResultDelivery.AT_LEAST_ONCE if PLAIN.search(command) else own.delivery
        return replace(own, name=name, command=" ".join([own.command, *options]), delivery=delivery)

    def command_for(self, task: Task) -> list[str]:
        """The words of the command; raises `BadInput` for one in braces that there is not."""
        try:
            return [word.format_map(task.words) for word in shlex.split(self.command)]
        except (KeyError, IndexError, ValueError, AttributeError) as error:
            raise BadInput("engine", self.command, f"only these in braces: {', '.join(task.words)}") from error


ENGINES = {
    each.name: each
    for each in (
        Engine(
            "spark", f"{{python}} -m benchmarks.engines.spark_engine {OWN}", ResultDelivery.AT_LEAST_ONCE, LATENESS_S
        ),
        Engine("testbed", f"{{python}} -m benchmarks.engines.testbed_engine {OWN}", ResultDelivery.EXACTLY_ONCE, 0.0),
    )
}


class RunningEngine:
    """An engine's processes: the command, and all that it started."""

    def __init__(self, engine: Engine, task: Task) -> None:
        self._name, self._log = engine.name, task.folder / "log"
        command = engine.command_for(task)
        with self._log.open("wb") as log:
            try:
                self._process = subprocess.Popen(
                    command, cwd=REPOSITORY, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
                )
            except OSError as error:
                raise EnvironmentFailure(f"{engine.name} did not start: {error}", "look at its command") from error
        os.setpriority(os.PRIO_PGRP, self._process.pid, os.getpriority(os.PRIO_PROCESS, 0) + BEHIND_THE_LOAD)

    def require(self) -> None:
        """Raises `EnvironmentFailure` with the end of its log if the command has ended."""
        code = self._process.poll()
        if code is not None:
            raise EnvironmentFailure(f"{self._name} has ended with code {code}: {self.told()}", "look at its command")

    def told(self) -> str:
        """The end of what it wrote to its log."""
        return end_of(self._log)

    def cpu_s(self) -> float:
        """CPU time of the processes that live, and of those that they started and that have ended [s]."""
        total = 0.0
        for each in self._processes():
            with suppress(psutil.NoSuchProcess):
                times = each.cpu_times()
                total += times.user + times.system + times.children_user + times.children_system
        return total

    def stop(self) -> None:
        """SIGTERM for the command; what is left of it after `STOP_S` is killed."""
        left = self._processes()
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_S)
        for each in left:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _processes(self) -> list[psutil.Process]:
        try:
            first = psutil.Process(self._process.pid)
            return [first, *first.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []
