"""Connections that never block: what one hears that the other end has ended."""

import selectors
import socket
from contextlib import closing

import pytest

from testbed.runtime.network.wire import Link, turn
from tests.unit.testbed.small_job import HERE

LAST_WORDS = b"the run is over"
PATIENCE_S = 60


class Ended:
    """A link whose other end says its last words and goes, before it has read what this end sent, which resets it."""

    def __init__(self):
        self.heard, self.ends = b"", 0
        self.selector = selectors.DefaultSelector()
        with socket.create_server((HERE, 0)) as server:
            connection = socket.create_connection(server.getsockname())
            other, _ = server.accept()
        self.link = Link(self.selector, connection, self._on_bytes, self._on_end)
        self.say(b"unread")
        with other:
            assert other.recv(1, socket.MSG_PEEK)
            other.sendall(LAST_WORDS)

    def say(self, data):
        self.link.send(data)
        self.link.flush()

    def close(self):
        self.link.close()
        self.selector.close()

    def _on_bytes(self, data):
        self.heard += data

    def _on_end(self):
        self.ends += 1


@pytest.fixture
def ended():
    with closing(Ended()) as made:
        yield made


@pytest.mark.parametrize("said", [[], [b"status"], [b"status", b"status"]], ids=["silent", "once", "twice"])
def test_last_words_are_heard_though_a_write_failed_first(ended, said):
    """As a slot's report of its status does if the coordinator ends the run in the same moment."""
    for data in said:
        ended.say(data)
    while not ended.ends:
        assert turn(ended.selector, PATIENCE_S) < PATIENCE_S
    assert (ended.heard, ended.ends) == (LAST_WORDS, 1)
    ended.say(b"too late")
