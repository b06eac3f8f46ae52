"""Strangers at the door: what is read of them, for how long, how many, and what happens without descriptors."""

import secrets
import selectors
import socket
import time
from contextlib import ExitStack, closing

import pytest

from testbed.runtime.network import admission
from testbed.runtime.network.admission import GREETING_LIMIT_S, MOST_PENDING, PAUSE_S, Admission, Greeting
from testbed.runtime.network.secret import TOKEN_BYTES
from testbed.runtime.network.wire import turn
from tests.unit.testbed.runtime.connections import few_descriptors, is_cut_off, no_descriptors
from tests.unit.testbed.small_job import HERE

TOKEN = secrets.token_bytes(TOKEN_BYTES)
WHOM = Greeting(b"AS-TEST\n", "I")
GOOD = WHOM.of(TOKEN, 7)


class Door(ExitStack):
    """An admission in this thread, and who was let in."""

    def __init__(self):
        super().__init__()
        self.selector, self.guests = selectors.DefaultSelector(), []
        self.admission = Admission(self.selector, HERE, WHOM, TOKEN, lambda *guest: self.guests.append(guest))
        self.callback(self.selector.close)
        self.callback(self.admission.close)

    def knock(self, data=b""):
        connection = self.enter_context(socket.create_connection(self.admission.address))
        connection.sendall(data)
        return connection

    def run(self, until):
        deadline_s = time.monotonic() + 60
        while not until():
            assert time.monotonic() < deadline_s
            turn(self.selector, 0.01)

    def numbers(self):
        return [numbers for _, numbers in self.guests]


@pytest.fixture
def door():
    with Door() as made:
        yield made
        for connection, _ in made.guests:
            connection.close()


def test_who_greets_is_let_in_and_nothing_else_is_read(door):
    door.knock(GOOD + b"first words" * 10_000)
    door.run(lambda: door.guests)
    ((connection, numbers),) = door.guests
    assert numbers == (7,)
    assert connection.recv(11) == b"first words"


def test_the_door_is_on_the_address_of_its_host_and_on_no_other(door):
    assert door.admission.address[0] == HERE
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.9.9", door.admission.address[1]))


def test_a_greeting_may_come_byte_by_byte(door):
    connection = door.knock()
    for at in range(len(GOOD)):
        assert not door.guests
        connection.sendall(GOOD[at : at + 1])
        turn(door.selector, 1.0)
    door.run(lambda: door.guests)
    assert door.numbers() == [(7,)]


def changed(at):
    return GOOD[:at] + bytes([GOOD[at] ^ 1]) + GOOD[at + 1 :]


@pytest.mark.parametrize("at", [0, 7, 8, 20, 39])
def test_one_bit_beside_the_greeting_is_no_greeting(door, at):
    connection = door.knock(changed(at))
    door.run(lambda: is_cut_off(connection))
    assert not door.guests


def test_the_time_to_compare_a_token_tells_nothing_of_it(door, monkeypatch):
    """The whole token is compared at once, by a function whose time does not depend on the difference."""
    compared, compare = [], admission.hmac.compare_digest
    monkeypatch.setattr(admission.hmac, "compare_digest", lambda *both: compared.append(both) or compare(*both))
    given = changed(8)
    connection = door.knock(given)
    door.run(lambda: is_cut_off(connection))
    assert compared == [(given[8 : 8 + TOKEN_BYTES], TOKEN)]


def test_who_greets_somebody_else_goes_before_all_is_there(door):
    connection = door.knock(b"GET / HTTP/1.1\r\n")
    door.run(lambda: is_cut_off(connection))


@pytest.mark.parametrize("said", [b"", GOOD[:20]], ids=["nothing", "half of it"])
def test_who_does_not_greet_in_time_goes(door, said):
    connection = door.knock(said)
    door.run(lambda: door.admission.pending)
    now_s = time.monotonic()
    door.admission.on_clock(now_s)
    assert not is_cut_off(connection)
    door.admission.on_clock(now_s + GREETING_LIMIT_S)
    assert is_cut_off(connection)
    assert not door.admission.pending


def test_of_too_many_strangers_those_that_came_first_go(door):
    strangers = []
    for number in range(MOST_PENDING + 2):
        strangers.append(door.knock())
        expected = min(number + 1, MOST_PENDING)
        door.run(lambda expected=expected: door.admission.pending == expected)
        turn(door.selector, 0)
    assert door.admission.pending == MOST_PENDING
    assert [is_cut_off(each) for each in strangers] == [True, True] + [False] * MOST_PENDING


def test_who_has_greeted_but_was_not_read_yet_is_let_in_when_there_are_too_many(door):
    late = door.knock()
    door.run(lambda: door.admission.pending)
    late.sendall(GOOD)
    for _ in range(MOST_PENDING):
        door.knock()
    for _ in range(MOST_PENDING):
        door.admission.on_event(selectors.EVENT_READ)  # data of accepted connections is not read yet
    assert door.numbers() == [(7,)]


def test_without_descriptors_it_rests_and_lets_the_true_one_in_later(door):
    idle = door.knock()
    door.run(lambda: door.admission.pending)
    door.knock(GOOD)
    with no_descriptors():
        door.run(lambda: not door.admission.pending)
        assert is_cut_off(idle), "what a pending connection held is free again"
        assert door.selector.select(0) == [], "the listener does not wake the loop for connections that it cannot take"
    door.admission.on_clock(time.monotonic())
    assert door.selector.select(0) == []
    door.admission.on_clock(time.monotonic() + PAUSE_S)
    door.run(lambda: door.guests)
    assert door.numbers() == [(7,)]


def test_the_true_one_is_let_in_though_strangers_take_every_descriptor(door):
    """They come before it, and again as soon as they are dropped: it needs one descriptor for one moment."""
    for _ in range(5):
        door.knock()
    true = door.knock(GOOD)
    for _ in range(5):
        door.knock()
    with closing(socket.socket()) as free:
        lowest = free.fileno()
    with few_descriptors(lowest + 1):  # room for a single one
        for step in range(30):
            turn(door.selector, 0)
            door.admission.on_clock(time.monotonic() + step * PAUSE_S)
    assert door.numbers() == [(7,)]
    assert not is_cut_off(true)
