"""A stranger finds what listens, of every kind, and tells an answer from a refusal: each fault is planted.

`tests/integration/infra/strangers.py` and `listeners.py` are what the tests of live clusters ask.
"""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.infra import listeners, strangers
from tests.integration.infra.listeners import Kind, Listener, listeners_of
from tests.unit.marked_processes import start, wait_for

# A server that gives everybody who says anything the same answer.
SERVER = """
import os, socket, sys
family, kind, where, port, answer = sys.argv[1:]
family, kind, answer = int(family), int(kind), bytes.fromhex(answer)
server = socket.socket(family, kind)
server.bind((where, int(port)) if family != socket.AF_UNIX else where.replace("@", chr(0)))
if where.startswith("/"):
    os.chmod(where, 0o777)
if kind != socket.SOCK_DGRAM:
    server.listen()
while True:
    if kind == socket.SOCK_DGRAM:
        _, asker = server.recvfrom(1 << 16)
        answer and server.sendto(answer, asker)
        continue
    connection, _ = server.accept()
    with connection:
        connection.recv(1 << 16)
        connection.sendall(answer)
"""
INET = (Kind.TCP, Kind.UDP)
UNIX = (Kind.UNIX_STREAM, Kind.UNIX_DATAGRAM, Kind.UNIX_PACKETS)
FEW = ("page", "submission", "command")  # words that the strangers of these tests say
ADVICE = b'HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n\r\n{"message": "appResource is missing"}'
NO_REQUEST = b"HTTP/1.1 400 Illegal character\r\n\r\n<tr><th>URI:</th><td>/badMessage</td></tr>"

Serving = Callable[..., Listener]


@pytest.fixture
def serving(token: str, monkeypatch: pytest.MonkeyPatch) -> Serving:
    """Starts a server as a process of a run, and returns it as it is found."""
    if os.geteuid():
        pytest.skip("only root can act as another user")
    monkeypatch.setattr(strangers, "WORDS", {name: strangers.WORDS[name] for name in FEW})

    def start_one(kind: Kind, where: str, answer: bytes = b"here I am") -> Listener:
        family = socket.AF_UNIX if kind in UNIX else socket.AF_INET6 if ":" in where else socket.AF_INET
        number = str(int(strangers.TYPES[kind]))
        start(token, sys.executable, "-I", "-S", "-c", SERVER, str(int(family)), number, where, "0", answer.hex())
        wait_for(lambda: bool(listeners_of(token)), limit_s=60)
        (found,) = listeners_of(token)
        assert (found.kind, found.where) == (kind, where)
        return found

    return start_one


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody may enter, unlike the temporary folders of tests."""
    with tempfile.TemporaryDirectory(prefix="aftershock-test-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.parametrize("kind", INET)
@pytest.mark.parametrize("address", ["127.0.9.1", "0.0.0.0", "::1", "::"])
def test_a_port_that_answers_is_found(serving: Serving, token: str, kind: Kind, address: str) -> None:
    if ":" in address and not has_ipv6():
        pytest.skip("this kernel has no IPv6")
    serving(kind, address)
    with pytest.raises(AssertionError, match="here I am"):
        strangers.assert_nothing_answers(token, at_least=0)


@pytest.mark.parametrize("kind", UNIX)
@pytest.mark.parametrize("name", ["@aftershock-test", "@aftershock test@of names"])
def test_a_name_in_no_file_system_that_answers_is_found(serving: Serving, token: str, kind: Kind, name: str) -> None:
    serving(kind, f"{name}-{token}")
    with pytest.raises(AssertionError, match="here I am"):
        strangers.assert_nothing_answers(token, at_least=0)


@pytest.mark.parametrize("kind", UNIX)
def test_a_path_that_answers_is_found(serving: Serving, token: str, open_folder: Path, kind: Kind) -> None:
    serving(kind, str(open_folder / "socket"))
    with pytest.raises(AssertionError, match="here I am"):
        strangers.assert_nothing_answers(token, at_least=0)


def test_a_path_in_a_folder_that_nobody_else_may_enter_answers_no_stranger(
    serving: Serving, token: str, open_folder: Path
) -> None:
    private = open_folder / "private"
    private.mkdir(mode=0o700)
    serving(Kind.UNIX_STREAM, str(private / "socket"))
    strangers.assert_nothing_answers(token, at_least=0)


def test_advice_to_a_request_is_an_answer(serving: Serving, token: str) -> None:
    serving(Kind.TCP, "127.0.9.1", ADVICE)
    with pytest.raises(AssertionError, match="appResource is missing"):
        strangers.assert_nothing_answers(token, at_least=1)


@pytest.mark.parametrize("answer", [b"", b"!xsAuthentication error\n", b"SSH-2.0-OpenSSH_9.2\r\n"])
def test_what_refuses_everybody_answers_nothing(serving: Serving, token: str, answer: bytes) -> None:
    serving(Kind.TCP, "127.0.9.1", answer)
    strangers.assert_nothing_answers(token, at_least=1)


@pytest.mark.parametrize(
    ("name", "answer", "refused"),
    [
        ("submission", b"HTTP/1.1 403 Forbidden\r\n\r\n", True),
        ("command", b"HTTP/1.1 403 Forbidden\r\n\r\n", False),
        ("command", NO_REQUEST, True),
        ("command", ADVICE, False),
        ("submission", NO_REQUEST, False),
        ("submission", ADVICE, False),
        ("page", b"HTTP/1.1 200 OK\r\n\r\n/badMessage", False),
        ("command", b"!yv\n", False),
    ],
)
def test_a_refusal_comes_before_anything_is_looked_at(name: str, answer: bytes, refused: bool) -> None:
    assert strangers.is_refusal(name, answer) is refused


@pytest.mark.parametrize("kind", INET)
def test_a_port_that_is_open_to_all_is_found_by_its_address(serving: Serving, token: str, kind: Kind) -> None:
    serving(kind, "0.0.0.0", b"")
    with pytest.raises(AssertionError, match="where='0"):
        strangers.assert_no_port_is_open_to_all(token, at_least=0)


def test_whoever_sees_no_port_has_seen_nothing(serving: Serving, token: str) -> None:
    serving(Kind.UDP, "127.0.9.1", b"")
    with pytest.raises(AssertionError):
        strangers.assert_nothing_answers(token, at_least=1)


@pytest.mark.parametrize(
    ("family", "address"),
    [
        (socket.AF_INET, "127.0.9.1"),
        (socket.AF_INET, "0.0.0.0"),
        (socket.AF_INET6, "::"),
        (socket.AF_INET6, "::1"),
        (socket.AF_INET6, "::ffff:127.0.9.1"),
    ],
)
@pytest.mark.parametrize("kind", INET)
def test_where_a_process_listens_is_read_as_it_asked(kind: Kind, family: socket.AddressFamily, address: str) -> None:
    with socket.socket(family, strangers.TYPES[kind]) as server:
        try:
            server.bind((address, 0))
        except OSError as error:
            pytest.skip(f"this kernel has no {address}: {error.strerror}")
        if kind is Kind.TCP:
            server.listen()
        found = [(each.kind, each.where, each.port) for each in listeners.of_process(os.getpid())]
        assert (kind, address.removeprefix("::ffff:"), server.getsockname()[1]) in found


def test_only_the_end_that_listens_is_a_listener() -> None:
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind("\0aftershock-test-ends")
        server.listen()
        client.connect("\0aftershock-test-ends")
        accepted, _ = server.accept()
        with accepted:
            assert [each.where for each in listeners.of_process(os.getpid())].count("@aftershock-test-ends") == 1


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True
