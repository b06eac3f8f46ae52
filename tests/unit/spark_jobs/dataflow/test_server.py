"""The coordinator's side of connections: slots that fail, strangers, deaths and broken links."""

import secrets
import socket
import struct
import time
from contextlib import closing
from dataclasses import replace

import pytest

from experiments.errors import EnvironmentFailure
from infra.journal import Journal, read_journal
from spark_jobs.dataflow.runtime import messages
from spark_jobs.dataflow.runtime.messages import Broken, Failed, Hello, Status, Stop
from spark_jobs.dataflow.runtime.server import MOST_FAILURES, Server
from spark_jobs.dataflow.runtime.slot import tell_failure
from spark_jobs.dataflow.runtime.wire import NO_PARTITION, block
from tests.unit.spark_jobs.dataflow.small_job import HERE, JOB

TOKEN = secrets.token_hex(16)


def server_in(folder):
    return Server(replace(JOB, store=str(folder / "store")), TOKEN, HERE, Journal(folder / "journal.jsonl"))


@pytest.fixture
def server(tmp_path):
    with closing(server_in(tmp_path)) as made:
        yield made


def serve_until(server, condition):
    deadline_s = time.monotonic() + 10
    server.serve(lambda: condition() or time.monotonic() > deadline_s)
    assert condition()


def events_in(folder, event):
    return [entry for entry in read_journal(folder / "journal.jsonl") if entry["event"] == event]


def say(slot, *words):
    slot.sendall(b"".join(block(NO_PARTITION, messages.encode(each)) for each in words))


def test_slots_that_do_nothing_but_fail_end_the_run_with_their_last_words(server, tmp_path):
    """As of a state that can't be serialised, which another try does not change."""
    words = [Failed(TOKEN, "BadInput: state of count.0: not usable")] * MOST_FAILURES
    with socket.create_connection(server.address) as slot:
        say(slot, Hello(TOKEN, (HERE, 1), 0, 0), *words)
        with pytest.raises(EnvironmentFailure, match=r"fail again and again: BadInput: state of count\.0"):
            serve_until(server, lambda: False)
    assert len(events_in(tmp_path, "slot-failed")) == MOST_FAILURES


def test_slots_that_cannot_even_begin_end_the_run_too(server, tmp_path):
    for _ in range(MOST_FAILURES):
        tell_failure(server.address, TOKEN, ModuleNotFoundError("No module named 'boto3'"))
    with pytest.raises(EnvironmentFailure, match="fail again and again: ModuleNotFoundError: No module named 'boto3'"):
        serve_until(server, lambda: False)


@pytest.mark.parametrize("words", [Failed("another run's", "why"), Status(1, finished=(0, 1, 2)), Broken(1, 0)])
def test_who_is_not_of_the_run_is_not_heard(server, tmp_path, words):
    with socket.create_connection(server.address) as stranger:
        say(stranger, *[words] * MOST_FAILURES)
        stranger.settimeout(0.1)

        def is_cut_off():
            try:
                return stranger.recv(1) == b""
            except TimeoutError:
                return False
            except ConnectionResetError:
                return True

        serve_until(server, is_cut_off)
    assert not events_in(tmp_path, "slot-failed")


def test_all_slots_hear_of_the_end_though_one_has_just_died(tmp_path):
    server = server_in(tmp_path)
    dying, living = (socket.create_connection(server.address) for _ in range(2))
    for slot in (dying, living):
        say(slot, Hello(TOKEN, (HERE, 1), 0, 0))
    serve_until(server, lambda: len(events_in(tmp_path, "worker-joined")) == 2)
    dying.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closed with a reset
    dying.close()
    server.close()
    with living:
        heard = b"".join(iter(lambda: living.recv(1 << 16), b""))
    assert messages.encode(Stop()) in heard


def test_a_connection_that_breaks_while_an_earlier_break_is_remembered_is_known(server, tmp_path):
    slots = [socket.create_connection(server.address) for _ in range(2)]
    for slot in slots:
        say(slot, Hello(TOKEN, (HERE, 1), 0, 0))
    serve_until(server, lambda: events_in(tmp_path, "recovering"))
    first = events_in(tmp_path, "recovering")[-1]["epoch"]
    say(slots[0], Broken(first, 1))
    slots.pop().close()
    slots.append(socket.create_connection(server.address))
    say(slots[1], Hello(TOKEN, (HERE, 1), 0, 1))
    serve_until(server, lambda: events_in(tmp_path, "recovering")[-1]["epoch"] > first)
    say(slots[0], Broken(events_in(tmp_path, "recovering")[-1]["epoch"], 1))
    serve_until(server, lambda: any("broke" in lost["why"] for lost in events_in(tmp_path, "worker-lost")))
    for slot in slots:
        slot.close()
