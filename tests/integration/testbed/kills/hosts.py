"""Slots as Spark tasks on a cluster: killed are whole hosts, executors with their slot, or a slot's own processes."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from enum import Enum
from pathlib import Path
from random import Random

from experiments.fault_kinds import FaultKind
from infra.cluster import Driver, Handle
from infra.processes import MARK, carries, members
from infra.strikes.strike import Strike
from testbed.runtime.job import Job
from tests.integration.spark_jobs.submitting import PROGRAM, submit
from tests.integration.testbed.kills.moments import Moment, writers
from tests.integration.testbed.kills.rig import Rig

LOOK_S, ENDING_S = 1.0, 60.0


class Scope(Enum):
    """What dies, by the words in the command lines of its processes; of a host, all."""

    HOST = ()
    EXECUTOR = (b"CoarseGrainedExecutorBackend", b"pyspark.worker")
    SLOT = (b"pyspark.worker",)


SHARES = {Scope.SLOT: 3, Scope.EXECUTOR: 1, Scope.HOST: 1}  # a slot comes back soonest, so that most kills are of one


class Hosts(Rig):
    """Each worker of the cluster is a victim. A host that was killed is started again at once; the rest Spark does."""

    sees_alignment = False

    def __init__(self, driver: Driver, cluster: Handle, job: Job, root: Path, seed: int) -> None:
        super().__init__(job, submit(driver, cluster, job, root))
        self._driver, self._cluster, self._random = driver, cluster, Random(seed)
        self._strikes: dict[str, Strike] = {}
        self._processes: dict[str, dict[int, bytes]] = {}
        self._dead_writers: set[int] = set()
        self._next_look_s, self._ended = 0.0, False

    def victims(self) -> list[str]:
        return list(self._strikes)

    def revive(self) -> None:
        """Start hosts that are down, and prepare strikes on the others, since that takes longer than a moment lasts."""
        if time.monotonic() < self._next_look_s:
            return
        for host in (each.name for each in self._cluster.workers):
            if host in self._strikes:
                self._strikes[host].refresh()
            else:
                self._driver.heal(self._cluster, host, FaultKind.KILL)
                self._strikes[host] = self._driver.prepare(self._cluster, host, FaultKind.KILL)
            self._processes[host] = {pid: _command(pid) for pid in members(f"{self._cluster.token}/{host}")}
        self._ended = PROGRAM not in self._driver.running(self._cluster, "gateway")
        self._next_look_s = time.monotonic() + LOOK_S

    def kill(self, victims: list[str]) -> list[Moment]:
        (scope,) = self._random.choices(list(SHARES), SHARES.values())
        for host in victims:
            found = [pid for pid, words in self._processes[host].items() if any(each in words for each in scope.value)]
            if found:
                _kill(found)
            else:
                self._kill_host(host)
        self._next_look_s = 0.0
        return self._seen()

    def is_now(self, moment: Moment) -> list[str] | None:
        writing = writers(self._folder(moment)) - self._dead_writers
        needles = {host: f"{MARK}={self._cluster.token}/{host}".encode() for host in self._strikes}
        return [host for host, needle in needles.items() if any(carries(pid, needle) for pid in writing)] or None

    def has_ended(self) -> bool:
        return self._ended

    def drain(self) -> None:
        self.journal.with_name("job.drain").touch()

    def close(self) -> None:
        self._driver.stop(self._cluster, "gateway", PROGRAM, ENDING_S)
        for strike in self._strikes.values():
            strike.close()

    def _kill_host(self, host: str) -> None:
        strike = self._strikes.pop(host)
        strike.shoot(0)
        if not strike.fire().holds:
            raise RuntimeError(f"{host} survived a kill")

    def _seen(self) -> list[Moment]:
        """By the scratch files of those that have died since the last time."""
        seen = []
        for moment in (Moment.STORING, Moment.PUBLISHING):
            dead = {pid for pid in writers(self._folder(moment)) if not _command(pid)}
            if dead - self._dead_writers:
                seen.append(moment)
            self._dead_writers |= dead
        return seen

    def _folder(self, moment: Moment) -> Path:
        return Path(self.job.store if moment is Moment.STORING else self.job.output.folder)


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _kill(pids: list[int]) -> None:
    """Kill these, and return when they are dead: a zombie still stands in /proc, so its memory tells."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    while any(_command(pid) for pid in pids):
        time.sleep(0.001)
