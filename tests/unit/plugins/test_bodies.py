"""Over a real server, a request's body is refused unread if the user is not admitted, or if the body is too large."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI

from plugins.bodies import MOST_BYTES
from tests.e2e.example_run import LIVE, write_live_run

ADDRESS = f"/aftershock/live/{LIVE}/abort"
HUGE = 400 * 2**20
PATIENCE_S = 30.0


class Counting:
    """Counts the bytes of bodies that the app has asked the server for."""

    def __init__(self, app: Any) -> None:
        self.app, self.taken = app, 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def counted() -> Any:
            message = await receive()
            self.taken += len(message.get("body", b""))
            return message

        await self.app(scope, counted, send)


@pytest.fixture
def served(api_server: FastAPI) -> Iterator[tuple[Counting, int]]:
    write_live_run()
    app = Counting(api_server)
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    yield app, listener.getsockname()[1]
    server.should_exit = True
    thread.join()
    listener.close()


def _answer(port: int, headers: list[str], body: bytes = b"", method: str = "POST") -> tuple[int, bool]:
    """The status of the answer to a request whose body never ends, and whether the connection ends with it."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as connection:
        head = [f"{method} {ADDRESS} HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/x-www-form-urlencoded"]
        with suppress(ConnectionError):  # it may be cut off amid the body, after the answer
            connection.sendall("\r\n".join([*head, *headers, "", ""]).encode() + body)
        answer = b""
        while b"\r\n" not in answer:
            piece = connection.recv(65536)
            assert piece, "it was closed without an answer"
            answer += piece
        status = int(answer.split()[1])
        try:
            while connection.recv(65536):
                pass
        except ConnectionResetError:
            pass  # so that it ends while there is something of the body that was never read
        except TimeoutError:
            return status, False
    return status, True


LENGTH = [f"Content-Length: {HUGE}"]
CHUNKED = ["Transfer-Encoding: chunked"]


@pytest.mark.parametrize(
    "headers", [LENGTH, CHUNKED, [*LENGTH, "Expect: 100-continue"]], ids=["length", "chunked", "expect"]
)
@pytest.mark.parametrize("method", ["POST", "GET", "PUT"])
def test_nothing_is_read_of_who_is_not_logged_in(served: tuple[Counting, int], headers: list[str], method: str):
    app, port = served
    assert _answer(port, headers, b"4\r\nabcd\r\n", method) == (405 if method == "PUT" else 401, True)
    assert app.taken == 0


@pytest.mark.parametrize("headers", [LENGTH, CHUNKED], ids=["length", "chunked"])
def test_nothing_is_read_of_who_may_not_abort(
    served: tuple[Counting, int], token: Callable[..., str], headers: list[str]
):
    app, port = served
    assert _answer(port, [*headers, f"Cookie: _token={token()}"], b"4\r\nabcd\r\n") == (403, True)
    assert app.taken == 0


def test_a_body_that_is_announced_too_large_is_not_read(served: tuple[Counting, int], token: Callable[..., str]):
    app, port = served
    assert _answer(port, [*LENGTH, f"Cookie: _token={token(role='ADMIN')}"]) == (413, True)
    assert app.taken == 0


def test_a_body_that_grows_too_large_is_read_no_further(served: tuple[Counting, int], token: Callable[..., str]):
    app, port = served
    chunk = b"1000\r\n" + b"a" * 4096 + b"\r\n"
    assert _answer(port, [*CHUNKED, f"Cookie: _token={token(role='ADMIN')}"], 100 * chunk) == (413, True)
    assert MOST_BYTES < app.taken <= 101 * 4096


def test_a_form_that_is_small_is_read(served: tuple[Counting, int], token: Callable[..., str]):
    app, port = served
    body = b"token=made-up"
    headers = [f"Content-Length: {len(body)}", f"Cookie: _token={token(role='ADMIN')}"]
    assert _answer(port, headers, body) == (403, True)  # read, and found not to be of our page
    assert app.taken == len(body)
