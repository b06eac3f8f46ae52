"""A session over the stream of a `docker exec`, of which a socket pair plays the daemon; several threads share it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from infra.docker.containers import Status
from infra.docker.stream import ExecSession

LIMIT_S = 10.0
ANSWER = b'{"done": 7}\n'
FRAME = bytes([1, 0, 0, 0]) + len(ANSWER).to_bytes(4, "big") + ANSWER


class Shared:
    """A socket as a thread sees it while another one uses it, too."""

    def __init__(self, own: socket.socket) -> None:
        self._own = own

    def fileno(self) -> int:
        return self._own.fileno()

    def recv(self, *_: int) -> bytes:
        pytest.fail("what has come is the other thread's")


class ClosedAmid(Shared):
    """Another thread closes it after this one has seen that it is open."""

    def fileno(self) -> int:
        number = self._own.fileno()
        self._own.close()
        return number


@pytest.fixture
def ends() -> Iterator[tuple[ExecSession, socket.socket]]:
    near, far = socket.socketpair()
    stream = SimpleNamespace(_sock=near, close=lambda: None)
    api = SimpleNamespace(exec_create=lambda *_, **__: {"Id": "1"}, exec_start=lambda *_, **__: stream)
    container: Any = SimpleNamespace(
        id="1", status=Status.RUNNING, client=SimpleNamespace(api=api), reload=lambda: None
    )
    with near, far:
        yield ExecSession(container, ["true"]), far


def test_a_session_is_alive_until_one_end_closes_it(ends: tuple[ExecSession, socket.socket]) -> None:
    session, far = ends
    assert session.alive
    far.shutdown(socket.SHUT_WR)
    assert not session.alive
    session.close()
    assert not session.alive


def test_a_look_whether_it_is_alive_takes_no_answer_and_waits_for_none(
    ends: tuple[ExecSession, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If another thread takes the answer first, a look at it would wait, and take the session for lost."""
    session, far = ends
    answers: list[object] = []
    asking = threading.Thread(target=lambda: answers.append(session.ask(LIMIT_S, do="clock")), daemon=True)
    far.sendall(FRAME)
    with monkeypatch.context() as patch:
        patch.setattr(session, "_socket", Shared(session._socket))
        assert session.alive
    asking.start()
    asking.join(LIMIT_S)
    assert answers == [{"done": 7}]


def test_a_session_that_another_thread_closes_amid_the_look_is_an_error_to_nobody(
    ends: tuple[ExecSession, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    session, _ = ends
    with monkeypatch.context() as patch:
        patch.setattr(session, "_socket", ClosedAmid(session._socket))
        assert not session.alive
    assert not session.alive
