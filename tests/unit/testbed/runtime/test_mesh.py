"""The connections between slots: order, credit, epochs, and who is shut out."""

import secrets
import selectors
import socket
import time
from contextlib import contextmanager

import pytest

from testbed.core.effects import Grant
from testbed.core.frames import CorruptFrame, Frame, FrameKind, encode
from testbed.runtime.network.admission import GREETING_LIMIT_S
from testbed.runtime.network.mesh import PEER, Mesh
from testbed.runtime.network.messages import Peers
from testbed.runtime.network.secret import TOKEN_BYTES
from testbed.runtime.network.wire import WireError, turn
from tests.unit.testbed.runtime.connections import is_cut_off
from tests.unit.testbed.runtime.hostile import mutated, randoms
from tests.unit.testbed.small_job import HERE, NUMBERS, rows

TOKEN = secrets.token_bytes(TOKEN_BYTES)
TRUTH = (1, 2)


class Pair:
    """Two slots' ends of a mesh in one thread; what arrives is kept."""

    def __init__(self, tokens=(TOKEN, TOKEN)):
        self.selector = selectors.DefaultSelector()
        self.frames, self.grants, self.broken = ([], []), ([], []), ([], [])
        self.ends = [self._end(i, token) for i, token in enumerate(tokens)]

    def _end(self, i, token):
        heard = self.frames[i].append, self.grants[i].append, self.broken[i].append
        return Mesh(self.selector, HERE, token, [NUMBERS], *heard)

    def form(self, *workers):
        """`workers`: what each end is told of who has the slots; by default the truth."""
        addresses = tuple(end.address for end in self.ends)
        for i, told in enumerate(workers or (TRUTH, TRUTH)):
            self.ends[i].form(Peers(1, addresses, told, i, ()))

    def run(self, until):
        deadline_s = time.monotonic() + 60
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
    return Frame(FrameKind.DATA, epoch, 0, sequence, 0, b"", rows(sequence))


def test_frames_go_over_in_order_and_credit_comes_back(pair):
    pair.form()
    sent = [frame(1, sequence) for sequence in range(1, 500)]
    for each in sent:
        pair.ends[0].send(1, encode(each))
    pair.run(lambda: len(pair.frames[1]) == len(sent))
    assert pair.frames[1] == sent
    assert pair.ends[0].sent_bytes == sum(len(encode(each)) for each in sent)
    pair.ends[1].grant(0, Grant(0, 1, 7))
    pair.run(lambda: pair.grants[0])
    assert pair.grants[0] == [Grant(0, 1, 7)]


@pytest.mark.parametrize("told", [(3, 2), (0, 2)])
def test_who_is_not_the_current_worker_of_its_slot_is_shut_out(pair, told):
    pair.form(TRUTH, told)
    pair.ends[0].send(1, encode(frame(1, 1)))
    pair.run(lambda: pair.broken[0])
    assert (pair.broken[0], pair.frames[1], pair.broken[1]) == ([1], [], [])


@pytest.mark.parametrize("told", [(1, 3), (1, 0)])
def test_connections_with_a_worker_that_is_gone_end_and_only_the_other_end_hears_of_it(pair, told):
    pair.form()
    pair.ends[0].send(1, encode(frame(1, 1)))
    pair.run(lambda: pair.frames[1])
    pair.ends[0].form(Peers(2, tuple(end.address for end in pair.ends), told, 0, ()))
    pair.run(lambda: pair.broken[1])
    assert (pair.broken[0], pair.broken[1]) == ([], [0])


def test_connections_outlive_a_recovery_of_others(pair):
    pair.form()
    pair.ends[0].send(1, encode(frame(1, 1)))
    pair.form()
    pair.ends[0].send(1, encode(frame(1, 2)))
    pair.run(lambda: len(pair.frames[1]) == 2)
    assert pair.broken == ([], [])


def test_a_connection_that_ended_is_told_again_at_each_recovery_while_its_worker_is_there(pair):
    pair.form()
    pair.ends[0].send(1, encode(frame(1, 1)))
    pair.run(lambda: pair.frames[1])
    pair.ends[1].drop()
    pair.run(lambda: pair.broken[0])
    pair.form()
    assert pair.broken[0] == [1, 1]
    pair.form((1, 3), (1, 3))
    assert pair.broken[0] == [1, 1], "it has another worker now"


