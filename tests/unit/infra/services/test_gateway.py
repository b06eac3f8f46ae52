"""How the broker is started: with its passwords in a file of its user, and nowhere else (no broker is started)."""

from __future__ import annotations

import socket
import stat
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from experiments.errors import EnvironmentFailure
from infra import credentials
from infra.cluster import Handle
from infra.services import gateway, jars
from tests.unit.infra.test_cluster import handle
from tests.unit.loopback import own_address


class Spawning:
    """Stands in for a driver: keeps the commands of the services that it should start."""

    def __init__(self) -> None:
        self.commands: list[list[str]] = []

    def spawn(self, handle: Handle, host: str, service: str, command: Sequence[str]) -> int:
        self.commands.append(list(command))
        return 1


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What is executed to start a broker and a master in the cluster at `tmp_path`; no digest is computed for it."""
    driver, cluster = Spawning(), handle(tmp_path)
    monkeypatch.setattr(jars, "_verify", lambda *_: pytest.fail("the run has looked at the jars when it began"))
    monkeypatch.setattr(gateway, "_format", lambda _handle, command, _folder: driver.commands.append(command))
    credentials.make(tmp_path)
    cluster.directory("gateway").mkdir(parents=True)
    gateway.start_broker(driver, cluster)
    gateway.start_master(driver, cluster)
    return driver.commands


def passwords(text: str) -> set[str]:
    """The passwords in logins of a Java program."""
    return {part.partition('"')[0] for part in text.split('password="')[1:]}


def test_only_its_user_can_read_the_passwords_of_the_broker(tmp_path: Path, commands: list[list[str]]) -> None:
    config = tmp_path / "hosts" / "gateway" / "kafka" / "server.properties"
    assert stat.S_IMODE(config.stat().st_mode) == 0o600
    assert len(passwords(config.read_text())) == 2, (
        "one of the clients, one of the controller, which no client is given"
    )


def test_no_command_has_a_secret_among_its_arguments(tmp_path: Path, commands: list[list[str]]) -> None:
    config = tmp_path / "hosts" / "gateway" / "kafka" / "server.properties"
    spark = (credentials.folder(tmp_path) / credentials.SPARK_FILE).read_text().split()
    secrets = {*passwords(config.read_text()), *(text for text in spark if len(text) > credentials.KEY_BYTES)}
    secrets = {text for text in secrets if not text.startswith(("spark.", "org."))} | {handle(tmp_path).token}
    assert len(secrets) == 5, "of the broker two, of Spark two, and the token"
    assert len(commands) == 3, "the broker's storage is formatted, then broker and master start"
    assert not [secret for secret in secrets for command in commands if secret in " ".join(command)]


def test_a_format_of_the_storage_that_does_not_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "FORMAT_LIMIT_S", 0.2)
    with pytest.raises(EnvironmentFailure, match=r"^Kafka did not format its storage in 0\.2 s; look at the disk of "):
        gateway._format(handle(tmp_path), ["sleep", "60"], tmp_path)


def test_the_ports_that_answer_are_counted_without_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading.Thread, "start", lambda thread: pytest.fail(f"{thread.name} is started"))
    address = own_address(17)
    with socket.create_server((address, 0)) as one, socket.create_server((address, 0)) as two:
        ports = [server.getsockname()[1] for server in (one, two)]
        assert gateway.answering(address, ports) == 2
        two.close()
        assert gateway.answering(address, ports) == 1
    assert gateway.answering(address, []) == gateway.answering(address, ports) == 0
    assert gateway.answering("255.255.255.255", ports) == 0, "no route is no answer"


def test_a_port_that_says_nothing_is_not_awaited_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "CONNECTION_LIMIT_S", 0.05)
    with socket.socket() as silent, socket.socket() as first:
        silent.bind((own_address(17), 0))
        silent.listen(0)
        first.connect(silent.getsockname())  # the kernel has no room for a second one, and says nothing to it
        assert gateway.answering(*(silent.getsockname()[0], [silent.getsockname()[1]])) == 0
