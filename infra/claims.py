"""Whose a machine is: a token file on it, so that no two runs share it and nothing is struck on one that is not ours.

A machine is one network (its namespace): there ports are taken, and packets dropped. The file is in /tmp, which goes
with a restart of the machine, as everything does that a run had there. Only the standard library is needed here.
"""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

FOLDER = Path("/tmp")
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
    """Who has this machine; None if nobody has."""
    try:
        document = json.loads(file().read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except PermissionError:
        return Claim("", OF_ANOTHER_USER, "")
    return Claim(**{**document, "ports": tuple(document["ports"])})


def take(claim: Claim) -> Claim | None:
    """Take this machine, if nobody has it; returns who has it instead. The file appears whole, and once."""
    descriptor, scratch = tempfile.mkstemp(dir=FOLDER, prefix=".aftershock-claim-")  # of mode 600
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as written:
            json.dump(asdict(claim), written)
        while True:
            try:
                os.link(scratch, file())
            except FileExistsError:
                if found := owner():
                    return None if found.token == claim.token else found
            else:
                return None
    finally:
        os.unlink(scratch)


def give_up(token: str) -> None:
    """Remove the claim of that token."""
    found = owner()
    if found and found.token == token:
        with suppress(FileNotFoundError):
            file().unlink()
