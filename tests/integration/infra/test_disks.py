"""Disks of their own for hosts: real mounts, so root is needed."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.errors import EnvironmentFailure
from infra import disks, leftovers, tokens
from infra.services import startup

SIZE_MB = 64


@pytest.fixture
def token() -> Iterator[str]:
    if os.geteuid():
        pytest.skip("only root can mount")
    made = f"n509-{secrets.token_hex(8)}"
    with startup.one_at_a_time():  # it has no handle, and `aftershock clean` would take its disks away
        yield made
        disks.remove(tokens.label(made))


def test_a_disk_has_its_size_and_nothing_on_it_and_is_found_by_its_token(token: str, tmp_path: Path) -> None:
    folder = tmp_path / "a root" / "hosts" / "worker-1" / "lives"  # a mount's line writes a blank as an octal number
    disks.create(token, "worker-1", folder, SIZE_MB)
    assert os.path.ismount(folder)
    assert list(folder.iterdir()) == []
    size = os.statvfs(folder)
    assert size.f_blocks * size.f_frsize == SIZE_MB * 2**20
    assert disks.of(tokens.label(token)) == [folder]
    (traces,) = [traces for traces in leftovers.find() if traces.label == tokens.label(token)]
    assert (traces.mounts, traces.processes, traces.namespaces, traces.root) == (1, 0, 0, str(tmp_path / "a root"))
    leftovers.remove(tokens.label(token))
    assert disks.of(tokens.label(token)) == []
    assert not os.path.ismount(folder)
    leftovers.remove(tokens.label(token))


def test_a_full_disk_is_as_new_when_it_was_emptied(token: str, tmp_path: Path) -> None:
    folder = tmp_path / "lives"
    disks.create(token, "worker-1", folder, SIZE_MB)
    (folder / "1" / "app").mkdir(parents=True)
    (folder / "link").symlink_to(tmp_path)
    with pytest.raises(OSError, match="No space left") as full, (folder / "1" / "app" / "filler").open("wb") as filler:
        os.posix_fallocate(filler.fileno(), 0, (SIZE_MB + 1) * 2**20)
    assert full.value.errno == errno.ENOSPC
    disks.empty(folder)
    assert list(folder.iterdir()) == []
    assert list(tmp_path.iterdir()) == [folder], "what a link leads to is not on the disk"
    (folder / "new").write_bytes(bytes(2**20))


def test_a_disk_in_use_is_not_said_to_be_gone(token: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disks, "REMOVAL_LIMIT_S", 0.2)
    folder = tmp_path / "lives"
    disks.create(token, "worker-1", folder, SIZE_MB)
    with (folder / "log").open("w"), pytest.raises(EnvironmentFailure, match=r"cannot be unmounted .*busy"):
        disks.remove(tokens.label(token))
    disks.remove(tokens.label(token))
