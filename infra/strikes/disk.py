"""A full disk: files take all free blocks of the host's filesystem."""

from __future__ import annotations

import errno
import os
import time
from contextlib import suppress
from pathlib import Path

from experiments.waiting import Deadline
from infra.processes import members
from infra.strikes.strike import NOT_YET, Proof, StrikeOnHost, wait_until

FILLER, PROBE = ".aftershock-filler", ".aftershock-probe"
FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
PROOF_LIMIT_S = 5.0


class FullDisk(StrikeOnHost):
    """Fills the filesystem of a folder.

    Takes what is free at that time: room that the host makes later, by deleting files, is its own again.
    """

    def __init__(self, mark: str, disk: Path) -> None:
        """Prepare to fill the disk of the host whose processes carry `mark`."""
        self.mark, self.disk = mark, disk
        self.ports: set[int] = set()  # they stay open
        self._fired_ns = NOT_YET
        self._taken_bytes = 0

    def refresh(self) -> bool:
        return bool(members(self.mark))

    def shoot(self, due_ns: int = 0) -> None:
        """Begin to fill the disk when it is due."""
        self._fired_ns = wait_until(due_ns)
        self._fill()

    def fire(self) -> Proof:
        """Fill it until a block that is written fails."""
        if self._fired_ns == NOT_YET:
            self.shoot()
        deadline = Deadline(PROOF_LIMIT_S)
        while takes_a_block(self.disk) and not deadline.passed:
            self._fill()
        done = {"MB taken": self._taken_bytes >> 20}
        left = {"blocks taken in": int(takes_a_block(self.disk))}
        return Proof(self._fired_ns, time.time_ns(), done, left)

    def _fill(self) -> None:
        with suppress(OSError):  # there may be no room for the file itself: the proof tells
            self._taken_bytes += fill(self.disk)

    def close(self) -> None:
        """Nothing was opened ahead."""


def fill(disk: Path) -> int:
    """Take all that is free, down to the last block; returns how much that was [bytes].

    The last blocks are taken by files of their own: a file of many extents would need a further block to note one more.
    """
    taken = 0
    while more := _take(disk / f"{FILLER}-{len(fillers(disk))}"):
        taken += more
    return taken


def _take(filler: Path) -> int:
    """Make a new file as long as the filesystem lets it become."""
    descriptor = os.open(filler, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        room = os.fstatvfs(descriptor)
        length, more = 0, room.f_bfree * room.f_frsize
        while more >= room.f_frsize:
            try:
                os.posix_fallocate(descriptor, length, more)
                length += more
            except OSError as error:
                if error.errno not in FULL:
                    raise
                more = more // 2 // room.f_frsize * room.f_frsize
        return length
    finally:
        os.close(descriptor)


def fillers(disk: Path) -> list[Path]:
    """The files with which a strike fills the disk."""
    return list(disk.glob(f"{FILLER}-*"))


def takes_a_block(disk: Path) -> bool:
    """Whether a block can be written to a new file there, down to the disk."""
    probe = disk / PROBE
    try:
        descriptor = os.open(probe, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, bytes(os.fstatvfs(descriptor).f_frsize))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in FULL:
            raise
        return False
    finally:
        probe.unlink(missing_ok=True)
    return True


def make_room(disk: Path) -> Proof:
    """Remove what fills the disk, and prove it by a block that is written."""
    fired_ns, found = time.time_ns(), fillers(disk)
    for filler in found:
        filler.unlink(missing_ok=True)
    left = {"blocks refused": int(not takes_a_block(disk))}
    return Proof(fired_ns, time.time_ns(), {"fillers removed": len(found)}, left)
