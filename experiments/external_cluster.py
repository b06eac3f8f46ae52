"""The description of an existing cluster, for driver `external` (docs/reference/external-cluster.md).

It names the commands with which the cluster's user lists its hosts, strikes one, and proves that. They are in a file,
never in an experiment, so that a user who can only fill in a form cannot choose what is executed.
"""

from __future__ import annotations

import os
from ipaddress import IPv4Address
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, field_validator

from experiments.documents import kinds
from experiments.documents.field_types import DNS_NAME, Spelling
from experiments.documents.kinds import DocumentKind
from experiments.documents.parsing import Misfit, Spec, parse, read_json, user_path
from experiments.errors import in_file
from experiments.fault_kinds import FaultKind, kinds_of
from experiments.hosts import ClusterDriver
from experiments.secrets import secret_argument

FIELD = "cluster.inventory"  # of an experiment, which names the file
HOST = "{host}"  # in an argument of a command: stands for the name of the host, as `list_hosts` tells it
MOST_ARGUMENTS = 64
PORT = r":([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
MASTER = Spelling(
    rf"^(spark://{DNS_NAME}{PORT}|k8s://(https?://)?[A-Za-z0-9.\[\]:-]+(/[A-Za-z0-9._/-]*)?|yarn)$",
    "spark://HOST:PORT, k8s://https://HOST:PORT, or yarn; HOST is an IPv4 address or a DNS name, PORT at most 65535",
)
BROKERS = Spelling(
    rf"^{DNS_NAME}{PORT}(,{DNS_NAME}{PORT})*$",
    "HOST:PORT, of several with commas between them; HOST is an IPv4 address or a DNS name, PORT at most 65535",
)
FOLDER = Spelling(
    r"^(/[^/\s]+(/[^/\s]+)*|[a-z][a-z0-9+.-]*://[^/\s]+(/[^/\s]+)*)$",
    "the absolute path of a folder that this machine and every host see, or a URL such as s3a://BUCKET/FOLDER",
)


def _address(text: str) -> str:
    try:
        address = IPv4Address(text)
    except ValueError:
        raise ValueError("an IPv4 address") from None
    if address.is_unspecified or address.is_multicast:
        raise ValueError("an IPv4 address of this machine")
    return text


def _without_secrets(command: tuple[str, ...]) -> tuple[str, ...]:
    if not command[0]:
        raise Misfit("0", command[0], "a program: its name, or its path")
    if (index := secret_argument(command)) is not None:
        allowed = "no secret, since every user of this machine can read it: let the program read it from a file"
        raise Misfit(str(index), command[index], allowed)
    return command


def _of_a_host(command: tuple[str, ...]) -> tuple[str, ...]:
    if not any(HOST in argument for argument in command[1:]):
        raise ValueError(f"a command of which an argument has {HOST} where the name of the host belongs")
    return command


Command = Annotated[
    tuple[str, ...], Field(min_length=1, max_length=MOST_ARGUMENTS), AfterValidator(_without_secrets)
]  # a program and its arguments, as they are: no shell reads them
HostCommand = Annotated[Command, AfterValidator(_of_a_host)]


class FaultCommands(Spec):
    """How a kind of fault is injected and undone, by commands that get the name of a host.

    A proof exits with 0 once it holds, and prints since when.
    """

    strike: HostCommand
    prove: HostCommand
    heal: HostCommand
    prove_healed: HostCommand


class ExternalCluster(Spec):
    """An existing cluster.

    address   this machine's IPv4 address, at which executors reach the query driver
    limit_s   how long a command may take, and how long a proof may be awaited [s]
    """

    master: Annotated[str, MASTER]
    address: Annotated[str, AfterValidator(_address)]
    brokers: Annotated[str, BROKERS]
    broker_login: Path | None = None
    spark_conf: Path | None = None
    checkpoints: Annotated[str, FOLDER]
    list_hosts: Command
    faults: Annotated[dict[FaultKind, FaultCommands], Field(min_length=1)]
    limit_s: Annotated[float, Field(gt=0, le=900)] = 60.0

    @field_validator("faults")
    @classmethod
    def _only_faults_of_hosts(cls, faults: dict[FaultKind, Any]) -> dict[FaultKind, Any]:
        known = [kind for kind in kinds_of(ClusterDriver.EXTERNAL) if not kind.service]
        for kind in faults:
            if kind not in known:
                raise Misfit(kind.value, "commands", f"commands for {', '.join(known)}")
        return faults

    @property
    def commands(self) -> dict[str, tuple[str, ...]]:
        """Every command by its path in the description."""
        found = {"list_hosts": self.list_hosts}
        for kind, commands in self.faults.items():
            found |= {f"faults.{kind.value}.{name}": getattr(commands, name) for name in FaultCommands.model_fields}
        return found


def load(path: Path) -> ExternalCluster:
    """Read a description. Programs and files with relative paths are looked for beside it.

    Raises `BadInput` naming file, field, value and what is allowed. Whether programs and files exist is not looked at.
    """
    document = read_json(path, FIELD)
    kinds.require(DocumentKind.EXTERNAL_CLUSTER, document, FIELD, str(path))
    with in_file(str(path)):
        found = parse(ExternalCluster, document, FIELD)
    beside = path.absolute().parent
    named = {"broker_login": found.broker_login, "spark_conf": found.spark_conf}
    files = {name: file and beside / user_path(str(file)) for name, file in named.items()}
    faults = {
        kind: commands.model_copy(update={name: _placed(command, beside) for name, command in commands})
        for kind, commands in found.faults.items()
    }
    return found.model_copy(update={**files, "list_hosts": _placed(found.list_hosts, beside), "faults": faults})


def _placed(command: tuple[str, ...], beside: Path) -> tuple[str, ...]:
    """A command whose program is a path, if it was written as one; a mere name is looked for in PATH."""
    program, *arguments = command
    return (str(beside / user_path(program)) if os.sep in program else program, *arguments)
