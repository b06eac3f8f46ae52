"""What looks like a secret where a spec takes settings and arguments of somebody else's program.

Specs are kept for years, shown on pages and passed on command lines: none may be in there. What counts is the name of a
setting, by the words that Spark itself hides (`spark.redaction.regex`) and a few more, and what a value carries.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

INSTEAD = (
    "no secret, since specs are kept and shown: let the program read it from a file on the hosts, "
    "or name a Hadoop credential file (docs/own-job.md)"
)
_SECRET = re.compile(
    r"secret|passw|passphrase|pwd|token(?!i[sz])|credential|(access|account|api|private|signing|encryption)[._-]?key"
    r"|jaas[._-]?config",
    re.IGNORECASE,
)
_SAYS_WHERE_OR_HOW = re.compile(
    r"(file|path|dir|class|types?|providers?|mechanism|algorithm|enabled|interval|ratio|lifetime)$", re.IGNORECASE
)
_SETTING = re.compile(r"([\w.-]+)\s*=\s*\S")
_LOGIN_IN_ADDRESS = re.compile(r"://[^/\s:@]*:[^/\s@]+@")


def is_secretive(name: str) -> bool:
    """Whether a setting of that name holds a secret, rather than where one is or how it is used."""
    return bool(_SECRET.search(name)) and not _SAYS_WHERE_OR_HOW.search(name)


def carries_secret(value: str) -> bool:
    """Whether a value holds a login in an address, or settings of its own of which one is a secret."""
    return bool(_LOGIN_IN_ADDRESS.search(value)) or any(map(is_secretive, _SETTING.findall(value)))


def secret_setting(settings: Mapping[str, str]) -> str | None:
    """The name of the first setting that is a secret or carries one."""
    return next((name for name, value in settings.items() if is_secretive(name) or carries_secret(value)), None)


def secret_argument(arguments: Sequence[str]) -> int | None:
    """The position of the first argument that carries a secret, or is one since the option before it asks for it."""
    for index, argument in enumerate(arguments):
        option = arguments[index - 1] if index else ""
        asked_for = option.startswith("-") and "=" not in option and is_secretive(option)
        if carries_secret(argument) or (asked_for and not argument.startswith("-")):
            return index
    return None
