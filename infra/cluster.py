"""The handle of a cluster and the interface that every driver implements."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, Protocol

from experiments.errors import EnvironmentFailure
from experiments.fault_kinds import PLAIN, FaultKind, FaultOptions
from experiments.hosts import ClusterDriver, Role
from experiments.plain_files import read_plain
from experiments.spec import ClusterSpec
from infra import credentials, tokens
from infra.broker import Broker
from infra.clocks import ClockOffset
from infra.processes import Usage
from infra.strikes.strike import Proof, Strike

HANDLE_FILE = "handle.json"
HANDLE_FIELDS = dict.fromkeys(("run_id", "driver", "token", "root", "broker", "master"), str) | {"hosts": dict}
HOST_FIELDS = dict.fromkeys(("name", "address", "role"), str) | {"cores": int, "memory_mb": int}
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,127}")  # of a run, and of a host
STORE, JOB = "store", "job"  # folders of a cluster's root: checkpoints, an own job


@dataclass(frozen=True)
class Host:
    """A host of a cluster as it was planned; `address` is IPv4."""

    name: str
    address: str
    role: Role
    cores: int
    memory_mb: int


@dataclass(frozen=True)
class Handle:
    """All that is needed to use, inspect and destroy a cluster; passes between tasks as JSON."""

    run_id: str
    driver: str
    token: str
    root: str
    hosts: Mapping[str, Host] = field(default_factory=dict)
    broker: str = ""
    master: str = ""

    @property
    def workers(self) -> list[Host]:
        """The hosts that run Spark workers; faults strike these."""
        return [host for host in self.hosts.values() if host.role is Role.WORKER]

    @property
    def gateway(self) -> Host:
        """The host of broker, Spark master, query, generator, sampler and injector."""
        return next(host for host in self.hosts.values() if host.role is Role.GATEWAY)

    @property
    def kafka(self) -> Broker:
        """The broker, with the credentials of its clients."""
        return Broker(self.broker, str(credentials.kafka_file(self.root)))

    def directory(self, host: str) -> Path:
        """The folder of a host in the cluster's root."""
        return Path(self.root) / "hosts" / host

    @property
    def orders(self) -> Path:
        """What the controller tells the gateway's services, who only read it; what they tell goes elsewhere."""
        return self.directory(self.gateway.name) / "orders"

    def disk(self, host: str) -> Path:
        """The folder of a worker's work files: where it has a disk of its own, that is mounted there."""
        return self.directory(host) / "lives"

    @property
    def label(self) -> str:
        """What everybody may call the cluster."""
        return tokens.label(self.token)

    def save(self) -> None:
        """Write the handle to `handle.json` in the cluster's root, before anything is started there.

        Only its owner may read it: who knows the token can mark a process with it.
        """
        scratch = Path(self.root) / f".{HANDLE_FILE}"
        credentials.write_private(scratch, json.dumps(self.to_json(), indent=1))
        scratch.replace(Path(self.root) / HANDLE_FILE)

    @classmethod
    def load(cls, root: Path) -> Handle:
        """The handle of the cluster at a root; raises `EnvironmentFailure` for a file that is none."""
        path = root / HANDLE_FILE
        try:
            handle = cls.from_json(json.loads(read_plain(path)[0]))
            _require(Path(handle.root) == root, "root")  # a copy must not end the cluster of another run
            return handle
        except (ValueError, RecursionError) as error:
            remedy = "`aftershock clean` with the run's id ends what is left of it"
            raise EnvironmentFailure(f"{path} is damaged ({error})", remedy) from None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, document: Any) -> Handle:
        """Raises `ValueError` for what is no handle; the value of the token is not told."""
        fields = _typed(document, HANDLE_FIELDS)
        _require(bool(tokens.TOKEN.fullmatch(fields["token"])), "token")
        _require(Path(fields["root"]).is_absolute(), "root")
        _require(bool(NAME.fullmatch(fields["run_id"])), "run_id")
        _require(fields["driver"] in set(ClusterDriver), "driver")
        _require(fields["token"].startswith(tokens.LETTERS[fields["driver"]]), "token")
        hosts = {name: _host(name, each) for name, each in fields["hosts"].items()}
        _require([host.role for host in hosts.values()].count(Role.GATEWAY) == 1, "hosts")
        return cls(**{**fields, "hosts": hosts})


def _host(name: str, document: Any) -> Host:
    fields = _typed(document, HOST_FIELDS)
    _require(fields["name"] == name and bool(NAME.fullmatch(name)), "name")
    IPv4Address(fields["address"])
    return Host(**{**fields, "role": Role(fields["role"])})


def _typed(document: Any, types: Mapping[str, type]) -> dict[str, Any]:
    """The document, if it has exactly these fields, each of its type."""
    if not isinstance(document, dict) or document.keys() != types.keys():
        raise ValueError(f"not the fields {', '.join(types)}")
    for name, kind in types.items():
        _require(type(document[name]) is kind, name)
    return document


def _require(fits: bool, field_name: str) -> None:
    if not fits:
        raise ValueError(f"{field_name} is not as it should be")


@dataclass(frozen=True)
class HostState:
    """What `inspect` found of a host: whether it is up, and how many processes it has."""

    name: str
    address: str
    up: bool
    processes: int


class RunsServices(Protocol):
    """The part of a driver that starts and ends services on hosts that there are."""

    def spawn(self, handle: Handle, host: str, service: str, command: Sequence[str]) -> int:
        """Start a service on a host, its output in the host's `logs/<service>.log`; returns its process id."""
        ...

    def stop(self, handle: Handle, host: str, service: str, limit_s: float) -> None:
        """Ask a service to end (SIGTERM), and kill it and its children if it has not within `limit_s`."""
        ...

    def running(self, handle: Handle, host: str) -> set[str]:
        """Names of the services of the host that have a live process."""
        ...


class Driver(RunsServices, Protocol):
    """Creates, inspects and destroys hosts. Every method is idempotent."""

    def check(self, spec: ClusterSpec) -> None:
        """Raise `BadInput` or `EnvironmentFailure` unless there is what the driver needs; touches nothing."""
        ...

    def refusal(self, spec: ClusterSpec, kind: FaultKind, options: FaultOptions) -> str | None:
        """Why this driver cannot inject such a fault into such a cluster; None if it can."""
        ...

    def provision(self, spec: ClusterSpec, run_id: str, root: Path) -> Handle: ...

    def inspect(self, handle: Handle) -> list[HostState]: ...

    def usage(self, handle: Handle, host: str) -> Usage:
        """CPU time and memory of the processes of a host; raises `EnvironmentFailure` for one that does not answer."""
        ...

    def clocks(self, handle: Handle) -> dict[str, ClockOffset]:
        """The clocks of the hosts that are asked over a session and can be reached now; others live by this one's."""
        ...

    def prepare(self, handle: Handle, host: str, kind: FaultKind, options: FaultOptions = PLAIN) -> Strike:
        """Make a fault of a host ready.

        A fault of a service strikes the gateway, any other a worker. Raises `BadInput` for any other host, and for a
        kind of fault that does not declare this driver.
        """
        ...

    def heal(self, handle: Handle, host: str, kind: FaultKind) -> Proof:
        """Undo a fault of that kind; a host or service that is well already is left alone.

        A worker that was lost comes back as a new machine would: with an empty disk, untouched by any other fault but
        a partition, joining the cluster by itself.
        """
        ...

    def destroy(self, handle: Handle) -> None:
        """End everything that carries the handle's token, whatever state it is in."""
        ...
