"""The external driver: hosts are those of an existing cluster (docs/reference/external-cluster.md).

The gateway is this machine. It runs what belongs to the run: the query driver under its supervisor, the generator, the
sampler and the injector, which executes the user's commands.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from experiments import external_cluster
from experiments.errors import BadInput, EnvironmentFailure
from experiments.external_cluster import ExternalCluster
from experiments.fault_kinds import GATEWAY, PLAIN, FaultKind, FaultOptions
from experiments.hosts import ClusterDriver, Role
from experiments.spec import ClusterSpec
from infra import credentials, launch
from infra.attempts import each_tried
from infra.clocks import ClockOffset
from infra.cluster import Driver, Handle, Host, untold
from infra.external import listing, logins, strike, topics
from infra.external.borrowed import Borrowed, Borrowing
from infra.external.commands import WHERE, RunningCommand, require_program, succeeded
from infra.local import LocalDriver
from infra.processes import Usage
from infra.refusals import DeclaredFaults
from infra.services import gateway, startup
from infra.strikes.death import Death
from infra.strikes.strike import Proof, Strike

BROKER_LIMIT_S = 10.0


class ExternalDriver(DeclaredFaults, Driver):
    """Implements `infra.cluster.Driver` on a cluster that is neither created nor destroyed."""

    name = ClusterDriver.EXTERNAL
    lacking = ", whose hosts are struck by commands that are told nothing but a name"

    def __init__(self) -> None:
        self._here = LocalDriver()

    def check(self, spec: ClusterSpec) -> None:
        """Read the description, try its programs, and list the hosts.

        Raises `BadInput` about the description. Raises `EnvironmentFailure` if the master or the broker cannot be
        reached, if the broker refuses the login, or if `list_hosts` prints something else than hosts.
        """
        self._vetted(spec)

    def _vetted(self, spec: ClusterSpec) -> tuple[ExternalCluster, list[listing.ListedHost], str, str]:
        """The description, the hosts, the login at the broker, and the settings of Spark; raises as `check` does."""
        cluster = _described(spec)
        for field, command in cluster.commands.items():
            require_program(field, command)
        _require_folder(cluster.checkpoints)
        login = logins.broker_login(cluster.broker_login)
        conf = logins.spark_conf(cluster.spark_conf)
        listed = self._listed(spec, cluster)
        _require_master(cluster.master)
        logins.require_broker(cluster.brokers, login, BROKER_LIMIT_S)
        return cluster, listed, login, conf

    def obstacle(self, spec: ClusterSpec, kind: FaultKind, options: FaultOptions) -> str | None:
        """A kind for which the description has no commands."""
        if kind.service:
            return None
        able = sorted(_described(spec).faults)
        return None if kind in able else f"{', '.join(able)}, for which {spec.inventory} has commands"

    def domains(self, spec: ClusterSpec) -> dict[str, tuple[str, ...]]:
        """The domains of the workers, as the user's command lists them."""
        listed = self._listed(spec, _described(spec))
        return _domains(listed)

    def _listed(self, spec: ClusterSpec, cluster: ExternalCluster) -> list[listing.ListedHost]:
        """The first hosts that are listed, as many as there are workers."""
        command = RunningCommand("list_hosts", cluster.list_hosts)
        found = listing.hosts_of(succeeded("list_hosts", command.wait(cluster.limit_s)).output)
        if spec.workers > len(found):
            raise BadInput("cluster.workers", spec.workers, f"at most {len(found)}, as many hosts as list_hosts prints")
        return found[: spec.workers]

    def provision(self, spec: ClusterSpec, run_id: str, root: Path, tell: Callable[[str], None] = untold) -> Handle:
        """Note what there is, and make a folder for the run's checkpoints; starts nothing."""
        tell("the existing cluster: its list of hosts, its master and its broker")
        cluster, listed, login, conf = self._vetted(spec)
        handle = _handle(spec, run_id, root, cluster, listed)
        root.mkdir(parents=True, exist_ok=True)
        with _own_checkpoints(handle):  # before the handle is there, by which a teardown removes them
            handle.save()
        names = {f"worker-{n}": host.name for n, host in enumerate(listed, 1)}
        Borrowed(cluster=cluster, names=names, domains=_domains(listed)).save(root)
        credentials.adopt(root, kafka=login, spark=conf)
        for name in handle.hosts:
            (handle.directory(name) / "logs").mkdir(parents=True, exist_ok=True)
        return handle

    def usage(self, handle: Handle, host: str) -> Usage:
        if host != GATEWAY:
            raise EnvironmentFailure(f"{host} is not asked what it uses", "look at the cluster's own metrics")
        return self._here.usage(handle, host)

    def clocks(self, handle: Handle) -> dict[str, ClockOffset]:
        """None: what a proof tells is taken as it is."""
        return {}

    def spawn(self, handle: Handle, host: str, service: str, command: Sequence[str]) -> int:
        """Start a service on this machine, which is the gateway; it is told where the cluster is configured."""
        folder = handle.directory(host)
        where = {name: os.environ[name] for name in WHERE if name in os.environ}
        variables = where | startup.service_environment(handle, host, service)
        return launch.spawn(command, folder, folder / "logs" / f"{service}.log", variables)

    def stop(self, handle: Handle, host: str, service: str, limit_s: float) -> None:
        self._here.stop(handle, host, service, limit_s)

    def running(self, handle: Handle, host: str) -> set[str]:
        return self._here.running(handle, host)

    def prepare(self, handle: Handle, host: str, kind: FaultKind, options: FaultOptions = PLAIN) -> Strike:
        """Ask whether the host is up; a fault of the query driver is made ready as on driver local."""
        startup.struck(handle, host, kind)
        if kind.service:
            return self._here.prepare(handle, host, kind, options)
        return strike.CommandStrike(Borrowing(handle), host, kind)

    def heal(self, handle: Handle, host: str, kind: FaultKind) -> Proof:
        startup.struck(handle, host, kind)
        if kind.service:
            return self._here.heal(handle, host, kind)
        return strike.heal(Borrowing(handle), host, kind)

    def healing_limit_s(self, handle: Handle) -> float:
        return super().healing_limit_s(handle) + Borrowing(handle).healing_limit_s

    def destroy(self, handle: Handle) -> None:
        """End what runs here, bring back what was struck, and remove topics and checkpoints; the cluster stays."""
        survivors = Death(handle.token, handle.gateway.address, own_ports=frozenset()).fire().left["survivors"]
        borrowing = Borrowing(handle)
        acts = [partial(_bring_back, borrowing, host, kind) for host, kind in borrowing.struck()]
        problems = [f"{survivors} processes of run {handle.run_id} here survive SIGKILL"] if survivors else []
        failures = each_tried([*acts, partial(topics.remove, handle), partial(_remove_checkpoints, handle)])
        problems += [failure.cause for failure in failures]
        if problems:
            raise EnvironmentFailure("; ".join(problems), f"mend that and run `aftershock clean {handle.run_id}`")


