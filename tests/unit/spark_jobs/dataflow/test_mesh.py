"""The connections between slots: order, credit, epochs, and who is shut out."""

import secrets
import selectors
import socket
import time

import pytest

from spark_jobs.dataflow.effects import Grant
from spark_jobs.dataflow.frames import Frame, Kind, encode
from spark_jobs.dataflow.runtime.mesh import Mesh
from spark_jobs.dataflow.runtime.messages import Peers
from spark_jobs.dataflow.runtime.secret import TOKEN_BYTES
from spark_jobs.dataflow.runtime.wire import turn
from tests.unit.spark_jobs.dataflow.connections import is_cut_off
from tests.unit.spark_jobs.dataflow.small_job import HERE, NUMBERS, rows

TOKEN = secrets.token_bytes(TOKEN_BYTES)


class Pair:
    """Two slots' ends of a mesh in one thread; what arrives is kept."""

    def __init__(self, tokens=(TOKEN, TOKEN)):
        self.selector = selectors.DefaultSelector()
        self.frames, self.grants, self.broken = ([], []), ([], []), ([], [])
        self.ends = [self._end(i, token) for i, token in enumerate(tokens)]

    def _end(self, i, token):
        heard = self.frames[i].append, self.grants[i].append, self.broken[i].append
        return Mesh(self.selector, HERE, token, [NUMBERS], *heard)

    def form(self, *epochs):
        addresses = tuple(end.address for end in self.ends)
        for i, epoch in enumerate(epochs):
            self.ends[i].form(Peers(epoch, addresses, i))

    def run(self, until):
        deadline_s = time.monotonic() + 10
        while not until():
            assert time.monotonic() < deadline_s
            for end in self.ends:
                end.flush()
            turn(self.selector, 0.01)

    def close(self):
        for end in self.ends:
            end.close()
        self.selector.close()


@pytest.fixture
def pair():
    made = Pair()
    yield made
    made.close()


def frame(epoch, sequence):
    return Frame(Kind.DATA, epoch, 0, sequence, 0, b"", rows(sequence))


def test_frames_go_over_in_order_and_credit_comes_back(pair):
    pair.form(1, 1)
    sent = [frame(1, sequence) for sequence in range(1, 500)]
    for each in sent:
        pair.ends[0].send(1, encode(each))
    pair.run(lambda: len(pair.frames[1]) == len(sent))
    assert pair.frames[1] == sent
    assert pair.ends[0].sent_bytes == sum(len(encode(each)) for each in sent)
    pair.ends[1].grant(0, Grant(0, 1, 7))
    pair.run(lambda: pair.grants[0])
    assert pair.grants[0] == [Grant(0, 1, 7)]


@pytest.mark.parametrize("epochs", [(1, 2), (2, 1)])
def test_who_lives_in_another_epoch_is_shut_out(pair, epochs):
    pair.form(*epochs)
    pair.ends[0].send(1, encode(frame(epochs[0], 1)))
    pair.run(lambda: pair.broken[0])
    assert (pair.broken[0], pair.frames[1], pair.broken[1]) == ([1], [], [])


def test_a_new_epoch_ends_old_connections_and_only_the_other_end_hears_of_it(pair):
    pair.form(1, 1)
    pair.ends[0].send(1, encode(frame(1, 1)))
    pair.run(lambda: pair.frames[1])
    pair.ends[0].form(Peers(2, tuple(end.address for end in pair.ends), 0))
    pair.run(lambda: pair.broken[1])
    assert (pair.broken[0], pair.broken[1]) == ([], [0])


def test_a_stranger_is_not_listened_to():
    pair = Pair((TOKEN, secrets.token_bytes(TOKEN_BYTES)))
    pair.form(1, 1)
    pair.ends[0].send(1, encode(frame(1, 1)))
    pair.run(lambda: pair.broken[0])
    assert pair.frames[1] == []
    with socket.create_connection(pair.ends[0].address) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: somebody\r\n\r\n")
        pair.run(lambda: is_cut_off(connection))
    pair.close()
