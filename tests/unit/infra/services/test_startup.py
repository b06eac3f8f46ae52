"""Services that come up: what the logs of hosts tell, and what is put in their place."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.cluster import Handle, Host, Role
from infra.services import startup
from tests.unit.strange_files import STRANGE, put


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
