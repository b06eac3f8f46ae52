"""Requests and answers as JSON lines, carried by a socket pair to a far end that is played here."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from infra.remote.json_lines import JsonLines
from infra.remote.session import Disconnected, Unsent

LIMIT_S = 10.0


class Lines(JsonLines):
    def __init__(self, near: socket.socket) -> None:
        super().__init__()
        self._near = near

    @property
    def alive(self) -> bool:
        return self._near.fileno() >= 0

    def set_limit(self, limit_s: float) -> None:
        self._near.settimeout(limit_s)

    def send(self, line: bytes) -> None:
        self._near.sendall(line)

    def receive(self) -> bytes:
        return self._near.recv(4096)

    def error_output(self) -> str:
        return "first\nlast"

    def close(self) -> None:
        self._near.close()


@pytest.fixture
def ends() -> Iterator[tuple[Lines, socket.socket]]:
    near, far = socket.socketpair()
    far.settimeout(LIMIT_S)
    with near, far:
        yield Lines(near), far


def test_what_is_told_does_not_wait_for_an_answer_that_another_thread_has_asked_for(
    ends: tuple[Lines, socket.socket],
) -> None:
    lines, far = ends
    answers: list[object] = []
    asking = threading.Thread(target=lambda: answers.append(lines.ask(LIMIT_S, do="undo")), daemon=True)
    asking.start()
    heard = far.makefile("r")
    assert json.loads(heard.readline()) == {"do": "undo"}
    threading.Thread(target=lambda: lines.tell(do="shoot", number=1), daemon=True).start()
    assert json.loads(heard.readline()) == {"do": "shoot", "number": 1}
    far.sendall(b"a greeting\n" + json.dumps({"done": 7}).encode() + b"\n")
    asking.join(LIMIT_S)
    assert answers == [{"done": 7}]


@pytest.mark.parametrize(
    "said",
    [
        b'{"done": ' + b"[" * 100_000,
        b'{"done"',
        b'{"done": "\xff"}',
        b"chatter\n" * 10_000,
        b'{"done": ' + b"1" * 5_000,
    ],
    ids=["nested", "cut", "not-unicode", "chatter", "long-number"],
)
def test_a_host_that_answers_anything_is_a_host_that_is_lost(ends: tuple[Lines, socket.socket], said: bytes) -> None:
    lines, far = ends
    threading.Thread(target=far.sendall, args=(said + b"\n",), daemon=True).start()
    with pytest.raises(Disconnected, match="no answer"):
        lines.ask(LIMIT_S, do="clock")
    assert not lines.alive


@pytest.mark.parametrize("said", [b"chatter\n", b"{"], ids=["lines", "bytes"])
def test_what_is_no_answer_does_not_make_it_wait_for_longer(ends: tuple[Lines, socket.socket], said: bytes) -> None:
    lines, far = ends
    over = threading.Event()

    def chatter() -> None:
        with suppress(OSError):  # the near end is closed
            while not over.wait(0.05):
                far.sendall(said)

    chattering = threading.Thread(target=chatter, daemon=True)
    chattering.start()
    began = time.monotonic()
    with pytest.raises(Disconnected, match=r"in time|timed out"):
        lines.ask(0.3, do="clock")
    assert time.monotonic() - began < LIMIT_S
    over.set()
    chattering.join()


def test_who_waits_for_a_turn_on_a_connection_that_is_lost_meanwhile_has_not_asked(
    ends: tuple[Lines, socket.socket],
) -> None:
    lines, far = ends
    lost: list[Disconnected] = []

    def ask() -> None:
        try:
            lines.ask(LIMIT_S, do="clock")
        except Disconnected as error:
            lost.append(error)

    asking = [threading.Thread(target=ask, daemon=True) for _ in range(2)]
    for thread in asking:
        thread.start()
    heard = far.makefile("r")
    assert json.loads(heard.readline()) == {"do": "clock"}
    far.shutdown(socket.SHUT_WR)
    for thread in asking:
        thread.join(LIMIT_S)
    assert {type(error) for error in lost} == {Disconnected, Unsent}
    assert len(lost) == 2
    assert heard.readline() == "", "the second request was sent"


@pytest.mark.parametrize("interrupted_at", ["send", "receive"])
def test_an_answer_that_nobody_awaits_any_more_is_not_taken_for_the_next_one(
    ends: tuple[Lines, socket.socket], monkeypatch: pytest.MonkeyPatch, interrupted_at: str
) -> None:
    """Ctrl-C, or the end of a task, interrupts a step; then its teardown asks over the same session."""
    lines, far = ends

    def interrupted(*_: object) -> bytes:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(lines, interrupted_at, interrupted)
        with pytest.raises(KeyboardInterrupt):
            lines.ask(LIMIT_S, do="running")
    with suppress(OSError):  # nobody is there to hear it
        far.sendall(b'{"done": ["spark-worker"]}\n')
    with pytest.raises(Unsent):
        lines.ask(LIMIT_S, do="vacate")


def test_the_end_of_the_program_is_told_in_its_error_output(ends: tuple[Lines, socket.socket]) -> None:
    lines, far = ends
    far.shutdown(socket.SHUT_WR)
    with pytest.raises(Disconnected, match="last"):
        lines.ask(LIMIT_S, do="clock")
    assert not lines.alive
