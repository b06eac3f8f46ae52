"""Services that come up: what the logs of hosts tell, and what is put in their place."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import namedtuple
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from experiments.errors import BadInput, EnvironmentFailure
from experiments.spec import ClusterSpec
from infra.cluster import Handle, Host, Role, untold
from infra.local import LocalDriver
from infra.services import startup
from tests.unit.strange_files import STRANGE, put

Memory = namedtuple("Memory", "available")


@pytest.mark.parametrize("kind", STRANGE)
def test_a_worker_whose_log_is_no_file_has_not_joined(kind: str, tmp_path: Path) -> None:
    hosts = {"worker-1": Host("worker-1", "127.0.9.2", Role.WORKER, 1, 512)}
    handle = Handle("run-1", "local", "s9-0123456789c0ffee", str(tmp_path), hosts)
    log = handle.directory("worker-1") / "logs" / "spark-worker.log"
    log.parent.mkdir(parents=True)
    assert not startup._registered(handle, "worker-1")
    put(kind, log)
    assert not startup._registered(handle, "worker-1")
    log.rmdir() if log.is_dir() else log.unlink()
    log.write_bytes(b"INFO: " + startup.REGISTERED)
    assert startup._registered(handle, "worker-1")
    assert not startup._registered(handle, "worker-1", log.stat().st_size)


def test_what_a_failed_start_leaves_does_not_hide_why_it_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = {"gateway": Host("gateway", "127.0.9.1", Role.GATEWAY, 1, 512)}
    handle = Handle("run-1", "local", "s9-0123456789c0ffee", str(tmp_path / "cluster"), hosts)
    monkeypatch.setattr(startup, "PROVISION_LOCK", tmp_path / "lock")

    class Driver:
        def destroy(self, handle: Handle) -> None:
            raise EnvironmentFailure("2 processes survive SIGKILL", "look for them with ps")

    def make_hosts(handle: Handle) -> None:
        raise EnvironmentFailure("no disk could be mounted", "see `mount`")

    with pytest.raises(EnvironmentFailure) as told:
        startup.provision(
            Driver(), ClusterSpec(), Path(handle.root), lambda: handle, make_hosts, untold, elsewhere=True
        )
    left = "2 processes survive SIGKILL; look for them with ps"
    assert str(told.value) == f"no disk could be mounted; see `mount`; then {left}"


def test_a_start_tells_what_it_waits_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The workers join in the opposite order, one at each look at a log; the lock is told before."""
    handle = startup.handle_of(ClusterSpec(workers=3), "run-1", tmp_path, subnet=9, network="127.0.9")
    events: list[str] = []
    registered: set[str] = set()

    @contextmanager
    def one_at_a_time() -> Iterator[None]:
        events.append("<locked>")
        yield

    def is_registered(handle: Handle, host: str, since: int = 0) -> bool:
        registered.add(f"worker-{max(3 - len(registered), 1)}")
        return host in registered

    monkeypatch.setattr(startup, "one_at_a_time", one_at_a_time)
    monkeypatch.setattr(startup, "_registered", is_registered)
    monkeypatch.setattr(startup, "JOIN_POLL_S", 0.0)
    monkeypatch.setattr(startup, "start_worker", lambda driver, handle, worker: events.append(f"<{worker.name}>"))
    monkeypatch.setattr(startup.kafka, "wait_ready", lambda broker, log: events.append("<broker is ready>"))
    monkeypatch.setattr(startup.gateway, "wait_port", lambda address, port, log: events.append(f"<port {port}>"))
    for name in ("start_master", "start_broker"):
        monkeypatch.setattr(startup.gateway, name, lambda driver, handle, name=name: events.append(f"<{name}>"))
    startup.provision(
        LocalDriver(),
        ClusterSpec(),
        tmp_path,
        lambda: handle,
        lambda _: events.append("<hosts>"),
        events.append,
        elsewhere=True,
    )
    assert events == [
        *(startup.ITS_TURN, "<locked>", "hosts", "<hosts>"),
        *("the broker's storage to be formatted", "<start_master>", "<start_broker>"),
        *("Spark's master", f"<port {startup.MASTER_PORT}>", "<worker-1>", "<worker-2>", "<worker-3>"),
        *("the broker", f"<port {startup.BROKER_PORT}>", "<broker is ready>"),
        *(f"worker-{number} to join, {number} of 3" for number in (1, 2, 3)),
    ]


def test_a_temporary_folder_of_ones_own_is_no_other_lock_on_provisioning(tmp_path: Path) -> None:
    """Two runs would choose the same subnet: some systems give each user such a folder."""
    code = "from infra.services import startup; print(startup.PROVISION_LOCK)"
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "/tmp/aftershock-provision.lock\n"


def test_workers_that_the_free_memory_cannot_hold_are_refused_with_how_many_it_can(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    two = ClusterSpec(workers=2, worker_memory_mb=1000)
    assert startup.wanted_mb(two) == startup.GATEWAY_MEMORY_MB + 2 * (1000 + startup.WORKER_OVERHEAD_MB) == 4948
    monkeypatch.setattr(startup.psutil, "virtual_memory", lambda: Memory(4948 * 2**20))
    startup._check_memory(two)
    monkeypatch.setattr(startup.psutil, "virtual_memory", lambda: Memory(4948 * 2**20 - 1))
    with pytest.raises(
        BadInput, match=r"^cluster\.workers: 2 is not usable; allowed: at most 1 of 1000 MB here \(4947 MB"
    ):
        startup._check_memory(two)
    monkeypatch.setattr(startup.psutil, "virtual_memory", lambda: Memory(2**20))
    with pytest.raises(BadInput, match="at most 0 of 1000 MB"):
        startup._check_memory(two)
