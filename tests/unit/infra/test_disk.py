"""A full disk, on a small filesystem of its own; only root can mount one."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.fault_kinds import PLAIN, FaultKind
from infra.strikes.disk import fillers, takes_a_block
from infra.strikes.ready import Target, ready, undo

ADDRESS = "127.0.251.10"
MB = 2**20
FULL, ROOM = {"blocks taken in": 0}, {"blocks refused": 0}


@pytest.fixture(params=["tmpfs", "ext4"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A filesystem that is small, empty, and gone afterwards."""
    folder, image = tmp_path / "disk", tmp_path / "image"
    folder.mkdir()
    if request.param == "tmpfs":
        commands = [["mount", "-t", "tmpfs", "-o", "size=4m", "test-disk", folder]]
    else:
        image.write_bytes(bytes(8 * MB))
        commands = [["mkfs.ext4", "-q", image], ["mount", "-o", "loop", image, folder]]
    for command in commands:
        try:
            subprocess.run(command, check=True, capture_output=True, text=True)
        except (FileNotFoundError, subprocess.CalledProcessError) as error:
            reason = getattr(error, "stderr", "") or str(error)
            pytest.skip(f"only root, where there are loop devices, can mount a {request.param} ({reason.strip()})")
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.fixture
def host(token: str, disk: Path) -> Target:
    return Target(f"{token}/worker-1", ADDRESS, disk=str(disk))


def fill(host):
    return ready(host, FaultKind.DISK_FULL, PLAIN).fire()


def free_mb(disk):
    return os.statvfs(disk).f_bfree * os.statvfs(disk).f_frsize / MB


def test_a_full_disk_takes_nothing_until_it_is_healed(host, disk):
    (disk / "shuffle").write_bytes(bytes(MB))
    before_mb = free_mb(disk)
    proof = fill(host)
    assert proof.left == FULL
    assert before_mb - 1 < proof.done["MB taken"] <= before_mb
    for name in ("more", "and-more"):
        with pytest.raises(OSError, match="No space left"):
            write(disk / name, b"x")
    assert (disk / "shuffle").read_bytes() == bytes(MB), "what was there stays"
    healed = undo(host, FaultKind.DISK_FULL)
    assert healed.done["fillers removed"] >= 1
    assert healed.left == ROOM
    write(disk / "more", bytes(2 * MB))
    assert undo(host, FaultKind.DISK_FULL).done == {"fillers removed": 0}
    assert {path.name for path in disk.iterdir()} - {"lost+found", "and-more"} == {"more", "shuffle"}


def write(path: Path, content: bytes) -> None:
    """Write a file down to the disk."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def test_what_is_freed_while_it_is_being_filled_is_taken_too(host, disk):
    write(disk / "old", bytes(2 * MB))
    strike = ready(host, FaultKind.DISK_FULL, PLAIN)
    strike.shoot(0)
    (disk / "old").unlink()
    proof = strike.fire()
    assert proof.left == FULL
    assert proof.done["MB taken"] >= 3


def test_a_disk_that_others_have_filled_is_full_and_has_no_room_when_healed(host, disk):
    fill(host)
    for number, filler in enumerate(fillers(disk)):
        filler.rename(disk / f"others-{number}")
    assert fill(host).left == FULL
    assert undo(host, FaultKind.DISK_FULL).left == {"blocks refused": 1}


def test_looking_leaves_nothing_behind(disk):
    assert takes_a_block(disk)
    assert [path for path in disk.iterdir() if path.name != "lost+found"] == []


def test_a_host_without_a_disk_of_its_own_is_not_struck(host):
    sharing = Target(host.mark, host.address)
    with pytest.raises(NotImplementedError, match="disk-full"):
        ready(sharing, FaultKind.DISK_FULL, PLAIN)
