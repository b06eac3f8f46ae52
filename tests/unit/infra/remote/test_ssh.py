"""Connections over SSH, here to a server in this process that lets everybody in."""

from __future__ import annotations

import errno
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import paramiko
import pytest

from experiments.errors import EnvironmentFailure
from infra.processes import has_precedence, take_precedence
from infra.remote import ssh
from infra.ssh import survey
from tests.unit.loopback import own_address
from tests.unit.marked_processes import wait_for
from tests.unit.ssh_keys import new_key

ADDRESS = own_address(18)
LIMIT_S = 60.0


class Server(paramiko.ServerInterface):
    """What a server makes of a key: by default, every key is right."""

    def __init__(self) -> None:
        self.judge: Callable[[], int] = lambda: paramiko.AUTH_SUCCESSFUL
        self.asked = 0
        self.goes_on = threading.Event()

    def get_allowed_auths(self, username: str) -> str:
        return "publickey"

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        self.goes_on.wait(LIMIT_S)
        return False

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        self.asked += 1
        return self.judge()


@pytest.fixture
def judge() -> Server:
    return Server()


@pytest.fixture
def login(tmp_path: Path, judge: Server) -> Iterator[ssh.Login]:
    """How to log in to a server, which takes any number of connections."""
    host_key = paramiko.ECDSAKey.generate()
    paramiko.ECDSAKey.generate().write_private_key_file(str(tmp_path / "key"))
    with socket.create_server((ADDRESS, 0)) as server:
        port = server.getsockname()[1]
        entry = f"{ssh.entry_of(ADDRESS, port)} {host_key.get_name()} {host_key.get_base64()}\n"
        (tmp_path / "known_hosts").write_text(entry, encoding="utf-8")
        accepted: list[paramiko.Transport] = []

        def serve() -> None:
            with suppress(OSError):  # it was shut down
                while True:
                    accepted.append(paramiko.Transport(server.accept()[0]))
                    accepted[-1].add_server_key(host_key)
                    accepted[-1].start_server(threading.Event(), judge)

        serving = threading.Thread(target=serve)
        serving.start()
        yield ssh.Login("root", tmp_path / "key", tmp_path / "known_hosts", port)
        server.shutdown(socket.SHUT_RDWR)
        serving.join(LIMIT_S)
        for transport in accepted:
            transport.close()


@pytest.mark.parametrize("initializer", [None, take_precedence])
def test_the_thread_of_a_connection_has_the_precedence_of_the_one_that_connects(login: ssh.Login, initializer) -> None:
    """Who strikes over a connection waits for its thread, which may have the interpreter and no core."""
    with ThreadPoolExecutor(1, initializer=initializer) as connects:
        client = connects.submit(ssh.connect, login, "worker-1", ADDRESS).result(LIMIT_S)
    transport = client.get_transport()
    assert transport is not None
    assert has_precedence(transport.native_id or 0) is (initializer is take_precedence)
    client.close()