def _described(spec: ClusterSpec) -> ExternalCluster:
    return external_cluster.load(Path(spec.inventory))


def _domains(listed: Sequence[listing.ListedHost]) -> dict[str, tuple[str, ...]]:
    return {f"worker-{number}": tuple(filter(None, [host.domain])) for number, host in enumerate(listed, 1)}


def _handle(
    spec: ClusterSpec, run_id: str, root: Path, cluster: ExternalCluster, listed: Sequence[listing.ListedHost]
) -> Handle:
    def host(name: str, address: str, role: Role) -> Host:
        return Host(name, address, role, spec.worker_cores, spec.worker_memory_mb)

    workers = [host(f"worker-{n}", each.address, Role.WORKER) for n, each in enumerate(listed, 1)]
    hosts = [host(GATEWAY, cluster.address, Role.GATEWAY), *workers]
    handle = startup.handle_on(spec, run_id, root, hosts=hosts)
    checkpoints = f"{cluster.checkpoints}/aftershock-{run_id}"
    return replace(handle, broker=cluster.brokers, master=cluster.master, checkpoints=checkpoints)


def _require_folder(checkpoints: str) -> None:
    """A folder that is named by a URL is Spark's to find."""
    if checkpoints.startswith("/") and not (os.path.isdir(checkpoints) and os.access(checkpoints, os.W_OK | os.X_OK)):
        raise BadInput("checkpoints", checkpoints, "a folder that exists and can be written")


def _require_master(master: str) -> None:
    """Raise `EnvironmentFailure` unless a standalone master listens. Spark itself asks any other cluster manager."""
    address = urlsplit(master)
    if address.scheme == "spark" and not gateway.answers(str(address.hostname), address.port or 0):
        raise EnvironmentFailure(f"nothing listens at {master}", "start the cluster's master, or correct its address")


def _bring_back(borrowing: Borrowing, host: str, kind: FaultKind) -> None:
    if borrowing.note(host, kind).exists and not strike.heal(borrowing, host, kind).holds:
        raise EnvironmentFailure(f"{borrowing.called(host)} is still struck ({kind.value})", "bring it back by hand")


@contextmanager
def _own_checkpoints(handle: Handle) -> Iterator[None]:
    """Make the folder of the run's checkpoints, which goes again if what is done within fails.

    Raises `EnvironmentFailure` if it is there already: what is in it is not the run's. A URL is left to Spark.
    """
    if not handle.checkpoints.startswith("/"):
        yield
        return
    folder = Path(handle.checkpoints)
    try:
        folder.mkdir()
    except OSError as error:
        cause = f"the folder {folder} cannot be made for the run's checkpoints ({error.strerror})"
        raise EnvironmentFailure(cause, "look whose it is, or name another folder of checkpoints") from None
    try:
        yield
    except BaseException:
        folder.rmdir()
        raise


def _remove_checkpoints(handle: Handle) -> None:
    """What a URL names is left: nothing here can reach it."""
    if handle.checkpoints.startswith("/"):
        shutil.rmtree(handle.checkpoints, ignore_errors=True)
        if os.path.exists(handle.checkpoints):
            raise EnvironmentFailure(f"{handle.checkpoints} cannot be removed", "remove it by hand")
