"""Checks what this machine can do for a run: Java, jars, memory, every driver and the faults that it can inject.

Nothing is started, changed or downloaded. If an inventory or an existing cluster is given, its machines are asked, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from aftershock.run import room
from experiments.documents.kinds import DocumentKind, kind_of
from experiments.documents.parsing import read_json
from experiments.errors import AftershockError, BadInput, EnvironmentFailure
from experiments.fault_kinds import PLAIN, FaultKind, FaultOptions
from experiments.hosts import ClusterDriver
from experiments.spec import ClusterSpec
from infra.drivers import driver_of
from infra.services.jars import cache_folder, ensure_jars
from infra.services.jvm import find_java
from infra.services.startup import wanted_mb
from results.runs.home import home

USUAL = ClusterSpec()
DESCRIBED = {  # drivers whose hosts are described in a file
    ClusterDriver.SSH: DocumentKind.INVENTORY,
    ClusterDriver.EXTERNAL: DocumentKind.EXTERNAL_CLUSTER,
}
OPTIONS = {  # what a kind can be told that not every driver knows
    "partition (one way)": (FaultKind.PARTITION, FaultOptions(peers=("worker-2",))),
    "slow (delayed messages)": (FaultKind.SLOW, FaultOptions(delay=0.1)),
}


class Can(StrEnum):
    """Whether the machine can do something."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Finding:
    """One thing that a run may need: what was found, and what to do where it is lacking."""

    subject: str
    can: Can
    found: str
    remedy: str | None = None


@dataclass(frozen=True)
class Diagnosis:
    """What was found. `ready` says whether an experiment with driver local can run, `short` what may end it early."""

    findings: tuple[Finding, ...]

    @property
    def ready(self) -> bool:
        """Whether all is there that every run needs."""
        needed = {finding.subject: finding.can for finding in self.findings}
        return all(needed[subject] is Can.YES for subject in ("java", "jars", "driver local"))

    @property
    def unusable(self) -> tuple[str, ...]:
        """The drivers whose hosts are described in a file that was given, and which cannot use them."""
        described = {f"driver {name}" for name in DESCRIBED}
        return tuple(each.subject for each in self.findings if each.subject in described and each.can is Can.NO)

    @property
    def short(self) -> tuple[str, ...]:
        """Which of memory and disk are too small for an example."""
        room = ("memory", "disk")
        return tuple(each.subject for each in self.findings if each.subject in room and each.can is Can.NO)


def examine(inventory: str | None) -> Diagnosis:
    """Look at this machine, and at the machines or the cluster that a file [path] describes for ssh or external.

    Raises `BadInput` for a mistake in that file.
    """
    findings = [_room(), _disk(), _tried("java", _java), _jars()]
    for name in ClusterDriver:
        findings += _driver(name, inventory)
    return Diagnosis(tuple(findings))


def _room() -> Finding:
    """Cores and memory, against what the usual cluster of an example takes."""
    free_mb, needed_mb = room.free_memory_mb(), wanted_mb(USUAL)
    found = f"{room.cores()} cores, {free_mb:,} MB of memory free; an example takes about {needed_mb:,} MB"
    if free_mb < needed_mb:
        return Finding("memory", Can.NO, found, "end other programs, or lower cluster.workers")
    return Finding("memory", Can.YES, found)


def _disk() -> Finding:
    free_mb = room.free_disk_mb()
    found = f"{free_mb:,} MB free where runs are kept ({home()})"
    if free_mb < room.LEAST_DISK_MB:
        return Finding("disk", Can.NO, found, "remove runs with `aftershock results prune`, or set AFTERSHOCK_HOME")
    return Finding("disk", Can.YES, found)


def _java() -> str:
    java = find_java()
    return f"Java {java.version} in {java.home}"


def _jars() -> Finding:
    if not cache_folder().exists():
        return Finding("jars", Can.NO, "Kafka and its connector are not downloaded yet", "run `make setup`")
    return _tried("jars", lambda: f"{len(ensure_jars().broker)} of Kafka, all with the right digest")


def _driver(name: ClusterDriver, inventory: str | None) -> Iterator[Finding]:
    """The driver itself, and then the faults that it cannot inject."""
    subject = f"driver {name}"
    if name in DESCRIBED and not _describes(inventory, name):
        needs = f"needs {DESCRIBED[name].title}"
        yield Finding(subject, Can.UNKNOWN, needs, "give one: `aftershock doctor --inventory FILE`")
        return
    spec = USUAL.model_copy(update={"driver": name})
    if name in DESCRIBED and inventory:
        spec = spec.model_copy(update={"inventory": inventory, "workers": _workers(name, Path(inventory))})
    checked = _tried(subject, lambda: _checked(name, spec), described=name in DESCRIBED)
    yield checked
    if checked.can is Can.YES:
        yield from _faults(name, spec)


def _workers(name: ClusterDriver, path: Path) -> int:
    """How many workers of a described cluster are looked at: all of an inventory.

    An existing cluster needs one at least; its hosts are listed by a command of its user, and are not asked themselves.
    """
    if name is not ClusterDriver.SSH:
        return 1
    from experiments import inventory

    return len(inventory.load(path).workers)


def _describes(inventory: str | None, name: ClusterDriver) -> bool:
    """Whether a file is what this driver needs; one that cannot be read is for each of them to complain about."""
    if inventory is None:
        return False
    try:
        found = kind_of(read_json(Path(inventory), "inventory"))
    except BadInput:
        return True
    return found is DESCRIBED[name] or found not in DESCRIBED.values()


def _faults(name: ClusterDriver, spec: ClusterSpec) -> Iterator[Finding]:
    asked = {kind.value: (kind, PLAIN) for kind in FaultKind} | OPTIONS
    refused = {what: driver_of(name).refusal(spec, *fault) for what, fault in asked.items()}
    able = [what for what, refusal in refused.items() if refusal is None]
    yield Finding(f"faults of {name}", Can.YES, ", ".join(able))
    elsewhere = [what for what in refused if name not in asked[what][0].drivers]
    if elsewhere:
        others = "another driver, or faults of this one"
        yield Finding(f"other faults with {name}", Can.NO, f"no {', '.join(elsewhere)}", f"choose {others}")
    for what, refusal in refused.items():
        if refusal is not None and what not in elsewhere:
            yield Finding(f"{what} with {name}", Can.NO, "cannot be injected", f"allowed: {refusal}")


def _checked(name: ClusterDriver, spec: ClusterSpec) -> str:
    driver_of(name).check(spec)
    return "can create hosts"


def _tried(subject: str, look: Callable[[], str], described: bool = False) -> Finding:
    """What came of a look; raises `BadInput` for a mistake in the file in which hosts are `described`."""
    try:
        return Finding(subject, Can.YES, look())
    except EnvironmentFailure as failure:
        return Finding(subject, Can.NO, failure.cause, failure.remedy)
    except BadInput as refusal:
        if refusal.field == "cluster.driver":
            return Finding(subject, Can.NO, "not with the rights of this process", f"allowed: {refusal.allowed}")
        if described and not refusal.field.startswith("cluster.worker"):  # sizes of an experiment
            raise
        return Finding(subject, Can.NO, str(refusal))
    except AftershockError as error:
        return Finding(subject, Can.NO, str(error))
