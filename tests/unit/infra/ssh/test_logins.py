"""What the ssh driver keeps of an inventory, so that every process of a run can log in to its machines."""

from __future__ import annotations

import json
import resource
import shutil
from pathlib import Path
from typing import Any

import pytest

from experiments.errors import BadInput
from experiments.spec import ClusterSpec
from infra.cluster import Handle
from infra.remote import ssh
from infra.ssh import logins
from tests.unit.ssh_keys import new_key


def laid_out(folder: Path, **addresses: str) -> Handle:
    """The handle of a cluster on machines with these addresses; the first is the gateway."""
    host_key = new_key(folder / "key")
    hosts: list[dict[str, Any]] = [
        {"name": name, "address": address, "user": "me", "key_file": "key", "host_key": host_key}
        | {"cores": 2, "memory_mb": 8192}
        for name, address in addresses.items()
    ]
    hosts[0]["role"] = "gateway"
    path = folder / "inventory.json"
    path.write_text(json.dumps({"hosts": hosts}), encoding="utf-8")
    spec = ClusterSpec(driver="ssh", workers=len(hosts) - 1, inventory=str(path))
    return logins.lay_out(spec, "run-1", folder / "run" / "cluster")


def test_two_names_of_one_machine_are_refused(tmp_path: Path) -> None:
    """A partition of the one host would cut off the other, which may be the gateway."""
    with pytest.raises(BadInput) as refused:
        laid_out(tmp_path, gateway="127.0.0.1", worker="localhost")
    line = "cluster.inventory: 'worker: localhost' is not usable; allowed: a machine of its own: "
    assert str(refused.value) == f"{line}gateway has the address 127.0.0.1, too"


def test_a_run_keeps_its_keys_with_their_certificates(tmp_path: Path) -> None:
    """A machine that trusts certificates only would refuse the mere key, from the claim on."""
    handle = laid_out(tmp_path, gateway="127.0.0.1", worker="127.0.0.2")
    certificate = tmp_path / "key-cert.pub"
    certificate.write_text("a certificate\n", encoding="utf-8")
    logins.copy_keys(handle)
    certificate.unlink()
    for machine in logins.machines_of(handle).values():
        kept = Path(machine.key)
        assert kept.read_bytes() == (tmp_path / "key").read_bytes()
        assert ssh.certificate_of(kept).read_text(encoding="utf-8") == "a certificate\n"


def test_a_key_without_a_certificate_gets_none(tmp_path: Path) -> None:
    handle = laid_out(tmp_path, gateway="127.0.0.1", worker="127.0.0.2")
    logins.copy_keys(handle)
    assert not any(ssh.certificate_of(Path(each.key)).exists() for each in logins.machines_of(handle).values())


def test_a_disk_that_fills_while_keys_are_kept_leaves_the_logins_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cluster has its handle by then, and is destroyed by these logins."""
    handle = laid_out(tmp_path, gateway="127.0.0.1", worker="127.0.0.2")
    known = logins.machines_of(handle)
    monkeypatch.setattr(shutil, "copyfile", lambda *_: None)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            logins.copy_keys(handle)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert logins.machines_of(handle) == known
