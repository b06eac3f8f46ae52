"""The list of mounts is read, whatever the folders are called on which other users mount something."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra import disks, mounted

LABEL = "n7-0123456789abcdef"


def test_no_name_of_a_folder_of_another_user_hides_a_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = f"aftershock-{LABEL}-worker-1 /root/a\\040run/hosts/worker-1/lives tmpfs rw,nosuid 0 0\n"
    strange = (b"\xff\xfe", "a\u00a0b".encode(), b"a\x0bb", b"a\x0cb", "a\u2028b".encode(), b"a\rb")
    lines = (b"sshfs /home/other/" + name + b" fuse.sshfs rw 0 0\n" for name in strange)
    (tmp_path / "mounts").write_bytes(b"".join(lines) + own.encode())
    monkeypatch.setattr(mounted, "MOUNTS", tmp_path / "mounts")
    assert disks.of(LABEL) == [Path("/root/a run/hosts/worker-1/lives")]
    assert {each.kind for each in mounted.mounted()[:-1]} == {"fuse.sshfs"}


def test_the_mounts_of_this_machine_are_listed() -> None:
    assert Path("/") in {each.folder for each in mounted.mounted()}
