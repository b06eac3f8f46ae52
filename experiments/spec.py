"""The experiment: a validated spec of what is run, where, under which faults, and how it is judged.

Times are in seconds and rates per second. The same models validate YAML files, `--set` overrides
and the DAG's params, and give the trigger form its JSON schema.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, model_validator

from experiments.documents import kinds
from experiments.documents.field_types import Spelling
from experiments.documents.gate import MOST_DEPTH
from experiments.documents.kinds import DocumentKind
from experiments.documents.parsing import (
    Misfit,
    Positive,
    Spec,
    parse,
    parse_mapping,
    parse_value,
    read_mapping,
    user_path,
)
from experiments.engines import EngineName, EngineSpec, ProtocolName, TriggerMode
from experiments.errors import BadInput, in_file
from experiments.faults import FaultSpec
from experiments.hosts import ClusterDriver
from experiments.loads import FEWEST_INTERVALS, LoadMode, LoadSpec
from experiments.misfits.batches import check_batches
from experiments.misfits.engine import check_engine
from experiments.misfits.faults import misfits
from experiments.recovery_modes import RecoveryMode
from experiments.trace import with_trace
from experiments.wording import exact
from experiments.workloads.base import LONGEST_S
from experiments.workloads.catalogue import (
    OwnJobSpec,
    ReachabilitySpec,
    WordCountSpec,
    WorkloadSpec,
    with_absolute_paths,
)
from experiments.workloads.hashtags import HashtagsSpec

__all__ = ["EngineName", "EngineSpec", "Experiment", "LoadMode", "ProtocolName", "TriggerMode"]
EXAMPLES = Path(__file__).parent / "examples"
RUN_NAME = Spelling(r"^[a-z0-9][a-z0-9-]{0,62}$", "1 to 63 small letters, digits and hyphens, no hyphen first")
# From the first event to the window, and from its end to that of the load, together: some commits are awaited at both.
LONGEST_LEAD_S, LEAD_INTERVALS = 120.0, 5
LATENESS_S, LATENESS_AFAR_S = 0.010, 0.025  # of faults on this machine's processes, and on hosts over a session
LATENESS_BY_COMMAND_S = 1.0  # of faults by a user's command, which has a program to start and may ask others


class ClusterSpec(Spec):
    """The hosts: one gateway (broker, master, query driver, generator, injector) and `workers` that can be killed."""

    driver: Annotated[ClusterDriver, Field(description="cluster driver, which creates the hosts")] = ClusterDriver.LOCAL
    workers: Annotated[int, Field(ge=1, le=250, description="number of worker hosts")] = 3
    worker_cores: Annotated[int, Field(ge=1, le=64, description="cores that Spark uses on each worker")] = 1
    worker_memory_mb: Annotated[
        int, Field(ge=512, le=262_144, description="memory that Spark may use on each worker [MB]")
    ] = 640
    worker_disk_mb: Annotated[
        int,
        Field(
            ge=64,
            le=1_048_576,
            description="size of a worker's own disk [MB], which is in memory; only drivers netns and docker have one",
        ),
    ] = 512
    inventory: Annotated[
        str,
        Field(
            min_length=1,
            description="driver ssh: JSON file that lists the machines (docs/reference/inventory.md); driver external:"
            " JSON file that describes the cluster (docs/reference/external-cluster.md)",
        ),
    ] = "inventory.json"


class ToleranceSpec(Spec):
    """How far a measurement may lie from what it is compared with."""

    lateness_s: Annotated[
        Positive | None,
        Field(
            description=f"largest lateness of faults, at p99; by default {LATENESS_S:g} on driver local,"
            f" {LATENESS_BY_COMMAND_S:g} on external, else {LATENESS_AFAR_S:g}"
        ),
    ] = None
    utilization: Annotated[
        Positive,
        Field(
            description="largest difference of measured and replayed utilization for 20 faults or more; for fewer,"
            " twice that"
        ),
    ] = 0.01
    estimates: Annotated[
        Positive,
        Field(description="largest difference of the two measured estimates of utilization, by time and by records"),
    ] = 0.05
    ledger_share: Annotated[
        Positive, Field(description="largest difference of the ledger's sum and the window, as a share of the window")
    ] = 0.001


class Experiment(Spec):
    """One experiment. The measurement window of `window_s` starts once the query runs steadily; it holds all faults."""

    name: Annotated[Annotated[str, RUN_NAME], Field(description="name of the experiment; run ids begin with it")] = (
        "wordcount"
    )
    cluster: ClusterSpec = ClusterSpec()
    workload: WorkloadSpec = WordCountSpec()
    engine: EngineSpec = EngineSpec()
    load: LoadSpec = LoadSpec()
    faults: FaultSpec = FaultSpec()
    window_s: Annotated[float, Field(gt=0, le=LONGEST_S, description="length of the measurement window")] = 240.0
    seed: Annotated[int, Field(ge=0, lt=2**63, description="seed of the fault plan")] = 1
    tolerances: ToleranceSpec = ToleranceSpec()

    @property
    def cores(self) -> int:
        """Cores of all workers together."""
        return self.cluster.workers * self.cluster.worker_cores

    @property
    def names_queries(self) -> bool:
        """Whether each result on the testbed tells which query it is of."""
        return self.engine.name is EngineName.DATAFLOW and isinstance(self.workload, HashtagsSpec)

    @property
    def lateness_limit_s(self) -> float:
        """How far from its planned moment a fault may strike, at p99 [s]."""
        by_driver = {ClusterDriver.LOCAL: LATENESS_S, ClusterDriver.EXTERNAL: LATENESS_BY_COMMAND_S}
        return self.tolerances.lateness_s or by_driver.get(self.cluster.driver, LATENESS_AFAR_S)

    @property
    def probe_s(self) -> float:
        """For how long a probe of the search is watched, given or by default [s]."""
        return self.load.probe_run_s(self.engine.checkpoint_interval_s)

    @property
    def worker_names(self) -> list[str]:
        """`worker-1` and so on: the names by which fault specs, tables and logs know the workers."""
        return [f"worker-{i}" for i in range(1, self.cluster.workers + 1)]

    @property
    def fault_spec(self) -> FaultSpec:
        """The fault spec with duration and hosts filled in."""
        hosts = self.faults.hosts or dict.fromkeys(self.worker_names, ())
        return self.faults.model_copy(update={"duration": self.faults.duration or self.window_s, "hosts": hosts})

    @model_validator(mode="after")
    def _faults_fit_the_cluster(self) -> Experiment:
        unknown = sorted(set(self.faults.hosts) - set(self.worker_names))
        if unknown:
            raise Misfit("faults.hosts", unknown[0], f"the cluster's hosts: {', '.join(self.worker_names)}")
        if (self.faults.duration or 0) > self.window_s:
            raise Misfit("faults.duration", self.faults.duration, f"at most window_s, {exact(self.window_s)} s")
        for misfit in misfits(self.fault_spec):
            raise Misfit(f"faults.{misfit.field}", misfit.value, str(misfit))
        return self

    @model_validator(mode="after")
    def _the_testbed_needs_the_checkout_on_every_host(self) -> Experiment:
        if self.cluster.driver is ClusterDriver.EXTERNAL and self.engine.name is EngineName.DATAFLOW:
            allowed = "structured-streaming with driver external: nothing of this project is installed on its hosts"
            raise Misfit("engine.name", self.engine.name.value, allowed)
        return self

    @model_validator(mode="after")
    def _own_job_goes_its_own_way(self) -> Experiment:
        if not isinstance(self.workload, OwnJobSpec):
            return self
        if self.engine.name is not EngineName.STRUCTURED_STREAMING:
            allowed = "structured-streaming with an own job: the testbed runs queries of its own"
            raise Misfit("engine.name", self.engine.name.value, allowed)
        if self.load.mode is LoadMode.SATURATING:
            allowed = (
                "rate or sustainable with an own job: the size of its batches cannot be measured and set from outside"
            )
            raise Misfit("load.mode", self.load.mode.value, allowed)
        if self.engine.recovery_run is not RecoveryMode.TASK:
            allowed = "task with an own job: Spark and the job itself handle the loss of a host"
            raise Misfit("engine.recovery", self.engine.recovery_run.value, allowed)
        if self.engine.trigger is not TriggerMode.MICRO_BATCH:
            raise Misfit("engine.trigger", self.engine.trigger.value, "micro-batch with an own job")
        return self

    @model_validator(mode="after")
    def _probes_are_long_enough(self) -> Experiment:
        shortest_s = FEWEST_INTERVALS * self.engine.checkpoint_interval_s
        if self.load.mode is LoadMode.SUSTAINABLE and self.probe_s < shortest_s:
            allowed = f"at least {exact(shortest_s)} s, which is {FEWEST_INTERVALS} checkpoint intervals"
            raise Misfit("load.probe_s", self.load.probe_s, allowed)
        return self

    @model_validator(mode="after")
    def _the_engine_can_run_it(self) -> Experiment:
        kinds = sorted(self.faults.kinds) if self.faults.can_fail else []
        saturating = self.load.mode is LoadMode.SATURATING
        check_engine(self.engine, self.workload, self.cores, kinds, saturating=saturating)
        check_batches(self.load, self.engine, self.workload)
        return self

    @model_validator(mode="after")
    def _the_graph_stays_sparse(self) -> Experiment:
        if not isinstance(self.workload, ReachabilitySpec):
            return self
        if self.load.mode is not LoadMode.RATE:
            allowed = "rate with reachability: only then is the size of its graph known in advance"
            raise Misfit("load.mode", self.load.mode.value, allowed)
        ahead = self.load.rate * self.engine.checkpoint_interval_s  # after a recovery
        lead_s = max(LONGEST_LEAD_S, LEAD_INTERVALS * self.engine.checkpoint_interval_s)
        fewest = self.workload.fewest_nodes(self.load.rate * (self.window_s + lead_s), ahead)
        if self.workload.nodes < fewest:
            allowed = f"at least {fewest}: the number of paths explodes at about one link per node"
            raise Misfit("workload.nodes", self.workload.nodes, allowed)
        return self


def available() -> list[str]:
    """Names of the example experiments that ship with the project."""
    return sorted(path.stem for path in EXAMPLES.glob("*.yaml"))


def load(source: str = "wordcount", overrides: list[str] | None = None) -> Experiment:
    """Load an experiment from a YAML file, or by the name of an example, with `a.b=value` overrides applied.

    Raises `BadInput` naming the file (not for what an override has set), the field, its value and what is allowed.
    """
    path = EXAMPLES / f"{source}.yaml" if re.fullmatch(r"[a-z0-9-]+", source) else user_path(source)
    document = read_mapping(path, "experiment", source, f", or one of {', '.join(available())}")
    return in_document(document, source, overrides or [])


def in_text(text: str, source: str) -> Experiment:
    """The experiment in the text of the YAML file `source`, which has been read; raises as `load` does."""
    return in_document(parse_mapping(text, "experiment", source), source, [])


def in_document(document: dict[str, Any], source: str, overrides: list[str]) -> Experiment:
    """The experiment in the YAML file `source`, which has been read, with overrides applied; raises as `load` does."""
    kinds.require(DocumentKind.EXPERIMENT, document, "experiment", source)
    for override in overrides:
        _apply(document, override)
    with in_file(source, set_elsewhere=[override.partition("=")[0] for override in overrides]):
        return validate(document)


def validate(document: dict[str, Any]) -> Experiment:
    """Validate a document and read the trace and inventory it names; the first problem is raised as `BadInput`."""
    experiment = parse(Experiment, _with_inventory(document), "experiment")
    experiment = experiment.model_copy(update={"workload": with_absolute_paths(experiment.workload)})
    if experiment.faults.trace is None:
        return experiment
    events = with_trace(experiment.fault_spec, "faults.trace").events
    faults = experiment.faults.model_copy(update={"trace": None, "events": events})
    return parse(Experiment, experiment.model_copy(update={"faults": faults}).model_dump(), "experiment")


def _with_inventory(document: dict[str, Any]) -> dict[str, Any]:
    """The path of the inventory made absolute. With driver ssh, its domains are the faults' where hosts have none.

    As with a trace, a run's experiment is complete from then on, even if the file is changed or deleted. With driver
    external, a command of the user lists the hosts; it is not executed here.
    """
    cluster = parse(Experiment, {**document, "faults": {}}, "experiment").cluster
    if cluster.driver not in (ClusterDriver.SSH, ClusterDriver.EXTERNAL):
        return document
    path = user_path(cluster.inventory).absolute()
    document = {**document, "cluster": cluster.model_copy(update={"inventory": str(path)}).model_dump()}
    faults = document.get("faults", {})
    if cluster.driver is ClusterDriver.EXTERNAL or not isinstance(faults, dict) or faults.get("hosts"):
        return document
    from experiments import inventory

    workers = inventory.load(path).first_workers(cluster.workers)
    hosts = {f"worker-{number}": worker.domains for number, worker in enumerate(workers, 1)}
    return {**document, "faults": {**faults, "hosts": hosts}}


def _apply(document: dict[str, Any], override: str) -> None:
    key, separator, text = override.partition("=")
    if not separator or not all(key.split(".")):
        raise BadInput("--set", override, "field.subfield=value")
    *parents, leaf = key.split(".", MOST_DEPTH + 1)
    node: Any = document
    for parent in parents:
        node = _child(node, parent, key)
    value = parse_value(text, "--set", key)
    if isinstance(node, list):
        node[_index(node, leaf, key)] = value
    else:
        node[leaf] = value


def _child(node: Any, name: str, key: str) -> Any:
    child = node[_index(node, name, key)] if isinstance(node, list) else node.setdefault(name, {})
    if not isinstance(child, dict | list):
        raise BadInput("--set", key, f"a field below a mapping; {name} is a value")
    return child


def _index(node: list[Any], name: str, key: str) -> int:
    if re.fullmatch("[0-9]{1,9}", name) and int(name) < len(node):
        return int(name)
    raise BadInput("--set", key, f"a position from 0 to {len(node) - 1}" if node else "a field: this list is empty")
