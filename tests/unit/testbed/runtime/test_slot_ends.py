"""A slot as a Spark task runs it: what it tells while its store hangs, and how it ends."""

import socket
import threading
from contextlib import contextmanager
from dataclasses import replace

import pytest

from testbed.operators import Sink
from testbed.runtime.connectors.sinks import Nowhere
from testbed.runtime.network import messages
from testbed.runtime.network.messages import SLOT, SlotStatus, Stop
from testbed.runtime.network.secret import RunSecret
from testbed.runtime.network.wire import NO_PARTITION, BlockReader, block
from testbed.runtime.slot import outputs
from testbed.runtime.slot.slot import Slot
from tests.unit.testbed.small_job import HERE, JOB

SECRET = RunSecret.draw()


@contextmanager
def slot_of(monkeypatch, folder):
    """A slot that has yet to run, and the socket at which its coordinator listens."""
    monkeypatch.setenv("SPARK_LOCAL_IP", HERE)
    with socket.create_server((HERE, 0)) as coordinator:
        coordinator.settimeout(60)
        yield Slot(replace(JOB, store=str(folder)), coordinator.getsockname(), SECRET, 0, 0), coordinator


@contextmanager
def writing_slot(monkeypatch, folder):
    """The thread of a slot that runs, when its store may answer what it writes, and the coordinator's connection."""
    may = threading.Event()
    with slot_of(monkeypatch, folder) as (slot, coordinator):
        store, _ = slot._threads
        store.submit(lambda: may.wait(60), lambda _: None)
        thread = threading.Thread(target=slot.run, daemon=True)
        thread.start()
        connection, _ = coordinator.accept()
        with connection:
            connection.settimeout(60)
            assert connection.recv(len(SLOT.of(SECRET.token)), socket.MSG_WAITALL) == SLOT.of(SECRET.token)
            yield thread, may, connection


def test_a_slot_ends_once_what_it_is_writing_is_written(monkeypatch, tmp_path):
    """The driver deletes the run's objects then: one that appears later would stay for ever."""
    with writing_slot(monkeypatch, tmp_path) as (thread, may, connection):
        connection.sendall(block(NO_PARTITION, messages.encode(Stop())))
        thread.join(0.3)
        assert thread.is_alive(), "it is still writing"
        may.set()
        thread.join(60)
    assert not thread.is_alive()


def test_a_slot_tells_how_long_it_has_waited_for_its_store(monkeypatch, tmp_path):
    waits_s, reader = [], BlockReader()
    with writing_slot(monkeypatch, tmp_path) as (thread, may, connection):
        while len(waits_s) < 3:
            said = [messages.decode(content) for _, content in reader.feed(connection.recv(1 << 16))]
            waits_s += [each.store_s for each in said if isinstance(each, SlotStatus)]
        may.set()
        connection.sendall(block(NO_PARTITION, messages.encode(Stop())))
        thread.join(60)
    assert waits_s[0] < waits_s[-1]


class Left(Nowhere):
    """Knows whether its slot has left it."""

    is_left = False

    def abandon(self):
        self.is_left = True


def test_a_slot_that_fails_leaves_its_sinks_and_its_coordinator(monkeypatch, tmp_path):
    """Its process may go on, since its threads do. A sink that waits for its broker would fence its successor."""
    outlet = Left()
    monkeypatch.setattr(outputs, "outlet_of", lambda *_: outlet)
    with slot_of(monkeypatch, tmp_path) as (slot, coordinator):
        (sink, *_) = (each for each in JOB.layout().partitions if isinstance(each.element, Sink))
        slot._hosting._outputs.open(sink)
        monkeypatch.setattr(slot._hosting, "work", lambda _until_s: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            slot.run()
        connection, _ = coordinator.accept()
        with connection:
            connection.settimeout(60)
            said = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    assert b"ZeroDivisionError" in said
    assert outlet.is_left
