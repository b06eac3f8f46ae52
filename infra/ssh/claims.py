"""Claims a machine by a token file on it, so that no two runs share it and faults strike only claimed machines.

A machine is one network (its namespace): there ports are taken, and packets dropped. The file is in /tmp, which goes
with a restart of the machine, as everything does that a run had there. So any user may put something under its name:
it counts only if it is a regular file of this user.
"""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from experiments.documents.plain_files import read_plain
from experiments.errors import EnvironmentFailure

FOLDER = Path("/tmp")
ATTEMPTS = 100  # to take a machine while others give it up
OF_ANOTHER_USER = "of another user"


@dataclass(frozen=True)
class Claim:
    """Who has a machine, and the TCP ports on which it listened already (at the address that the run uses)."""

    token: str
    run_id: str
    root: str
    ports: tuple[int, ...] = ()


def file() -> Path:
    """Where this machine's claim is, if it has one."""
    return FOLDER / f"aftershock-machine-{os.stat('/proc/self/ns/net').st_ino}"


def owner() -> Claim | None:
    """The claim of the run that has this machine; None if none has it.

    Raises `EnvironmentFailure` if what is there is no claim.
    """
    try:
        text, uid = read_plain(file())
    except FileNotFoundError:
        return None
    except PermissionError:
        return Claim("", OF_ANOTHER_USER, "")
    except ValueError as error:
        raise _damaged(error) from None
    return _claim(text) if uid == os.geteuid() else Claim("", OF_ANOTHER_USER, "")


def _claim(text: str) -> Claim:
    try:
        fields: dict[str, Any] = json.loads(text)
        claim = Claim(**fields)
    except (ValueError, TypeError, RecursionError) as error:
        raise _damaged(error) from None
    if not all(isinstance(fields[name], str) for name in ("token", "run_id", "root")):
        raise _damaged("token, run_id and root are texts")
    ports = fields.get("ports")
    if not isinstance(ports, list) or not all(type(port) is int for port in ports):
        raise _damaged("ports are whole numbers")
    return replace(claim, ports=tuple(ports))


def _damaged(why: object) -> EnvironmentFailure:
    return EnvironmentFailure(f"{file()} is damaged ({why})", "if no run has this machine, remove it")


def take(claim: Claim) -> Claim | None:
    """Take this machine, if no run has it; otherwise returns the claim of the run that has it.

    The file is created in one atomic step. Raises `EnvironmentFailure` if something that is no claim has its name.
    """
    descriptor, scratch = tempfile.mkstemp(dir=FOLDER, prefix=".aftershock-claim-")  # of mode 600
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as written:
            json.dump(asdict(claim), written)
        for _ in range(ATTEMPTS):
            try:
                os.link(scratch, file())
                return None
            except FileExistsError:
                if found := owner():
                    return None if found.token == claim.token else found
        raise EnvironmentFailure(f"{file()} comes and goes", "look who makes it")
    finally:
        os.unlink(scratch)


def give_up(token: str) -> None:
    """Remove the claim of that token."""
    found = owner()
    if found and found.token == token:
        with suppress(FileNotFoundError):
            file().unlink()