def test_a_login_that_the_server_did_not_judge_is_tried_again(
    login: ssh.Login, judge: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy machine takes long, and one that is killed ends the connection: neither has refused the key."""
    monkeypatch.setattr(ssh, "CONNECT_LIMIT_S", 2.0)

    def late_then_dead_then_well() -> int:
        if judge.asked == 1:
            time.sleep(3.0)
        elif judge.asked == 2:
            raise EOFError("this ends the connection")
        return paramiko.AUTH_SUCCESSFUL

    judge.judge = late_then_dead_then_well
    ssh.connect(login, "worker-1", ADDRESS).close()
    assert judge.asked >= 3


@pytest.mark.parametrize("key", [paramiko.RSAKey.generate(2048), paramiko.ECDSAKey.generate()])
def test_a_key_that_the_server_refuses_is_told_at_once(login: ssh.Login, judge: Server, key: paramiko.PKey) -> None:
    key.write_private_key_file(str(login.key))
    judge.judge = lambda: paramiko.AUTH_FAILED
    with pytest.raises(EnvironmentFailure, match=r"worker-1 at .* refuses root's key"):
        ssh.connect(login, "worker-1", ADDRESS)
    assert judge.asked == 1


def locked_in_openssh(file: Path) -> None:
    new_key(file, "a passphrase")


def locked_in_pem(file: Path) -> None:
    paramiko.ECDSAKey.generate().write_private_key_file(str(file), password="a passphrase")


def no_key(file: Path) -> None:
    file.write_text("Host *\n", encoding="utf-8")


def public_half(file: Path) -> None:
    file.write_text(new_key(file), encoding="utf-8")


def without_its_end(file: Path) -> None:
    new_key(file)
    file.write_bytes(file.read_bytes()[:200])


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (locked_in_openssh, "a key with a passphrase"),
        (locked_in_pem, "a key with a passphrase"),
        (no_key, "no private key, or a damaged one"),
        (public_half, "no private key, or a damaged one"),
        (without_its_end, "no private key, or a damaged one"),
    ],
)
def test_a_key_that_cannot_be_used_is_told_at_once_in_one_line(
    login: ssh.Login, judge: Server, make: Callable[[Path], None], found: str
) -> None:
    make(login.key)
    with pytest.raises(EnvironmentFailure) as told:
        ssh.connect(login, "worker-1", ADDRESS)
    cause = f"{login.key}, needed to log in to worker-1, holds {found}"
    assert str(told.value) == f"{cause}; put a private SSH key without a passphrase there (RSA, ECDSA or Ed25519)"
    assert judge.asked == 0


def test_a_key_file_that_is_a_folder_is_told(login: ssh.Login) -> None:
    login.key.unlink()
    login.key.mkdir()
    with pytest.raises(EnvironmentFailure, match=r"needed to log in to worker-1, cannot be read \(Is a directory\)"):
        ssh.connect(login, "worker-1", ADDRESS)


@pytest.mark.parametrize("content", ["no certificate\n", "ssh-ed25519-cert-v01@openssh.com AAAA\n"])
def test_a_damaged_certificate_beside_a_good_key_is_told(login: ssh.Login, judge: Server, content: str) -> None:
    certificate = login.key.with_name("key-cert.pub")
    certificate.write_text(content, encoding="utf-8")
    with pytest.raises(EnvironmentFailure) as told:
        ssh.connect(login, "worker-1", ADDRESS)
    assert f"a damaged one, or its certificate {certificate} is damaged; " in str(told.value)
    assert judge.asked == 0


def test_a_certificate_that_cannot_be_read_is_told_by_its_own_name(
    login: ssh.Login, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(filename: str) -> None:  # root may read each file
        raise PermissionError(errno.EACCES, "Permission denied", filename)

    login.key.with_name("key-cert.pub").touch()
    monkeypatch.setattr(paramiko.pkey.PublicBlob, "from_file", unreadable)
    with pytest.raises(EnvironmentFailure, match=r"^\S+/key-cert\.pub, needed to log in to worker-1, cannot be read"):
        ssh.connect(login, "worker-1", ADDRESS)


@pytest.mark.parametrize(
    ("begin", "told"),
    [
        (lambda client: ssh.SshSession(client, ["true"]), "the connection to a host was lost"),
        (lambda client: survey._require_checkout(client, "worker-1"), "worker-1 lets its user log in, but run nothing"),
    ],
    ids=["session", "survey"],
)
def test_a_machine_that_stands_still_amid_the_start_of_a_command_is_given_up(
    login: ssh.Login,
    judge: Server,
    monkeypatch: pytest.MonkeyPatch,
    begin: Callable[[paramiko.SSHClient], object],
    told: str,
) -> None:
    client = ssh.connect(login, "worker-1", ADDRESS)
    monkeypatch.setattr(ssh, "CONNECT_LIMIT_S", 0.2)
    monkeypatch.setattr(survey, "LIMIT_S", 0.2)
    going_on = threading.Timer(LIMIT_S / 3, judge.goes_on.set)
    going_on.start()
    with pytest.raises(EnvironmentFailure, match=told):
        begin(client)
    assert not judge.goes_on.is_set(), "it was awaited until it went on"
    going_on.cancel()
    judge.goes_on.set()


def test_a_connection_that_ends_right_after_the_login_leaves_no_thread(
    login: ssh.Login, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended(client: paramiko.SSHClient) -> None:
        raise OSError(errno.ENOTCONN, "Transport endpoint is not connected")

    monkeypatch.setattr(ssh, "ATTEMPTS_LIMIT_S", 0.0)
    monkeypatch.setattr(ssh, "_keep_alive", ended)
    with pytest.raises(EnvironmentFailure, match=r"cannot be reached over SSH \(Transport endpoint is not connected\)"):
        ssh.connect(login, "worker-1", ADDRESS)
    wait_for(lambda: not any(isinstance(thread, ssh.SharingTransport) for thread in threading.enumerate()))
