"""Another user of the machine, who tries every socket on which a live run listens, and reads what is told of it."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from infra import credentials
from infra.cluster import Handle
from tests.integration.infra.listeners import Kind, Listener, listeners_of

NOBODY = 65534
AT_ONCE = 8  # sockets that are tried: one that says nothing is waited for
SECRET_ENDINGS = (".secret", ".secretKey", ".password")  # of the names of settings
METADATA, CREATE_TOPICS = 3, 19  # requests to a broker, by number
LOOPBACKS = {"0.0.0.0": ["127.0.0.1"], "::": ["127.0.0.1", "::1"]}  # of a socket that is open to all

# It becomes another user below the root of the process, where its paths lead; the rest of its modules stay outside.
PROBE = """
import encodings.idna, json, os, socket, sys
os.chroot(f"/proc/{sys.argv[1]}/root")
os.chdir("/")
os.setgroups([])
os.setgid(int(sys.argv[2]))
os.setuid(int(sys.argv[2]))

def heard(family, kind, place, word):
    with socket.socket(family, kind) as connection:
        connection.settimeout(2)
        if (family, kind) == (socket.AF_UNIX, socket.SOCK_DGRAM):
            connection.bind("")  # the kernel gives it a name, to which somebody can answer
        connection.connect(place)
        connection.settimeout(1.5)
        try:
            connection.sendall(word)
        except OSError:
            pass  # it was cut off amid the word, perhaps after an answer
        return connection.recv(4096)

orders, found = json.loads(sys.stdin.read()), {}
for name, word in orders["words"].items():
    for family, place in orders["places"]:
        place = tuple(place) if isinstance(place, list) else place
        try:
            answer = heard(family, orders["type"], place, bytes.fromhex(word))
        except OSError:
            continue
        found[name] = found.get(name, "") or answer.hex()