def test_what_is_for_a_slot_that_nobody_has_goes_nowhere(pair):
    pair.ends[0].form(Peers(1, (pair.ends[0].address, None), (1, 0), 0, ()))
    pair.ends[0].send(1, encode(frame(1, 1)))
    assert pair.ends[0].sent_bytes == 0


def test_a_stranger_is_not_listened_to():
    pair = Pair((TOKEN, secrets.token_bytes(TOKEN_BYTES)))
    pair.form()
    pair.ends[0].send(1, encode(frame(1, 1)))
    pair.run(lambda: pair.broken[0])
    assert pair.frames[1] == []
    with socket.create_connection(pair.ends[0].address) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: somebody\r\n\r\n")
        pair.run(lambda: is_cut_off(connection))
    pair.close()


@contextmanager
def peer(end, *numbers):
    """A connection that has greeted with the worker and the slot that it says it is, and the epoch it knows of."""
    with socket.create_connection(end.address) as connection:
        connection.sendall(PEER.of(TOKEN, *numbers))
        yield connection


@pytest.mark.parametrize("numbers", [(1, 2, 1), (1, 2**32 - 1, 1), (2**32 - 1, 0, 1)])
def test_a_peer_that_nobody_has_told_of_is_shut_out(pair, numbers):
    pair.form()
    with peer(pair.ends[1], *numbers) as connection:
        pair.run(lambda: is_cut_off(connection))


def test_who_has_yet_to_hear_that_all_roll_back_is_shut_out_and_does_not_break_a_connection_later(pair):
    """It connects in the epoch before, and ends that connection when it hears of the recovery."""
    addresses = tuple(end.address for end in pair.ends)
    pair.form()
    pair.ends[1].drop()
    pair.ends[1].form(Peers(2, addresses, TRUTH, 1, ()))
    pair.ends[0].send(1, encode(frame(1, 1)))
    pair.run(lambda: pair.broken[0] or pair.frames[1])
    pair.ends[0].drop()
    pair.ends[0].form(Peers(2, addresses, TRUTH, 0, ()))
    pair.ends[0].send(1, encode(frame(2, 1)))
    pair.run(lambda: frame(2, 1) in pair.frames[1] or pair.broken[1])
    assert (pair.frames[1], pair.broken[1]) == ([frame(2, 1)], [])


def test_who_knows_of_an_earlier_recovery_of_others_is_let_in(pair):
    addresses = tuple(end.address for end in pair.ends)
    pair.form()
    pair.ends[1].form(Peers(2, addresses, TRUTH, 1, ()))
    pair.ends[0].send(1, encode(frame(1, 1)))
    pair.run(lambda: pair.frames[1])
    assert pair.broken == ([], [])


def test_a_second_connection_of_a_slot_does_not_take_the_place_of_the_first(pair):
    pair.form()
    pair.ends[0].send(1, encode(frame(1, 1)))
    pair.run(lambda: pair.frames[1])
    with peer(pair.ends[1], 1, 0, 1) as connection:
        pair.run(lambda: is_cut_off(connection))
    pair.ends[0].send(1, encode(frame(1, 2)))
    pair.run(lambda: len(pair.frames[1]) == 2)
    assert pair.broken == ([], [])


def test_credit_for_a_channel_that_is_none_is_not_what_a_slot_would_send(pair):
    pair.form()
    pair.ends[0].send(1, encode(frame(1, 1)))
    pair.run(lambda: pair.frames[1])
    pair.ends[1].grant(0, Grant(1, 1, 7))
    with pytest.raises(WireError, match="channel 1 of 1"):
        pair.run(lambda: pair.grants[0])


def test_strangers_have_their_time_on_the_mesh_too(pair):
    with socket.create_connection(pair.ends[0].address) as connection:
        connection.sendall(PEER.of(TOKEN, 1, 1, 1)[:-1])
        turn(pair.selector, 1.0)
        pair.ends[0].on_clock(time.monotonic() + GREETING_LIMIT_S)
        assert is_cut_off(connection)


def test_frames_that_were_changed_on_the_mesh_are_read_or_corrupt(pair):
    """Each on a connection of its own, after a greeting; any error but a corrupt frame would end the slot."""
    good, corrupt = encode(frame(1, 1)) + encode(frame(1, 2)), 0
    for worker, random in enumerate(randoms(200), 3):
        pair.form((worker, 2), (worker, 2))
        with peer(pair.ends[1], worker, 0, 1) as connection:
            connection.sendall(mutated(random, good))
            try:
                for _ in range(3):
                    turn(pair.selector, 0.01)
            except CorruptFrame:
                corrupt += 1
    assert corrupt
