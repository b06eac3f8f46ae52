"""The handle of a cluster and the interface that every driver implements."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path
from typing import Annotated, Any, Protocol

from pydantic import AfterValidator, Field

from experiments.documents.plain_files import read_plain
from experiments.errors import EnvironmentFailure
from experiments.fault_kinds import PLAIN, FaultKind, FaultOptions
from experiments.hosts import ClusterDriver, Role
from experiments.spec import ClusterSpec
from experiments.typed_json import TypedJson
from infra import credentials, tokens
from infra.broker import Broker
from infra.clocks import ClockOffset
from infra.processes import Usage
from infra.strikes.strike import Proof, Strike

HANDLE_FILE = "handle.json"
HEALING_LIMIT_S = 60.0
STORE, JOB = "store", "job"  # folders of a cluster's root: checkpoints, an own job


def _address(text: str) -> str:
    IPv4Address(text)
    return text


def _absolute(path: str) -> str:
    if not Path(path).is_absolute():
        raise ValueError("no absolute path")
    return path


Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,127}$")]  # of a run, and of a host


@dataclass(frozen=True)
class Host:
    """A host of a cluster as it was planned; `address` is IPv4."""

    name: Name
    address: Annotated[str, AfterValidator(_address)]
    role: Role
    cores: int
    memory_mb: int


@dataclass(frozen=True)
class Handle(TypedJson):
    """All that is needed to use, inspect and destroy a cluster; passes between tasks as JSON.

    The fields' limits are checked by `from_json`, through which every handle comes that another process wrote.

    checkpoints  where the query keeps its checkpoints, if that is not in the cluster's root
    """

    run_id: Name
    driver: Annotated[str, Field(pattern=f"^({'|'.join(ClusterDriver)})$")]
    token: Annotated[str, Field(pattern=f"^{tokens.PATTERN}$")]
    root: Annotated[str, AfterValidator(_absolute)]
    hosts: Mapping[str, Host] = field(default_factory=dict)
    broker: str = ""
    master: str = ""
    checkpoints: str = ""

    @property
    def workers(self) -> list[Host]:
        """The hosts that run Spark workers; faults strike these."""
        return [host for host in self.hosts.values() if host.role is Role.WORKER]

    @property
    def gateway(self) -> Host:
        """The host of broker, Spark master, query, generator, sampler and injector."""
        return next(host for host in self.hosts.values() if host.role is Role.GATEWAY)

    @property
    def is_borrowed(self) -> bool:
        """Whether the cluster is somebody else's, who had it before the run and keeps it."""
        return self.driver == ClusterDriver.EXTERNAL

    @property
    def owners_services(self) -> frozenset[str]:
        """The services that a gateway runs otherwise, and that are the owner's affair on a borrowed cluster."""
        return frozenset({"broker", "spark-master"}) if self.is_borrowed else frozenset()

    @property
    def kafka(self) -> Broker:
        """The broker, with the credentials of its clients."""
        return Broker(self.broker, str(credentials.kafka_file(self.root)))

    @property
    def store_key(self) -> Path:
        """The file with the key of the testbed's checkpoints."""
        return credentials.store_key_file(self.root)

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
        credentials.write_private(Path(self.root) / HANDLE_FILE, json.dumps(self.to_json(), indent=1))

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

    @classmethod
    def from_json(cls, document: Any) -> Handle:
        """Raises `ValueError` for what is no handle; the value of the token is not told."""
        handle = super().from_json(document)
        _require(handle.token.startswith(tokens.LETTERS[handle.driver]), "token")
        _require(all(name == host.name for name, host in handle.hosts.items()), "hosts")
        _require([host.role for host in handle.hosts.values()].count(Role.GATEWAY) == 1, "hosts")
        return handle


def _require(fits: bool, field_name: str) -> None:
    if not fits:
        raise ValueError(f"{field_name} is not as it should be")


def untold(_what: str) -> None:
    """For who does not want to be told what a driver waits for."""


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
    """Creates, strikes, heals and destroys hosts. Every method is idempotent."""

    def check(self, spec: ClusterSpec) -> None:
        """Raise `BadInput` or `EnvironmentFailure` unless there is what the driver needs; touches nothing."""
        ...

    def refusal(self, spec: ClusterSpec, kind: FaultKind, options: FaultOptions) -> str | None:
        """Why this driver cannot inject such a fault into such a cluster; None if it can."""
        ...

    def provision(self, spec: ClusterSpec, run_id: str, root: Path, tell: Callable[[str], None] = untold) -> Handle:
        """Create the hosts with the run's token on each; raises `EnvironmentFailure` if that fails.

        Whenever it begins to wait for something else, it tells what that is.
        """

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

    def healing_limit_s(self, handle: Handle) -> float:
        """How long the injector may take to heal everything once it is asked to end [s]."""
        return HEALING_LIMIT_S

    def destroy(self, handle: Handle) -> None:
        """End everything that carries the handle's token, in any state."""
        ...
