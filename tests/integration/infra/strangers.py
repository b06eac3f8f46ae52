"""Another user of the machine, who tries every port on which a live run listens, and reads what is told of it."""

from __future__ import annotations

import json
import os
import struct
import subprocess
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

import pytest

from infra import credentials
from infra.cluster import Handle
from infra.processes import LISTEN, members

NOBODY = 65534
SECRET_ENDINGS = (".secret", ".secretKey", ".password")  # of the names of settings
METADATA, CREATE_TOPICS = 3, 19  # requests to a broker, by number
PROBE = """
import json, socket, sys
found = {}
for name, text in json.loads(sys.stdin.read())["words"].items():
    address, port = sys.argv[1], int(sys.argv[2])
    try:
        with socket.create_connection((address, port), timeout=2) as connection:
            connection.sendall(bytes.fromhex(text))
            connection.settimeout(1.5)
            found[name] = connection.recv(4096).hex()
    except OSError as error:
        found[name] = ""
print(json.dumps(found))
"""


def request(number: int, body: bytes) -> bytes:
    """A request of version 0 to a broker, from a client that has shown no credentials."""
    content = struct.pack(">hhih", number, 0, 1, 4) + b"none" + body
    return struct.pack(">i", len(content)) + content


TOPIC = struct.pack(">ih", 1, 5) + b"taken" + struct.pack(">ihii", 1, 1, 0, 0) + struct.pack(">i", 1000)
SUBMISSION = b'Content-Length: 37\r\n\r\n{"action": "CreateSubmissionRequest"}'
WORDS = {
    "page": b"GET / HTTP/1.0\r\n\r\n",
    "metrics": b"GET /metrics/json/ HTTP/1.0\r\n\r\n",
    "kill": b"POST /app/kill/?id=app-1&terminate=true HTTP/1.0\r\nContent-Length: 0\r\n\r\n",
    "submission": b"POST /v1/submissions/create HTTP/1.0\r\n" + SUBMISSION,
    "a program": b"GET /v1/submissions/status/driver-1 HTTP/1.0\r\n\r\n",
    "topics": request(METADATA, struct.pack(">i", 0)),
    "a new topic": request(CREATE_TOPICS, TOPIC),
    "callback": b"c\np0\nonQueryStarted\nn\ne\n",
    "command": b"c\nt\nshutdown\ne\n",
    "a long block": struct.pack("<II", 100_000, 0) + b"[" * 100_000,
}
REFUSALS = (
    b"HTTP/1.1 403",
    b"HTTP/1.1 400",  # a server of pages that understands nothing
    b"!zspy4j.Py4JException: Unknown command received",  # a JVM that has not been shown its token
    b"!xsAuthentication error",
    b"SSH-2.0-",  # how sshd greets everybody
)


@dataclass(frozen=True)
class Port:
    """A port on which a process of a run listens; the process tells in which network."""

    pid: int
    program: str
    address: str
    number: int


def ports_of(token: str) -> list[Port]:
    """Every TCP port on which the live processes of a cluster listen, whatever network each is in."""
    found = {}
    for pid in members(token):
        try:
            program = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[-80:]
            for address, number in _listening(pid):
                found[_network(pid), address, number] = Port(pid, program, address, number)
        except OSError:  # it has just ended
            continue
    return list(found.values())


def _listening(pid: int) -> list[tuple[str, int]]:
    """Address and port of the sockets that a process listens on, as the tables of its own network have them."""
    files = (os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink())
    own = {name.removeprefix("socket:[").removesuffix("]") for name in files if name.startswith("socket:[")}
    rows = [row.split() for name in ("tcp", "tcp6") for row in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()]
    places = [row[1].split(":") for row in rows if row[3] == LISTEN and row[9] in own]
    return [(_address(host), int(port, 16)) for host, port in places]


def _address(packed: str) -> str:
    """An address out of the kernel's tables, which have it in words of four bytes, the last one first."""
    words = [packed[at : at + 8] for at in range(0, len(packed), 8)]
    found = ip_address(b"".join(bytes.fromhex(word)[::-1] for word in words))
    return str(getattr(found, "ipv4_mapped", None) or found)


def _network(pid: int) -> int:
    return os.stat(f"/proc/{pid}/ns/net").st_ino


def answers(port: Port) -> dict[str, bytes]:
    """What a port answers to another user, by what was said to it; refusals are no answers."""
    if os.geteuid():
        pytest.skip("only root can act as another user")
    inside = ["nsenter", f"--net=/proc/{port.pid}/ns/net"]
    stranger = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "/usr/bin/python3", "-c", PROBE]
    words = json.dumps({"words": {name: word.hex() for name, word in WORDS.items()}})
    address = "127.0.0.1" if ip_address(port.address).is_unspecified else port.address
    command = [*inside, *stranger, address, str(port.number)]
    done = subprocess.run(command, input=words, capture_output=True, text=True, check=True)
    found = {name: bytes.fromhex(answer) for name, answer in json.loads(done.stdout).items()}
    return {name: answer for name, answer in found.items() if answer and not answer.startswith(REFUSALS)}


def assert_nothing_answers(token: str, at_least: int) -> None:
    """No port of a cluster tells another user anything; there are `at_least` so many, or the test saw none."""
    ports = ports_of(token)
    assert len(ports) >= at_least, ports
    told = {port: found for port in ports if (found := answers(port))}
    assert not told, "\n".join(f"{port}: {found}" for port, found in told.items())


def assert_no_port_is_open_to_all(token: str, at_least: int) -> None:
    """No process of a cluster listens on every address of its network: each has that of its host, or loopback."""
    ports = ports_of(token)
    assert len(ports) >= at_least, ports
    assert [port for port in ports if ip_address(port.address).is_unspecified] == []


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
