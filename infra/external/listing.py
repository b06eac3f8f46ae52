"""The hosts of a cluster, as the user's command lists them: one a line, as text or as JSON."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Any, NoReturn

from experiments.documents.repetition import repeated
from experiments.errors import EnvironmentFailure
from infra.external.commands import MOST_OUTPUT, quoted

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")  # so no option of a program, and nothing that a shell reads
DOMAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
FORM = 'NAME ADDRESS [DOMAIN], or {"name": NAME, "address": IPv4, "domain": DOMAIN}'
MOST_HOSTS = 10_000


@dataclass(frozen=True)
class ListedHost:
    """A host of the cluster; `address` is what Spark calls it, `domain` is empty if it is in none."""

    name: str
    address: str
    domain: str = ""


def hosts_of(output: str) -> list[ListedHost]:
    """The hosts that a command has listed, in its order; raises `EnvironmentFailure` for what is no list of hosts."""
    lines = [line for line in output.splitlines() if line.strip()]
    if len(output) >= MOST_OUTPUT or len(lines) > MOST_HOSTS:
        raise EnvironmentFailure(f"list_hosts printed more than {MOST_HOSTS:,} hosts or a megabyte", "look at it")
    found = [_host(number, line) for number, line in enumerate(lines, 1)]
    for what, values in (("name", [host.name for host in found]), ("address", [host.address for host in found])):
        for value in repeated(values):
            raise EnvironmentFailure(f"list_hosts printed the {what} {value} twice", "have it print each host once")
    return found


def _host(number: int, line: str) -> ListedHost:
    fields = _from_json(number, line) if line.lstrip().startswith("{") else line.split()
    name, address, domain, *more = [*fields, "", "", ""]
    if any(more) or not NAME.fullmatch(name) or not _is_address(address) or (domain and not DOMAIN.fullmatch(domain)):
        _refuse(number, line)
    return ListedHost(name, address, domain)


def _from_json(number: int, line: str) -> list[str]:
    try:
        document: dict[str, Any] = json.loads(line)
    except (ValueError, RecursionError):
        _refuse(number, line)
    values = [document.pop(name, "") for name in ("name", "address", "domain")]
    if document or not all(isinstance(value, str) for value in values):
        _refuse(number, line)
    return values


def _is_address(text: str) -> bool:
    try:
        IPv4Address(text)
    except ValueError:
        return False
    return True


def _refuse(number: int, line: str) -> NoReturn:
    cause = f"list_hosts printed no host in line {number} ({quoted(line.strip())})"
    raise EnvironmentFailure(cause, f"have it print a line of the form {FORM} for each host")