print(json.dumps(found))
"""
TYPES = {
    Kind.TCP: socket.SOCK_STREAM,
    Kind.UDP: socket.SOCK_DGRAM,
    Kind.UNIX_STREAM: socket.SOCK_STREAM,
    Kind.UNIX_DATAGRAM: socket.SOCK_DGRAM,
    Kind.UNIX_PACKETS: socket.SOCK_SEQPACKET,
}


def request(number: int, body: bytes) -> bytes:
    """A request of version 0 to a broker, from a client that has shown no credentials."""
    content = struct.pack(">hhih", number, 0, 1, 4) + b"none" + body
    return struct.pack(">i", len(content)) + content


TOPIC = struct.pack(">ih", 1, 5) + b"taken" + struct.pack(">ihii", 1, 1, 0, 0) + struct.pack(">i", 1000)
SUBMISSION = b'Content-Length: 37\r\n\r\n{"action": "CreateSubmissionRequest"}'
PAGES = {
    "page": b"GET / HTTP/1.0\r\n\r\n",
    "metrics": b"GET /metrics/json/ HTTP/1.0\r\n\r\n",
    "kill": b"POST /app/kill/?id=app-1&terminate=true HTTP/1.0\r\nContent-Length: 0\r\n\r\n",
    "submission": b"POST /v1/submissions/create HTTP/1.0\r\n" + SUBMISSION,
    "a program": b"GET /v1/submissions/status/driver-1 HTTP/1.0\r\n\r\n",
}
NO_PAGES = {
    "topics": request(METADATA, struct.pack(">i", 0)),
    "a new topic": request(CREATE_TOPICS, TOPIC),
    "callback": b"c\np0\nonQueryStarted\nn\ne\n",
    "command": b"c\nt\nshutdown\ne\n",
    "a long block": struct.pack("<II", 100_000, 0) + b"[" * 100_000,
}
WORDS = PAGES | NO_PAGES
FORBIDDEN = b"HTTP/1.1 403"
# A web server answers 400 also to a request that it has read and that has an error, so 400 alone is no refusal. Jetty
# names this page, which was not requested, if it could not even parse a request.
NOT_UNDERSTOOD, NO_REQUEST = b"HTTP/1.1 400", b"/badMessage"
REFUSALS = (
    b"!zspy4j.Py4JException: Unknown command received",  # a JVM that has not been shown its token
    b"!xsAuthentication error",
    b"SSH-2.0-",  # how sshd greets everybody
)


def is_refusal(name: str, answer: bytes) -> bool:
    """Whether nothing of the content was looked at for that answer to the word of that name."""
    if name in PAGES and answer.startswith(FORBIDDEN):
        return True
    if name in NO_PAGES and answer.startswith(NOT_UNDERSTOOD):
        return NO_REQUEST in answer
    return not answer or answer.startswith(REFUSALS)


def answers(listener: Listener) -> dict[str, bytes]:
    """What a socket answers to another user, by what was said to it; refusals are no answers."""
    if os.geteuid():
        pytest.skip("only root can act as another user")
    inside = ["nsenter", f"--net=/proc/{listener.pid}/ns/net"]
    stranger = [sys.executable, "-I", "-S", "-c", PROBE, str(listener.pid), str(NOBODY)]
    words = {name: word.hex() for name, word in WORDS.items()}
    orders = json.dumps({"type": TYPES[listener.kind], "places": _places(listener), "words": words})
    done = subprocess.run([*inside, *stranger], input=orders, capture_output=True, text=True, check=True)
    found = {name: bytes.fromhex(answer) for name, answer in json.loads(done.stdout).items()}
    return {name: answer for name, answer in found.items() if not is_refusal(name, answer)}


def _places(listener: Listener) -> list[tuple[socket.AddressFamily, tuple[str, int] | str]]:
    """What to connect to, with the family that the socket must be of."""
    if listener.is_port:
        addresses = LOOPBACKS.get(listener.where, [listener.where])
        return [(_family(address), (address, listener.port)) for address in addresses]
    if not listener.where.startswith("@"):
        return [(socket.AF_UNIX, listener.where)]
    name = listener.where[1:]  # the kernel shows each zero byte of a name as @
    return [(socket.AF_UNIX, "\0" + each) for each in sorted({name, name.replace("@", "\0")})]


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def assert_nothing_answers(token: str, at_least: int) -> None:
    """No socket of a cluster tells another user anything. `at_least` of them have ports, or the test saw too few."""
    found = _found(token, at_least)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        told = {each: said for each, said in zip(found, pool.map(answers, found), strict=True) if said}
    assert not told, "\n".join(f"{each}: {said}" for each, said in told.items())


def assert_no_port_is_open_to_all(token: str, at_least: int) -> None:
    """No process of a cluster listens on every address of its network: each has that of its host, or loopback."""
    found = [each for each in _found(token, at_least) if each.is_on_every_address]
    assert not found, found


def _found(token: str, at_least: int) -> list[Listener]:
    found = listeners_of(token)
    assert sum(each.kind is Kind.TCP for each in found) >= at_least, found
    return found


def secrets_of(root: str) -> dict[str, bytes]:
    """The secrets of a live cluster, by name: its token, and what its processes and clients show each other."""
    files = (credentials.folder(root) / name for name in (credentials.SPARK_FILE, credentials.KAFKA_FILE))
    settings = (line.replace("=", " ", 1).partition(" ") for file in files for line in file.read_text().splitlines())
    found = {name: value.encode() for name, _, value in settings if name.endswith(SECRET_ENDINGS)}
    return {"token": Handle.load(Path(root)).token.encode(), **found}


def assert_no_argument_tells(secrets: dict[str, bytes]) -> None:
    """No process of this machine has a secret among its arguments, which every user can list."""
    assert len(secrets) == 4, secrets.keys()
    told: dict[str, bytes] = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            arguments = path.read_bytes()
        except OSError:  # it has just ended
            continue
        told |= {f"{path}: {name}": arguments for name, secret in secrets.items() if secret in arguments}
    assert not told


def assert_no_file_tells(secrets: dict[str, bytes], folder: Path) -> None:
    """No file below a folder has a secret in it."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    assert [(path, name) for path in files for name, secret in secrets.items() if secret in path.read_bytes()] == []
