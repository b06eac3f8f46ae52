"""The inventory of machines: `infra/terraform/` prints it, driver `ssh` uses it (docs/reference/inventory.md).

Nothing of it is trusted on sight: every machine comes with the host key that it must show. Keys are checked here, and
used by `infra.remote.ssh`. Import this only when an inventory is named: the import of `cryptography` takes time.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
    load_ssh_private_key,
    load_ssh_public_key,
)
from pydantic import AfterValidator, Field, field_validator, model_validator

from experiments.documents import kinds
from experiments.documents.field_types import DNS_NAME, SMALL_DNS_LABEL, Spelling
from experiments.documents.kinds import DocumentKind
from experiments.documents.parsing import Misfit, Spec, parse, read_json
from experiments.documents.plain_files import LARGEST_BYTES, RefusedFile, read_whole
from experiments.errors import BadInput, in_file
from experiments.hosts import Role

FIELD = "cluster.inventory"  # of an experiment, which names the file
NAME = Spelling(
    rf"^{SMALL_DNS_LABEL}$",
    "1 to 63 small letters, digits and hyphens, a hyphen neither first nor last",
)
DOMAIN = Spelling(
    r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$",
    "1 to 63 letters, digits, dots, underscores and hyphens, a letter or digit first",
)
USER = Spelling(
    r"^[A-Za-z_][A-Za-z0-9._-]{0,31}$",
    "1 to 32 letters, digits, dots, underscores and hyphens, a letter or underscore first",
)
HOST_NAME = re.compile(rf"{DNS_NAME}\.?")
HOST_KEY_FORM = "the public key that the machine must show: type and base64, as in /etc/ssh/ssh_host_ed25519_key.pub"
KEY_FILE_FORM = "a private SSH key without a passphrase"
# What the SSH client (`infra.remote.ssh`) can use.
KEY_TYPES = {"ssh-ed25519", "ssh-rsa", *(f"ecdsa-sha2-nistp{bits}" for bits in (256, 384, 521))}
KEY_FILE_HEAD = re.compile(rb"^-----BEGIN (OPENSSH|RSA|EC) PRIVATE KEY-----\s*$", re.MULTILINE)


def _pinned(text: str) -> str:
    """The public key in a line as OpenSSH writes it, without the comment."""
    try:
        kind, encoded = text.split()[:2]
        key = load_ssh_public_key(f"{kind} {encoded}".encode())
    except (ValueError, UnsupportedAlgorithm):
        raise ValueError(HOST_KEY_FORM) from None
    if kind not in KEY_TYPES:
        raise ValueError(HOST_KEY_FORM)
    return key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


def _reachable(text: str) -> str:
    """An address in its one usual spelling, so that two spellings of it are seen to be the same."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        if HOST_NAME.fullmatch(text) and not text.replace(".", "").isdigit():
            return text.lower().removesuffix(".")
        raise ValueError("an IP address or a DNS name") from None
    if address.is_unspecified or address.is_multicast:
        raise ValueError("an address of one machine")
    return str(address)


Address = Annotated[str, AfterValidator(_reachable)]
Domain = Annotated[str, DOMAIN]


class InventoryHost(Spec):
    """One machine: how to reach it, its host key, its cores and memory, and its failure domains.

    `address` and `port` are for SSH from the controller; `internal_address` is where the other hosts reach it.
    `key_file` is the private key of `user`; `memory_mb` is the machine's.
    """

    name: Annotated[str, NAME]
    role: Role = Role.WORKER
    address: Address
    internal_address: Address | None = None
    port: Annotated[int, Field(ge=1, le=65_535)] = 22
    user: Annotated[str, USER]
    key_file: Path
    host_key: Annotated[str, Field(validate_default=True), AfterValidator(_pinned)] = ""
    domains: tuple[Domain, ...] = ()
    cores: Annotated[int, Field(ge=1, le=1024)]
    memory_mb: Annotated[int, Field(ge=512, le=67_108_864)]

    @field_validator("domains")
    @classmethod
    def _each_once(cls, domains: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(domains)) < len(domains):
            raise ValueError("every domain once")
        return domains

    @property
    def cluster_address(self) -> str:
        """Where the other hosts reach it."""
        return self.internal_address or self.address


