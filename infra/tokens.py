"""The token of a cluster, which only its processes know, and its label, which is public.

Things that other users of the machine can list (namespaces, mounts, interfaces, containers) are named by the label. A
user who knows only the label cannot mark a process with the token. This module needs only the standard library.
"""

from __future__ import annotations

import hashlib
import re
import secrets

PATTERN = r"[sndmx][0-9]{1,3}-[0-9a-f]{16}"  # the driver's letter, the number of its subnet, 64 random bits
TOKEN = re.compile(PATTERN)  # a label looks the same
LABEL_DIGITS = 16
NO_SUBNET = 0  # in the token of a cluster that takes none
LETTERS = {"local": "s", "netns": "n", "docker": "d", "ssh": "m", "external": "x"}  # of the drivers' tokens


def new(driver: str, subnet: int = NO_SUBNET) -> str:
    """A random token for a cluster of that driver, with the number of the subnet that the cluster takes."""
    return f"{LETTERS[driver]}{subnet}-{secrets.token_hex(8)}"


def label(token: str) -> str:
    """What everybody may call the cluster of a token: the letter and the number of the token, and a digest of it."""
    return f"{token.partition('-')[0]}-{hashlib.sha256(token.encode()).hexdigest()[:LABEL_DIGITS]}"


def label_of(mark: str) -> str | None:
    """The label of the cluster whose mark (TOKEN/HOST/SERVICE) a process carries; None for what no driver made."""
    token = mark.partition("/")[0]
    return label(token) if TOKEN.fullmatch(token) else None


def subnet_of(label: str) -> int:
    """The number of the subnet that the cluster of that label has taken."""
    return int(label[1:].partition("-")[0])
