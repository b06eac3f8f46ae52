"""Files under names that others may have taken: real FIFOs, links, sockets, folders, and another user's files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from experiments.documents.plain_files import (
    LARGEST_BYTES,
    RefusedFile,
    TooLarge,
    open_below,
    read_end,
    read_plain,
    read_whole,
)
from tests.unit.strange_files import STRANGE, put

NOBODY = 65534


@pytest.mark.parametrize("kind", STRANGE)
def test_what_is_no_file_is_not_read(kind: str, tmp_path: Path) -> None:
    put(kind, tmp_path / "file")
    for read in (read_plain, lambda path: read_whole(path, 10), lambda path: read_whole(path, None)):
        with pytest.raises(RefusedFile, match=f"is {kind}, where a regular file belongs; remove it"):
            read(tmp_path / "file")


def test_a_link_is_followed_to_a_file_only_for_who_asks(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "device").symlink_to("/dev/zero")
    assert read_whole(tmp_path / "link", 7, links=True) == b"content"
    with pytest.raises(RefusedFile, match="is a link"):
        read_whole(tmp_path / "link", 7)
    with pytest.raises(RefusedFile, match="is a device"):
        read_whole(tmp_path / "device", 7, links=True)


def test_a_pipe_without_a_writer_is_empty_for_who_takes_pipes(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert read_whole(tmp_path / "pipe", 7, pipes=True) == b""


def test_a_file_as_large_as_its_reader_takes_is_read_and_a_larger_one_is_not(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    assert read_whole(tmp_path / "file", 7) == b"content"
    with pytest.raises(TooLarge, match="larger than 6 bytes"):
        read_whole(tmp_path / "file", 6)


def test_a_pipe_is_not_read_beyond_the_limit(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    end = os.open(tmp_path / "pipe", os.O_RDWR)  # it also writes, so that the pipe never ends
    try:
        os.write(end, b"content")
        with pytest.raises(TooLarge):
            read_whole(tmp_path / "pipe", 6, pipes=True)
    finally:
        os.close(end)


def test_a_file_that_may_not_be_read_is_told_by_its_name(tmp_path: Path) -> None:
    if os.geteuid():
        pytest.skip("only root can become another user")
    (tmp_path / "file").touch(0o600)
    for folder in (tmp_path, *tmp_path.parents):
        if str(folder).startswith("/tmp/"):
            folder.chmod(folder.stat().st_mode | 0o011)
    os.seteuid(NOBODY)
    try:
        with pytest.raises(PermissionError, match=f"{tmp_path}/file"):
            read_whole(tmp_path / "file", 7)
    finally:
        os.seteuid(0)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate(LARGEST_BYTES + 1)
    with pytest.raises(RefusedFile, match="larger than"):
        read_plain(tmp_path / "large")


def test_of_a_log_that_a_host_wrote_its_end_is_read_and_nothing_that_it_leads_to(tmp_path: Path) -> None:
    logs, secret, uid = tmp_path / "logs", tmp_path / "secret", os.geteuid()
    logs.mkdir()
    secret.write_text("root:x:0:0")
    (logs / "long.log").write_bytes(b"first" + b"x" * LARGEST_BYTES)
    assert read_end(tmp_path, "logs/long.log", uid) == b"x" * LARGEST_BYTES
    (logs / "short.log").write_bytes(b"first, second")
    assert read_end(tmp_path, "logs/short.log", uid, since=5) == b", second"
    assert read_end(tmp_path, "logs/short.log", uid, since=100) == b""
    (logs / "hard.log").hardlink_to(secret)
    with pytest.raises(RefusedFile, match="a file with 2 names"):
        read_end(tmp_path, "logs/hard.log", uid)
    with pytest.raises(RefusedFile, match=f"a file of user {uid}"):
        read_end(tmp_path, "logs/short.log", uid + 1)
    with open(open_below(tmp_path, "logs/hard.log", uid=None, more_names=True), "rb") as file:
        assert file.read() == b"root:x:0:0"
    (tmp_path / "linked").symlink_to(logs)
    with pytest.raises(OSError, match="linked"):
        read_end(tmp_path, "linked/short.log", uid)


@pytest.mark.parametrize("kind", STRANGE)
def test_a_log_that_is_no_file_neither_holds_its_reader_nor_is_read(kind: str, tmp_path: Path) -> None:
    put(kind, tmp_path / "host.log")
    with pytest.raises(RefusedFile, match=kind):
        read_end(tmp_path, "host.log", os.geteuid())