class Inventory(Spec):
    """The machines of one cluster: exactly one gateway, at least one worker, no name and no address twice."""

    hosts: tuple[InventoryHost, ...]

    @property
    def gateway(self) -> InventoryHost:
        """The only machine of that role."""
        return next(host for host in self.hosts if host.role is Role.GATEWAY)

    @property
    def workers(self) -> list[InventoryHost]:
        """All workers in the order of the file, by which a run names them `worker-1` and so on."""
        return [host for host in self.hosts if host.role is Role.WORKER]

    def first_workers(self, count: int) -> list[InventoryHost]:
        """The workers of a cluster with `count` of them, `worker-1` first; raises `BadInput` if there are too few."""
        if count > len(self.workers):
            raise BadInput("cluster.workers", count, f"at most {len(self.workers)}: the inventory has no more workers")
        return self.workers[:count]

    @model_validator(mode="after")
    def _hosts_go_together(self) -> Inventory:
        _all_different("name", [host.name for host in self.hosts])
        _all_different("address", [host.address for host in self.hosts])
        _all_different("internal_address", [host.cluster_address for host in self.hosts])
        roles = Counter(host.role for host in self.hosts)
        if roles[Role.GATEWAY] != 1:
            raise Misfit("hosts", f"{roles[Role.GATEWAY]} hosts with role gateway", "exactly one gateway")
        if not roles[Role.WORKER]:
            raise Misfit("hosts", "no host with role worker", "at least one worker beside the gateway")
        return self


def _all_different(field: str, values: Sequence[str]) -> None:
    for index, value in enumerate(values):
        if value in values[:index]:
            allowed = f"a value of its own; hosts.{values.index(value)} has it too"
            raise Misfit(f"hosts.{index}.{field}", value, allowed)


def load(path: Path) -> Inventory:
    """Read an inventory; relative key files are looked for beside it and come back absolute.

    Raises `BadInput` naming file, field, value and what is allowed, also for a private key that cannot be used.
    """
    document = read_json(path, FIELD)
    kinds.require(DocumentKind.INVENTORY, document, FIELD, str(path))
    with in_file(str(path)):
        inventory = parse(Inventory, document, "hosts")
        hosts = [_with_key(host, path.parent, f"hosts.{index}.key_file") for index, host in enumerate(inventory.hosts)]
    return inventory.model_copy(update={"hosts": tuple(hosts)})


def _with_key(host: InventoryHost, folder: Path, field: str) -> InventoryHost:
    # `Path.expanduser` would raise for the home of an unknown user; with this one, the file is just missing.
    file = (folder / os.path.expanduser(host.key_file)).absolute()
    try:
        _require_usable(read_whole(file, LARGEST_BYTES, links=True))
    except RefusedFile as refusal:
        raise BadInput(field, str(host.key_file), f"{KEY_FILE_FORM}; this is {refusal.what}") from None
    except OSError as error:
        raise BadInput(field, str(host.key_file), f"{KEY_FILE_FORM} ({error.strerror})") from None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise BadInput(field, str(host.key_file), KEY_FILE_FORM) from None
    return host.model_copy(update={"key_file": file})


def _require_usable(text: bytes) -> None:
    """Raise `ValueError`, or as `cryptography` does, for a private key with which the SSH client cannot log in."""
    head = KEY_FILE_HEAD.search(text)
    if not head:
        raise ValueError(KEY_FILE_FORM)
    load = load_ssh_private_key if head[1] == b"OPENSSH" else load_pem_private_key
    key = load(text, password=None)
    key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)  # not every curve is one of SSH
