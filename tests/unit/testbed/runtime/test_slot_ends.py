"""The end of a slot, as a Spark task runs it."""

import socket
import threading
from dataclasses import replace

from testbed.runtime.network import messages
from testbed.runtime.network.messages import SLOT, Stop
from testbed.runtime.network.secret import RunSecret
from testbed.runtime.network.wire import NO_PARTITION, block
from testbed.runtime.slot.slot import Slot
from tests.unit.testbed.small_job import HERE, JOB

SECRET = RunSecret.draw()


def test_a_slot_ends_once_what_it_is_writing_is_written(monkeypatch, tmp_path):
    """The driver deletes the run's objects then: one that appears later would stay for ever."""
    monkeypatch.setenv("SPARK_LOCAL_IP", HERE)
    may = threading.Event()
    with socket.create_server((HERE, 0)) as coordinator:
        slot = Slot(replace(JOB, store=str(tmp_path)), coordinator.getsockname(), SECRET, 0, 0)
        store, _ = slot._threads
        store.submit(lambda: may.wait(60), lambda _: None)
        thread = threading.Thread(target=slot.run, daemon=True)
        thread.start()
        coordinator.settimeout(60)
        connection, _ = coordinator.accept()
        with connection:
            connection.settimeout(60)
            assert connection.recv(len(SLOT.of(SECRET.token)), socket.MSG_WAITALL) == SLOT.of(SECRET.token)
            connection.sendall(block(NO_PARTITION, messages.encode(Stop())))
            thread.join(0.3)
            assert thread.is_alive(), "it is still writing"
            may.set()
            thread.join(60)
        assert not thread.is_alive()
