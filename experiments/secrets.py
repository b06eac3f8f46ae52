"""Recognizes values that look like secrets in the settings and arguments of an own job.

Specs are kept for years, shown on pages and passed on command lines: none may be in there. What counts is the name of a
setting, by the words that Spark itself hides (`spark.redaction.regex`) and a few more, and what a value carries.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

INSTEAD = (
    "no secret, since specs are kept and shown: let the program read it from a file on the hosts, "
    "or name a Hadoop credential file (docs/guides/own-jobs.md)"
)
_SECRET = re.compile(
    r"secret|passw|passphrase|pwd|token(?!i[sz])|credential|(access|account|api|private|signing|encryption)[._-]?key"
    r"|jaas[._-]?config|bearer|amz-signature|(^|[._-])(pass|pw|sig|sas)$|azure\.sas\.",
    re.IGNORECASE,
)
_SAYS_WHERE_OR_HOW = re.compile(
    r"(file|path|dir|class|types?|providers?|mechanism|algorithm|enabled|interval|ratio|lifetime)$"
    r"|(?<![a-z])(max|min|num|number|count)[\w.-]*tokens$",
    re.IGNORECASE,
)
_SETTING = re.compile(r"""(?<![\w.-])([\w.-]++)(?:\s*=|\\?["']\s*[:=]|\s*:(?=\s))\s*\S""")  # a=b, "a": b, a: b
_OPTION = re.compile(r"(?:^|\s)(--?[\w.-]+)\s+[^\s-]")  # --a b, in one text
_AUTHORIZATION = re.compile(
    r"""authorization["'\\]*\s*[:=]["'\\\s]*(?!true|false|["'\\\s])\S|\bbearer\s+\S""", re.IGNORECASE
)
_LOGIN_IN_ADDRESS = re.compile(r"://[^/\s:@]*:[^/\s@]+@")
LONGEST_NAME, LONGEST_TEXT = 500, 10_000  # a longer one is not searched for secrets: it counts as a secret
_OF_A_JOB = re.compile(r"\bworkload\.(conf|arguments)(\.|$)")  # fields whose values are never shown


def is_secretive(name: str) -> bool:
    """Whether a setting of that name holds a secret, rather than where one is or how it is used."""
    if len(name) > LONGEST_TEXT:
        return True
    return bool(_SECRET.search(name)) and (len(name) > LONGEST_NAME or not _SAYS_WHERE_OR_HOW.search(name))


def carries_secret(value: str) -> bool:
    """Whether a text holds a login in an address, an authorization, or settings of its own of which one is a secret."""
    if len(value) > LONGEST_TEXT or _LOGIN_IN_ADDRESS.search(value) or _AUTHORIZATION.search(value):
        return True
    return any(map(is_secretive, _SETTING.findall(value) + _OPTION.findall(value)))


def is_not_shown(field: str, value: object) -> bool:
    """Whether a message about a field may not repeat its value, since that could be a secret or hold one."""
    return bool(_OF_A_JOB.search(field)) or is_secretive(field) or _holds_secret(value)


def _holds_secret(value: object) -> bool:
    if isinstance(value, Mapping):
        return any(is_secretive(str(name)) or _holds_secret(item) for name, item in value.items())
    if isinstance(value, list | tuple):
        return secret_argument([str(item) for item in value]) is not None or any(map(_holds_secret, value))
    return not isinstance(value, int | float) and carries_secret(str(value))


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
