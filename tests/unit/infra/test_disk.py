"""A full disk, on a small filesystem of its own; only root can mount one."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.fault_kinds import PLAIN, FaultKind
from infra.strikes.disk import takes_a_block
from infra.strikes.ready import Target, ready, undo

ADDRESS = "127.0.251.10"
MB = 2**20
FULL, ROOM = {"blocks taken in": 0}, {"blocks refused": 0}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "test-disk", folder], capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"only root, in a machine that lets it, can mount a tmpfs ({done.stderr.strip()})")
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.fixture
def host(token: str, disk: Path) -> Target:
    return Target(f"{token}/worker-1", ADDRESS, disk=str(disk))


def fill(host):
    return ready(host, FaultKind.DISK_FULL, PLAIN).fire()


def test_a_full_disk_takes_nothing_until_it_is_healed(host, disk):
    (disk / "shuffle").write_bytes(bytes(MB))
    proof = fill(host)
    assert (proof.done, proof.left) == ({"MB taken": 3}, FULL)
    assert os.statvfs(disk).f_bfree == 0, "not one block is free"
    with pytest.raises(OSError, match="No space left"):
        (disk / "more").write_bytes(b"x")
    assert (disk / "shuffle").read_bytes() == bytes(MB), "what was there stays"
    healed = undo(host, FaultKind.DISK_FULL)
    assert (healed.done, healed.left) == ({"fillers removed": 1}, ROOM)
    (disk / "more").write_bytes(bytes(2 * MB))
    assert undo(host, FaultKind.DISK_FULL).done == {"fillers removed": 0}


def test_what_is_freed_while_it_is_being_filled_is_taken_too(host, disk):
    (disk / "old").write_bytes(bytes(2 * MB))
    strike = ready(host, FaultKind.DISK_FULL, PLAIN)
    strike.shoot(0)
    (disk / "old").unlink()
    proof = strike.fire()
    assert (proof.done, proof.left) == ({"MB taken": 4}, FULL)


def test_a_disk_that_others_have_filled_is_full_and_has_no_room_when_healed(host, disk):
    others = disk / "others"
    with others.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, 4 * MB)
    assert fill(host).left == FULL
    assert undo(host, FaultKind.DISK_FULL).left == {"blocks refused": 1}
    others.unlink()


def test_looking_leaves_nothing_behind(disk):
    assert takes_a_block(disk)
    assert list(disk.iterdir()) == []


def test_a_host_without_a_disk_of_its_own_is_not_struck(host):
    sharing = Target(host.mark, host.address)
    with pytest.raises(NotImplementedError, match="disk-full"):
        ready(sharing, FaultKind.DISK_FULL, PLAIN)
