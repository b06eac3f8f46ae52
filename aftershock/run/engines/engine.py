"""The interface of engines: submit the query, read its progress from its journal, and drain it."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.errors import EnvironmentFailure
from experiments.spec import Experiment, LoadMode
from experiments.typed_json import TypedJson
from experiments.wording import significant
from experiments.workloads.catalogue import WorkloadSpec
from infra.cluster import Handle
from infra.launch import REPOSITORY
from infra.services import spark
from infra.services.jars import class_paths
from journal.codec import Vocabulary
from journal.event import Event
from results.runs import store
from results.runs.store import Run
from spark_jobs.calibration import Calibration

PROGRAMS = REPOSITORY / "spark_jobs"
CONFIG_FILE, CALIBRATION_FILE = "query.json", "calibration.json"
STARTING, RECOVERING = "starting", "recovering"
JARS = "spark.jars"  # that the driver brings to the executors


class Pace(ABC):
    """How far the query of a run has come: a digest of its journal (`journal.reader.Digest`).

    committed_records  of the input, since the query was first started; None before any
    records_per_s      of late; None where it is not known
    doing              "starting", "recovering", or where it is
    """

    def __init__(self) -> None:
        self.committed_records: int | None = None
        self.records_per_s: float | None = None
        self.doing = STARTING

    @abstractmethod
    def take(self, event: Event) -> None:
        """Take in the next event of the query's journal."""

    def __str__(self) -> str:
        return self.doing + ("" if self.records_per_s is None else f", {significant(self.records_per_s)} records/s")


class Commits(ABC):
    """When the query committed something: a digest of its journal (`journal.reader.Digest`)."""

    def __init__(self) -> None:
        self._moments_ns: list[int] = []

    def take(self, event: Event) -> None:
        """Note the moment of an event that is a commit; its journal need not be in the order of time."""
        if self._is_commit(event):
            insort(self._moments_ns, event.at_ns)

    @abstractmethod
    def _is_commit(self, event: Event) -> bool: ...

    def since(self, after_ns: int) -> int:
        """How often it did after a moment."""
        return len(self._moments_ns) - bisect_right(self._moments_ns, after_ns)


class Reads(ABC):
    """When [ns] the query had read how many records: a digest of its journal (`journal.reader.Digest`).

    The first of `counts` says that it began with none.
    """

    def __init__(self) -> None:
        self.counts: list[tuple[int, int]] = [(0, 0)]

    @abstractmethod
    def take(self, event: Event) -> None:
        """Take in the next event of the query's journal."""


@dataclass(frozen=True)
class Engine(ABC):
    """An engine, as the experiment of one run sets it up."""

    experiment: Experiment

    @property
    @abstractmethod
    def vocabulary(self) -> Vocabulary[Event]:
        """What the query writes to the journal `query`."""

    @abstractmethod
    def check(self) -> None:
        """Raise `BadInput` for what the query names and this machine lacks; touches nothing."""

    @abstractmethod
    def submission(self, handle: Handle, run: Run) -> list[str]:
        """Bring the query's configuration onto the cluster; returns the command that submits the query there.

        The query writes the journal `query` of the run. Under a saturating load its driver leaves
        `calibration_path` before it starts.
        """

    @abstractmethod
    def pace(self) -> Pace:
        """A new digest of the journal `query`: how far the query has come."""

    @abstractmethod
    def commits(self) -> Commits:
        """A new digest of the journal `query`: when the query committed something."""

    @abstractmethod
    def reads(self) -> Reads:
        """A new digest of the journal `query`: when it had read how many records."""

    def workload_on(self, handle: Handle) -> WorkloadSpec:
        """The workload as the generator on the gateway is to read it, once the query is submitted."""
        return self.experiment.workload

    def drain(self, handle: Handle) -> type[Event] | None:
        """Have the query bring out all that it has read; returns the kind of event that says that it has.

        None of an engine whose last commit has everything that is judged.
        """
        return None

    def _submit_driver(self, program: Path, job: TypedJson, handle: Handle, run: Run) -> list[str]:
        """Write the configuration of a query driver to the gateway; returns the command that submits the driver."""
        config = handle.orders / CONFIG_FILE
        config.parent.mkdir(exist_ok=True)
        config.write_text(json.dumps(job.to_json()), encoding="utf-8")
        words = [config, run.journal_path("query")]
        if self.experiment.load.mode is LoadMode.SATURATING:
            words.append(calibration_path(handle))
        conf = spark_conf(self.experiment, handle)
        return spark.submit_command(handle.master, program, *map(str, words), conf=conf)


def read_calibration(path: Path) -> Calibration:
    """What the driver has left in a file; raises `EnvironmentFailure` for a file that is damaged."""
    try:
        return Calibration.from_json(store.read_json(path))
    except ValueError as error:
        raise EnvironmentFailure(f"{path.name} is damaged ({error})", "see query.log of the run") from None


def calibration_path(handle: Handle) -> Path:
    """Where the query's driver leaves what it measured of the query, before it runs under a saturating load."""
    return handle.directory(handle.gateway.name) / CALIBRATION_FILE


def spark_conf(experiment: Experiment, handle: Handle) -> dict[str, str]:
    """Where driver and executors bind, what they may use, and where they find the Kafka connector.

    The hosts of a borrowed cluster do not have the connector: they get it from the driver.
    """
    jars = [str(jar) for jar in class_paths().connector]
    connector = ":".join(jars)
    address = handle.gateway.address
    there = {"spark.executor.extraClassPath": connector}
    return {
        "spark.driver.host": address,
        "spark.driver.bindAddress": address,
        "spark.driver.extraClassPath": connector,
        **(_brought_along(experiment, jars) if handle.is_borrowed else there),
        "spark.executor.cores": str(experiment.cluster.worker_cores),
        "spark.executor.memory": f"{experiment.cluster.worker_memory_mb}m",
    }


def _brought_along(experiment: Experiment, jars: Sequence[str]) -> dict[str, str]:
    """The jars, and an executor for each worker and no more: others may use the same cluster."""
    return {
        JARS: ",".join(jars),
        "spark.cores.max": str(experiment.cores),
        "spark.executor.instances": str(experiment.cluster.workers),
        "spark.dynamicAllocation.enabled": "false",
    }
