"""Strikes a piece of real code at every change that it makes to files: there it is killed, or the disk is full.

The code runs in a process of its own, forked from the test's. Python tells each change before it makes it (an audit
hook), so that the place of a strike is exact, and each run of the code is struck one change later than the one before.
"""

from __future__ import annotations

import errno
import os
import resource
import select
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from enum import Enum, auto
from pathlib import Path
from typing import Any

CHANGES = frozenset(
    {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate", "ctypes.dlsym"}
)
GROWING = frozenset({"open", "os.mkdir", "os.link", "os.symlink", "os.rename"})
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
TORN_AT = 20  # bytes
NEVER = 10**9
LIMIT_S = 300  # of one run of the code: what takes longer hangs
UNTOUCHED, STRUCK, REFUSED, BROKEN, FAILED = 0, 10, 11, 12, 13  # exit codes; FAILED: refused before any strike
OUTLIVED = {UNTOUCHED, STRUCK, REFUSED}


class Interruption(Enum):
    """What befalls the code at a change.

    KILL   it is killed before the change
    TEAR   it is killed amid the next write, of which 20 bytes get through
    FULL   no write gets through from then on, while files can still be made, renamed and removed
    NO_ROOM   nothing new can be made from then on
    """

    KILL = auto()
    TEAR = auto()
    FULL = auto()
    NO_ROOM = auto()


def at_every_change(
    code: Callable[[], object],
    folder: Path,
    interruption: Interruption | Callable[[], object],
    numbers: Iterable[int] = range(1, 10_000),
) -> Iterator[int]:
    """Run `code` again and again, struck at another of its changes each time, until it gets through.

    `numbers` are those of the changes, the first being 1; by default all. Yields after each strike.
    An interruption may also be a function: it is called in another process, while `code` waits.
    The caller sets up in each turn what the code needs. Fails if the code makes no change at all, so that nothing was
    struck, or ends in another way than by the strike, an `OSError` or an error for a user, or not within `LIMIT_S`.
    """
    for turn, number in enumerate(numbers):
        ended = _run(code, folder, interruption, number)
        assert turn or ended != UNTOUCHED, f"the code makes no change in {folder}: it was never struck"
        assert ended in _allowed(interruption), (
            f"it ended with {ended} when it was struck at its change {number} ({interruption})"
        )
        yield number
        if ended == UNTOUCHED:
            return


def places_of_changes(code: Callable[[], object], folder: Path) -> list[str]:
    """Where `code` makes its changes, in their order; for those who can't afford to strike at every one."""
    places: list[str] = []
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        sys.addaudithook(lambda event, found: places.append(repr(found[0])) if _counts(event, found, folder) else None)
        with suppress(Exception):
            code()
        with os.fdopen(writer, "w") as told:
            told.write("\n".join(places))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as heard:
        found = heard.read().split("\n")
    os.waitpid(child, 0)
    return found


def _allowed(interruption: Interruption | Callable[[], object]) -> set[int]:
    """How code may end; by the signal of the strike only, since any other one tells of a crash."""
    by_signal = {Interruption.KILL: {-signal.SIGKILL}, Interruption.TEAR: {-signal.SIGXFSZ}}
    return OUTLIVED | (by_signal.get(interruption, set()) if isinstance(interruption, Interruption) else set())


def _run(
    code: Callable[[], object], folder: Path, interruption: Interruption | Callable[[], object], number: int
) -> int:
    """Returns one of the exit codes, or a signal's as a negative number."""
    child = os.fork()
    if child == 0:
        os._exit(_struck(code, folder, interruption, number))
    handle = os.pidfd_open(child)
    hangs = not select.select([handle], [], [], LIMIT_S)[0]
    os.close(handle)
    if hangs:
        os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert not hangs, (
        f"the code did not end within {LIMIT_S} s when it was struck at its change {number} ({interruption})"
    )
    return status


def _struck(
    code: Callable[[], object], folder: Path, interruption: Interruption | Callable[[], object], number: int
) -> int:
    from experiments.errors import AftershockError

    changes = 0

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal changes
        if _counts(event, arguments, folder):
            changes += 1
            if changes == number:
                _strike(interruption)
        if (
            changes >= number
            and interruption is Interruption.NO_ROOM
            and event in GROWING
            and _is_new(event, arguments, folder)
        ):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    sys.addaudithook(hook)
    try:
        code()
    except (OSError, AftershockError):
        if changes >= number:
            return REFUSED
        traceback.print_exc()
        return FAILED
    except BaseException:
        traceback.print_exc()
        return BROKEN
    return STRUCK if changes >= number else UNTOUCHED


def _strike(interruption: Interruption | Callable[[], object]) -> None:
    if not isinstance(interruption, Interruption):
        assert _run(interruption, Path("/"), Interruption.KILL, NEVER) in OUTLIVED | {FAILED}
    elif interruption is Interruption.KILL:
        os.kill(os.getpid(), signal.SIGKILL)
    elif interruption is Interruption.TEAR:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (TORN_AT, TORN_AT))
    elif interruption is Interruption.FULL:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))


def _counts(event: str, arguments: tuple[Any, ...], folder: Path) -> bool:
    return (event in CHANGES or event == "open") and _is_change(event, arguments, folder)


def _is_change(event: str, arguments: tuple[Any, ...], folder: Path) -> bool:
    if event == "ctypes.dlsym":
        return arguments[1] == "renameat2"
    return _is_within(arguments[0], folder) and (event != "open" or _writes(*arguments[1:3]))


def _is_new(event: str, arguments: tuple[Any, ...], folder: Path) -> bool:
    """Whether this would take room: not the renaming of what is there, nor the opening of it."""
    if event == "os.rename" or not _is_change(event, arguments, folder):
        return False
    return event != "open" or not Path(arguments[0]).exists()


def _is_within(path: Any, folder: Path) -> bool:
    """A name without a folder is relative to one that is open, as when a tree is removed."""
    if not isinstance(path, str | bytes | os.PathLike):
        return False
    text = os.fsdecode(path)
    return not text.startswith("/") or Path(text).is_relative_to(folder)


def _writes(mode: str | None, flags: int) -> bool:
    return bool(set(mode or "") & set("wax+")) or (mode is None and bool(flags & WRITING))
