"""Slots and coordinator as processes of this machine, without Spark: what can be killed many times a minute."""

from __future__ import annotations

import mmap
import multiprocessing
import os
import signal
import time
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from journal.writer import Journal
from testbed.core.partition.partition import Partition, PartitionRuntime
from testbed.runtime.job import Job
from testbed.runtime.network.secret import RunSecret
from testbed.runtime.network.wire import Address
from testbed.runtime.server.server import Server
from testbed.runtime.slot.slot import Slot
from tests.integration.testbed.kills.moments import Moment, writers
from tests.integration.testbed.kills.rig import Rig

HERE, HOSTS, START_LIMIT_S, END_LIMIT_S, END_LOOK_S = "127.0.0.1", "127.0.{}.{}", 60.0, 10.0, 0.02
HOST_NUMBERS = 250  # each process is a host of its own, with an address of its own
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload([__name__])


def coordinate(
    document: dict[str, Any], variables: dict[str, str], journal: Path, secret: RunSecret, told: Connection
) -> None:
    """What the driver program does, but for Spark: ends when told to, by files beside the journal.

    Once all output is out it waits for that, its slots with it, so that an injection that comes late finds somebody.
    """
    os.environ |= variables
    job, drain, stop = Job.from_json(document), journal.with_name("drain"), journal.with_name("stop")
    server = Server(job, secret.token, HERE, Journal(journal))
    told.send(server.address)
    draining = False

    def stopping() -> bool:
        nonlocal draining
        if not draining and drain.exists():
            draining = True
            server.drain()
        return stop.exists()

    try:
        server.serve(stopping)
        while not stop.exists():
            time.sleep(END_LOOK_S)
    finally:
        server.close()


def serve_slot(
    document: dict[str, Any], variables: dict[str, str], address: Address, secret: RunSecret, task: int, signs: Path
) -> None:
    os.environ |= {"SPARK_LOCAL_IP": HERE, **variables}
    show_alignment(signs)
    Slot(Job.from_json(document), address, secret, task, 0).run()


def show_alignment(signs: Path) -> None:
    """Let this process show in a file, a byte for each partition, which of its partitions hold channels back."""
    with signs.open("r+b") as file:
        shown = mmap.mmap(file.fileno(), 0)
    block, unblock, restore = PartitionRuntime.block, PartitionRuntime.unblock, Partition.restore

    def blocking(self: PartitionRuntime, channel: int) -> None:
        block(self, channel)
        shown[self.number] = 1

    def unblocking(self: PartitionRuntime) -> None:
        unblock(self)
        shown[self.number] = 0

    def restoring(self: Partition, *given: Any) -> None:
        restore(self, *given)
        shown[self.number] = 0

    PartitionRuntime.block, PartitionRuntime.unblock, Partition.restore = blocking, unblocking, restoring


class Slots(Rig):
    """A process for each slot, and for each standby slot. One that was killed is started again at once, unless there
    are enough without it.

    hosts   the processes by their addresses

    All of them get `variables` into their environment: they begin with that of the first process that any rig started.
    """

    can_pause = True

    def __init__(self, job: Job, root: Path, variables: dict[str, str] | None = None) -> None:
        super().__init__(job, root / "journal.jsonl")
        self._signs = root / "aligning"
        self._signs.write_bytes(bytes(len(job.layout().partitions)))
        with self._signs.open("r+b") as file:
            self._shown = mmap.mmap(file.fileno(), 0)
        secret = RunSecret.draw()
        mine, theirs = PROCESSES.Pipe()
        given = job.to_json(), variables or {}
        self._coordinator = self._start(coordinate, *given, self.journal, secret, theirs)
        if not mine.poll(START_LIMIT_S):
            self._coordinator.kill()
            self._coordinator.join()
            raise TimeoutError("the coordinator has not begun")
        self._given = (*given, mine.recv(), secret)
        self._slots: dict[int, BaseProcess] = {}
        self.hosts: dict[str, int] = {}
        self._paused: set[int] = set()
        self._replaced: set[int] = set()
        self._started = 0
        self.revive()

    def victims(self) -> list[int]:
        return [pid for pid in self._slots if pid not in self._paused]

    def revive(self) -> None:
        for pid, process in list(self._slots.items()):
            if not process.is_alive():
                self.own_deaths += 1
                del self._slots[pid]
        while len(self._slots) - len(self._replaced) < self.job.slots + self.job.standby:
            document, variables, *server = self._given
            own = {"SPARK_LOCAL_IP": HOSTS.format(*divmod(self._started + HOST_NUMBERS, HOST_NUMBERS))}
            task = self._started % (self.job.slots + self.job.standby)
            process = self._start(serve_slot, document, variables | own, *server, task, self._signs)
            self._slots[process.pid] = process
            self.hosts[own["SPARK_LOCAL_IP"]] = process.pid
            self._started += 1

    def kill(self, victims: list[int]) -> list[Moment]:
        aligning = self._aligning()
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        for pid in victims:
            self._slots.pop(pid).join()
        return self._seen(victims, aligning)

    def pause(self, victim: int, replaced: bool) -> list[Moment]:
        """Hold a slot; another may take its place before it goes on."""
        aligning = self._aligning()
        os.kill(victim, signal.SIGSTOP)
        self._paused.add(victim)
        if replaced:
            self._replaced.add(victim)
        return self._seen([victim], aligning)

    def resume(self, victim: int) -> None:
        os.kill(victim, signal.SIGCONT)
        self._paused.discard(victim)
        self._replaced.discard(victim)

    def is_now(self, moment: Moment) -> list[int] | None:
        if moment is Moment.ALIGNING:
            return self.victims() if self._aligning() else None
        folder = Path(self.job.store if moment is Moment.STORING else self.job.output.folder)
        return [pid for pid in writers(folder) if pid in self.victims()] or None

    def has_ended(self) -> bool:
        return not self._coordinator.is_alive()

    def drain(self) -> None:
        self.journal.with_name("drain").touch()

    def close(self) -> None:
        self.journal.with_name("stop").touch()
        self._coordinator.join(END_LIMIT_S)
        for process in (self._coordinator, *self._slots.values()):
            process.kill()
            process.join()

    def _aligning(self) -> bool:
        return any(self._shown[:])

    def _seen(self, victims: list[int], aligning: bool) -> list[Moment]:
        """What the struck were writing, by the scratch files that they have left behind."""
        folders = {Moment.STORING: self.job.store, Moment.PUBLISHING: self.job.output.folder}
        seen = [moment for moment, folder in folders.items() if writers(Path(folder)) & set(victims)]
        return [*seen, Moment.ALIGNING] if aligning else seen

    @staticmethod
    def _start(target: Any, *arguments: Any) -> BaseProcess:
        process = PROCESSES.Process(target=target, args=arguments, daemon=True)  # else the program's exit waits for it
        process.start()
        return process
