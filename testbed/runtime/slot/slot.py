"""A worker slot: what a Spark task does from the beginning of a run to its end."""

from __future__ import annotations

import os
import selectors
import socket
import time
from contextlib import ExitStack
from enum import Enum
from functools import partial

from experiments.errors import EnvironmentFailure
from experiments.waiting import retry
from testbed.core.control import ToCoordinator, ToPartition, decode_message, encode_message
from testbed.core.frames import CorruptFrame
from testbed.core.shapes import UnknownMessage
from testbed.runtime.background import Background, Results
from testbed.runtime.connectors.sinks import Superseded
from testbed.runtime.job import Job
from testbed.runtime.network.mesh import Mesh
from testbed.runtime.network.messages import (
    SLOT,
    Broken,
    Count,
    Drain,
    Hello,
    Peers,
    SlotError,
    SlotMessage,
    Stop,
    decode,
    encode,
    printable,
)
from testbed.runtime.network.secret import RunSecret
from testbed.runtime.network.wire import NO_PARTITION, Address, BlockReader, Link, WireError, block, turn
from testbed.runtime.slot.freed_memory import keep_freed_memory
from testbed.runtime.slot.hosting import Hosting

STATUS_S = 0.25
TURN_S = 0.005
CONNECT_S, RETRY_S, PATIENCE_S = 5.0, 0.2, 30.0
LAST_WRITE_S = 8.0  # the driver waits for 10 s for its slots, and then deletes what they have stored


class SessionState(Enum):
    """How the time with the coordinator stands: it goes on, it was cut off, or the run is over."""

    ON = "on"
    CUT_OFF = "cut-off"
    OVER = "over"


class Slot:
    """Serves a coordinator under one name. Once that has given the slot up, it comes again under another."""

    def __init__(self, job: Job, coordinator: Address, secret: RunSecret, task: int, attempt: int) -> None:
        self._token, self._hello = secret.token, (task, attempt)
        host = own_address(coordinator)
        self._selector = selectors.DefaultSelector()
        self._results = Results(self._selector)
        self._threads = (Background(self._results, "store"), Background(self._results, "outlet"))
        self._session, self._coordinator = SessionState.CUT_OFF, coordinator
        layout = job.layout()
        schemas = [channel.schema for channel in layout.channels]
        self._mesh: Mesh = Mesh(
            self._selector,
            host,
            secret.token,
            schemas,
            lambda frame: self._hosting.on_frame(frame),
            lambda grant: self._hosting.on_grant(grant),
            self._on_broken,
        )
        store = job.object_store(secret.store_key)
        self._hosting = Hosting(job, layout, self._mesh, store, *self._threads, self._tell)
        self._host, self._epoch, self._next_status_s, self._idle_s = host, -1, 0.0, 0.0

    def run(self) -> None:
        """Until the coordinator says that the run is over; raises `EnvironmentFailure` if it is gone for good."""
        keep_freed_memory()
        with ExitStack() as leaving:
            leaving.callback(self._close)
            leaving.push(self._send_error)
            while self._session is not SessionState.OVER:
                self._meet()
                while self._session is SessionState.ON:
                    self._turn()
                self._hosting.close()
                self._mesh.drop()
            store, _ = self._threads
            # What is written after the driver has deleted all objects is deleted again, but only if this process lives.
            store.finish(LAST_WRITE_S)

    def _meet(self) -> None:
        connect = partial(socket.create_connection, self._coordinator, CONNECT_S, source_address=(self._host, 0))
        try:
            connection = retry(connect, OSError, interval_s=RETRY_S, limit_s=PATIENCE_S)
        except OSError as error:
            cause = f"the coordinator at {self._coordinator} can't be reached: {error}"
            raise EnvironmentFailure(cause, "look at the driver program's log") from error
        self._session, self._epoch = SessionState.ON, -1
        self._blocks = BlockReader()
        self._link = Link(self._selector, connection, self._on_bytes, self._on_end)
        self._link.send(SLOT.of(self._token))
        self._say(Hello(self._mesh.address, *self._hello))

    def _turn(self) -> None:
        now_s = time.monotonic()
        if now_s >= self._next_status_s:
            self._next_status_s = now_s + STATUS_S
            self._say(self._hosting.status(self._idle_s, self._threads[0].busy_s))
        self._hosting.on_clock(now_s)
        self._mesh.on_clock(now_s)
        try:
            busy = self._hosting.work(now_s + TURN_S)
            self._mesh.flush()
            self._link.flush()
            self._idle_s += turn(self._selector, 0 if busy else TURN_S)
        except (CorruptFrame, Superseded, UnknownMessage, WireError):
            self._link.close()
            self._on_end()

    def _on_bytes(self, data: bytes) -> None:
        for partition, content in self._blocks.feed(data):
            if partition == NO_PARTITION:
                self._on_message(decode(content))
            elif isinstance(message := decode_message(content), ToPartition):
                self._hosting.order(partition, message)
            else:
                raise UnknownMessage(f"a {type(message).__name__}, which only a partition says")

    def _on_message(self, message: SlotMessage) -> None:
        if isinstance(message, Stop):
            self._session = SessionState.OVER
        elif isinstance(message, Peers):
            self._epoch = message.epoch
            self._hosting.begin(message)
        elif isinstance(message, Drain):
            self._hosting.drain(message.ends)
        elif isinstance(message, Count):
            self._hosting.count(message.number)

    def _on_broken(self, slot: int) -> None:
        self._say(Broken(self._epoch, slot))

    def _on_end(self) -> None:
        if self._session is SessionState.ON:
            self._session = SessionState.CUT_OFF

    def _tell(self, partition: int, message: ToCoordinator) -> None:
        self._link.send(block(partition, encode_message(message)))

    def _say(self, message: SlotMessage) -> None:
        self._link.send(block(NO_PARTITION, encode(message)))

    def _send_error(self, kind: type | None, error: BaseException | None, _: object) -> None:
        """Tell the coordinator why this slot ends: Spark only retries the task."""
        if error is not None and self._session is SessionState.ON:
            self._say(_failure(error))
            self._link.flush()
            self._link.close()  # the coordinator waits for this end, and threads may keep the process alive

    def _close(self) -> None:
        self._hosting.close()  # after a failure, too: a sink that waits for its broker would fence its successor
        for thread in self._threads:
            thread.close()
        self._mesh.close()
        self._results.close()
        self._selector.close()


def tell_failure(coordinator: Address, token: bytes, error: Exception) -> None:
    """Tell the coordinator why a slot could not even begin."""
    with socket.create_connection(coordinator, CONNECT_S) as connection:
        connection.sendall(SLOT.of(token) + block(NO_PARTITION, encode(_failure(error))))


def _failure(error: BaseException) -> SlotError:
    return SlotError(printable(f"{type(error).__name__}: {error}"))


def own_address(coordinator: Address) -> str:
    """This host's address: the one that its services are bound to, else the one that faces the coordinator."""
    if "SPARK_LOCAL_IP" in os.environ:
        return os.environ["SPARK_LOCAL_IP"]
    with socket.create_connection(coordinator, CONNECT_S) as connection:
        address: str = connection.getsockname()[0]
        return address
