"""What executes a workload, how, and which experiments each engine can't run."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field, model_validator

from experiments.cec_prices import CecPricesSpec
from experiments.fault_kinds import FaultKind
from experiments.field_types import Spelling
from experiments.hashtags import HashtagsSpec
from experiments.layered import LayeredSpec
from experiments.parsing import Misfit, Positive, Spec
from experiments.recovery_modes import (
    OF_STRUCTURED_STREAMING,
    PARTIAL,
    TELL_QUERIES,
    RecoveryMode,
    RecoveryPlanner,
    names,
)
from experiments.recovery_modes import OF_THE_TESTBED as STRATEGIES
from experiments.workloads import STATELESS, TESTBED, NexmarkQuery, NexmarkSpec, ReachabilitySpec, WorkloadSpec

SHORTEST_REAL_TIME_S = 5.0  # Spark's spark.sql.streaming.realTimeMode.minBatchDuration
RECORDS_PER_MESSAGE = 1024
BATCH_LENGTH_S = 0.25
CHECK_INTERVAL_S, CHECK_PERIOD_S = 0.005, 0.1
PLANNER_LIMIT_S = 1.0
BUCKET = Spelling(
    r"^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9._-]+)*$", "s3://BUCKET/PREFIX, a directory if it is left out"
)
ENDPOINT = Spelling(r"^https?://[^\s/@]+$", "http://HOST:PORT or https://HOST, without a user")
OF_THE_TESTBED = (
    *(
        "protocol",
        "records_per_message",
        "batch_length_s",
        "chaining",
        "standby",
        "tentative",
        "planner",
        "planner_limit_s",
        "capacity",
    ),
    *("log_extent", "log_replay", "check_interval_s", "check_period_s"),
    *("store", "store_endpoint"),
)


class EngineName(StrEnum):
    STRUCTURED_STREAMING = "structured-streaming"
    DATAFLOW = "dataflow"  # the protocol testbed


class TriggerMode(StrEnum):
    """How Spark runs the query: in batches of what has arrived, or in batches of a fixed length that emit at once."""

    MICRO_BATCH = "micro-batch"
    REAL_TIME = "real-time"


class Protocol(StrEnum):
    """How the testbed tolerates faults."""

    NONE = "none"
    COORDINATED = "coordinated"
    UNCOORDINATED = "uncoordinated"
    COMMUNICATION_INDUCED = "communication-induced"
    BATCH_ALIGNED = "batch-aligned"
    OUTPUT_LOG = "output-log"


BY_BATCH = (Protocol.BATCH_ALIGNED, Protocol.OUTPUT_LOG)
ACYCLIC_ONLY = (Protocol.COORDINATED, *BY_BATCH)
IN_PARTS = frozenset({NexmarkQuery.Q8, NexmarkQuery.Q12})  # queries whose state has parts


class EngineSpec(Spec):
    """How the query is executed and how it comes back after a failure."""

    name: Annotated[EngineName, Field(description="what executes the workload")] = EngineName.STRUCTURED_STREAMING
    checkpoint_interval_s: Annotated[
        Positive, Field(description="time from one checkpoint to the next; of micro-batches, the trigger interval")
    ] = 8.0
    recovery: Annotated[
        RecoveryMode | None,
        Field(
            description="what the loss of a host leads to: a restart of the query (the default), or a retry of its"
            " tasks; dataflow: which partitions go back, and when; global"
        ),
    ] = None
    trigger: Annotated[TriggerMode, Field(description="how Spark runs the query")] = TriggerMode.MICRO_BATCH
    partitions: Annotated[
        int,
        Field(
            ge=1, le=1000, description="of the input topic, and of each operator unless workload.parallelism says it"
        ),
    ] = 6
    protocol: Annotated[Protocol | None, Field(description="dataflow: how it tolerates faults; coordinated")] = None
    records_per_message: Annotated[
        int | None, Field(ge=1, le=1_000_000, description="dataflow: at most so many records in a message; 1024")
    ] = None
    batch_length_s: Annotated[
        Positive | None,
        Field(description="dataflow, protocol batch-aligned: the time that a batch covers; 0.25"),
    ] = None
    chaining: Annotated[
        bool | None, Field(description="dataflow: whether sources do what maps and filters behind them would; true")
    ] = None
    standby: Annotated[
        int | None,
        Field(ge=0, le=1000, description="dataflow: so many of the slots stand by to take the place of lost ones; 0"),
    ] = None
    tentative: Annotated[
        bool | None,
        Field(
            description="dataflow, partial recovery: whether survivors go on without the input of lost partitions, and"
            " put out tentative results; false"
        ),
    ] = None
    planner: Annotated[
        RecoveryPlanner | None,
        Field(description="dataflow, recovery query-centric: what decides which queries go back first; best-density"),
    ] = None
    planner_limit_s: Annotated[
        Positive | None,
        Field(description="dataflow, planner exact: seconds for the proof that a plan is the best; 1", le=5),
    ] = None
    capacity: Annotated[
        int | None,
        Field(
            ge=1, le=1000, description="dataflow, recovery query-centric: partitions that a slot takes; an even share"
        ),
    ] = None
    log_extent: Annotated[
        int | None,
        Field(
            ge=1,
            description="dataflow, protocol output-log: a partition saves windows while a recovery would read"
            " more entries of its log (Q of cec); no target",
        ),
    ] = None
    log_replay: Annotated[
        int | None,
        Field(
            ge=1,
            description="dataflow, protocol output-log: a partition saves windows while a recovery would"
            " replay more records (U of cec); no target",
        ),
    ] = None
    check_interval_s: Annotated[
        Positive | None,
        Field(
            description="dataflow, protocol output-log: so long in every check period a partition saves windows (CI"
            " of cec); 0.005"
        ),
    ] = None
    check_period_s: Annotated[
        Positive | None, Field(description="dataflow, protocol output-log: the check period (CP of cec); 0.1")
    ] = None
    cpu_limit: Annotated[
        float | None,
        Field(
            gt=0,
            le=1,
            description="dataflow, recovery query-centric: how much of its core a slot gives to partitions, which then"
            " cost what was measured; by default each costs 1 of engine.capacity",
        ),
    ] = None
    store: Annotated[
        Annotated[str, BUCKET] | None,
        Field(description="dataflow: s3://BUCKET/PREFIX for checkpoints; by default a directory of the cluster"),
    ] = None
    store_endpoint: Annotated[
        Annotated[str, ENDPOINT] | None, Field(description="dataflow: of S3, unless it is that of AWS")
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _read_the_default_of_earlier_versions(cls, document: Any) -> Any:
        """Runs of the testbed from before it had strategies have the default of the other engine in their documents,
        which state every field of that time."""
        if isinstance(document, dict) and "trigger" in document and "standby" not in document:
            of_the_testbed = document.get("name") == EngineName.DATAFLOW
            if of_the_testbed and document.get("recovery") == RecoveryMode.QUERY:
                return {**document, "recovery": None}
        return document

    @property
    def recovery_run(self) -> RecoveryMode:
        """How the engine comes back, given or by default."""
        return self.recovery or (STRATEGIES if self.name is EngineName.DATAFLOW else OF_STRUCTURED_STREAMING)[0]

    @property
    def recovers_in_parts(self) -> bool:
        """Whether what was not lost goes on while the rest is brought back."""
        return self.recovery_run in PARTIAL

    @property
    def standby_run(self) -> int:
        """How many slots of the testbed stand by, given or by default."""
        return self.standby or 0

    @property
    def planner_limit_run_s(self) -> float:
        """How long planner `exact` may look for a better plan, given or by default."""
        return self.planner_limit_s or PLANNER_LIMIT_S

    @property
    def tentative_run(self) -> bool:
        """Whether the testbed puts out tentative results, given or by default."""
        return self.tentative is True

    @property
    def protocol_run(self) -> Protocol:
        """The protocol of the testbed, given or by default."""
        return self.protocol or Protocol.COORDINATED

    @property
    def check_pace_run_s(self) -> tuple[float, float]:
        """CI and CP of protocol `output-log`, given or by default."""
        return self.check_interval_s or CHECK_INTERVAL_S, self.check_period_s or CHECK_PERIOD_S

    @property
    def works_in_batches(self) -> bool:
        """Whether the engine reads, processes and commits its input in micro-batches."""
        return self.name is EngineName.STRUCTURED_STREAMING

    @property
    def takes_checkpoints(self) -> bool:
        """Whether the query is ever checkpointed, and with that its output committed; protocol `none` does neither."""
        return self.works_in_batches or self.protocol_run is not Protocol.NONE

    @property
    def records_per_message_run(self) -> int:
        """The bound on messages of the testbed, given or by default."""
        return self.records_per_message or RECORDS_PER_MESSAGE

    @property
    def batch_length_run_s(self) -> float:
        """The length of batches, given or by default: at most the checkpoint interval."""
        return self.batch_length_s or min(BATCH_LENGTH_S, self.checkpoint_interval_s)

    def objects_of(self, run_id: str) -> str | None:
        """Where in S3 the testbed keeps what a run checkpoints; None if that is a directory of the cluster."""
        return f"{self.store}/{run_id}" if self.store else None

    @property
    def chaining_run(self) -> bool:
        """Whether the testbed chains operators, given or by default."""
        return self.chaining is not False

    @property
    def filled_in(self) -> EngineSpec:
        """With what it leaves open and this engine decides."""
        of_the_testbed = ("protocol", "records_per_message", "chaining", "standby", "tentative")
        open_to_it = ("recovery", *(of_the_testbed if self.name is EngineName.DATAFLOW else ()))
        return self.model_copy(update={name: getattr(self, f"{name}_run") for name in open_to_it})


def check_engine(
    engine: EngineSpec, workload: WorkloadSpec, cores: int, kinds: Sequence[FaultKind], *, saturating: bool
) -> None:
    """Raises `Misfit` for the first thing that the engine can't do."""
    if engine.name is EngineName.DATAFLOW:
        _check_testbed(engine, workload, cores, kinds)
    else:
        _check_structured_streaming(engine, workload, cores, saturating=saturating)


def _check_testbed(engine: EngineSpec, workload: WorkloadSpec, cores: int, kinds: Sequence[FaultKind]) -> None:
    if not isinstance(workload, NexmarkSpec | ReachabilitySpec | LayeredSpec | HashtagsSpec | CecPricesSpec):
        allowed = "nexmark, reachability, window-tree, top-100, incidents, hashtags or cec-prices with engine dataflow"
        raise Misfit("workload.name", workload.name.value, allowed)
    if isinstance(workload, ReachabilitySpec) and engine.protocol_run in ACYCLIC_ONLY:
        others = ", ".join(each.value for each in Protocol if each not in ACYCLIC_ONLY)
        allowed = f"{others} with reachability: on its cycle an operator would wait for itself"
        raise Misfit("engine.protocol", engine.protocol_run.value, allowed)
    _check_batches(engine)
    _check_output_log(engine, workload)
    if isinstance(workload, NexmarkSpec) and workload.query not in TESTBED:
        queries = ", ".join(query.value for query in NexmarkQuery if query in TESTBED)
        raise Misfit("workload.query", workload.query.value, f"{queries} with engine dataflow")
    if engine.trigger is not TriggerMode.MICRO_BATCH:
        raise Misfit("engine.trigger", engine.trigger.value, "left out with engine dataflow, which has no triggers")
    _check_recovery(engine, cores)
    if engine.store_endpoint and not engine.store:
        raise Misfit("engine.store_endpoint", engine.store_endpoint, "left out without engine.store")
    if isinstance(workload, LayeredSpec) and engine.partitions != workload.sources:
        name, reason = workload.name.value, "as many as its source has: the first of workload.parallelism"
        allowed = f"{workload.sources} with {name}, {reason}"
        raise Misfit("engine.partitions", engine.partitions, allowed)
    if isinstance(workload, CecPricesSpec) and workload.items < engine.partitions:
        reason = "each has all purchases of its items"
        raise Misfit("workload.items", workload.items, f"at least {engine.partitions}, the partitions: {reason}")
    hosting = cores - engine.standby_run
    if engine.partitions < hosting and engine.recovery_run not in TELL_QUERIES:
        spare = " that does not stand by" if engine.standby_run else ""
        reason = f"each of workers x worker_cores slots{spare} needs a partition"
        raise Misfit("engine.partitions", engine.partitions, f"at least {hosting} with engine dataflow: {reason}")
    if FaultKind.DRIVER_KILL in kinds:
        allowed = "any other kind with engine dataflow: what its coordinator knows dies with it"
        raise Misfit("faults", FaultKind.DRIVER_KILL.value, allowed)


def _check_recovery(engine: EngineSpec, cores: int) -> None:
    mode = engine.recovery_run
    if mode not in STRATEGIES:
        raise Misfit("engine.recovery", mode.value, f"{names(STRATEGIES)} with engine dataflow")
    if engine.recovers_in_parts and engine.protocol_run not in BY_BATCH:
        reason = "what survivors send must not depend on timing"
        allowed = f"{RecoveryMode.GLOBAL.value} unless engine.protocol is batch-aligned or output-log: {reason}"
        raise Misfit("engine.recovery", mode.value, allowed)
    if engine.tentative_run and not engine.recovers_in_parts:
        allowed = f"left out unless engine.recovery is {names(PARTIAL)}: only then do survivors go on"
        raise Misfit("engine.tentative", engine.tentative_run, allowed)
    if engine.planner_limit_s is not None and engine.planner is not RecoveryPlanner.EXACT:
        allowed = "left out unless engine.planner is exact: the others need no limit"
        raise Misfit("engine.planner_limit_s", engine.planner_limit_s, allowed)
    if engine.capacity is not None and engine.cpu_limit is not None:
        raise Misfit(
            "engine.cpu_limit", engine.cpu_limit, "left out with engine.capacity: partitions cost one or other"
        )
    for name in ("planner", "capacity", "cpu_limit"):
        if mode is not RecoveryMode.QUERY_CENTRIC and (value := getattr(engine, name)) is not None:
            raise Misfit(f"engine.{name}", str(value), "left out unless engine.recovery is query-centric")
    if engine.standby_run >= cores:
        allowed = f"at most {cores - 1}: of workers x worker_cores slots, one at least must host partitions"
        raise Misfit("engine.standby", engine.standby_run, allowed)


def _check_batches(engine: EngineSpec) -> None:
    if engine.batch_length_s is None:
        return
    if engine.protocol_run not in BY_BATCH:
        allowed = "left out unless engine.protocol is batch-aligned or output-log"
        raise Misfit("engine.batch_length_s", engine.batch_length_s, allowed)
    if engine.batch_length_s > engine.checkpoint_interval_s:
        allowed = f"at most the checkpoint interval, {engine.checkpoint_interval_s:g}"
        raise Misfit("engine.batch_length_s", engine.batch_length_s, allowed)


def _check_output_log(engine: EngineSpec, workload: WorkloadSpec) -> None:
    if engine.protocol_run is not Protocol.OUTPUT_LOG:
        for name in ("log_extent", "log_replay", "check_interval_s", "check_period_s"):
            if (value := getattr(engine, name)) is not None:
                raise Misfit(f"engine.{name}", value, "left out unless engine.protocol is output-log")
        return
    if not (isinstance(workload, CecPricesSpec) or (isinstance(workload, NexmarkSpec) and workload.query in IN_PARTS)):
        reason = "no operator has a state in parts that could be saved one by one"
        allowed = f"batch-aligned with {workload.title}: {reason}. cec-prices and nexmark q8 and q12 have"
        raise Misfit("engine.protocol", engine.protocol_run.value, allowed)
    if engine.tentative_run:
        allowed = "left out with protocol output-log: nobody has tried it"
        raise Misfit("engine.tentative", engine.tentative_run, allowed)
    interval_s, period_s = engine.check_pace_run_s
    if interval_s >= period_s:
        raise Misfit("engine.check_interval_s", interval_s, f"below the check period, {period_s:g} s (CI below CP)")


def _check_structured_streaming(engine: EngineSpec, workload: WorkloadSpec, cores: int, *, saturating: bool) -> None:
    if isinstance(workload, ReachabilitySpec):
        allowed = "wordcount, nexmark or own-job with engine structured-streaming, which knows no cycles"
        raise Misfit("workload.name", workload.name.value, allowed)
    if isinstance(workload, LayeredSpec | HashtagsSpec):
        reason = "which decides itself what partition reads what"
        allowed = f"wordcount, nexmark or own-job with engine structured-streaming, {reason}"
        raise Misfit("workload.name", workload.name.value, allowed)
    if isinstance(workload, CecPricesSpec):
        reason = "which has no windows of so many records"
        allowed = f"wordcount, nexmark or own-job with engine structured-streaming, {reason}"
        raise Misfit("workload.name", workload.name.value, allowed)
    if engine.recovery_run not in OF_STRUCTURED_STREAMING:
        allowed = f"{names(OF_STRUCTURED_STREAMING)} with engine structured-streaming"
        raise Misfit("engine.recovery", engine.recovery_run.value, allowed)
    for name in OF_THE_TESTBED:
        if (value := getattr(engine, name)) is not None:
            raise Misfit(f"engine.{name}", str(value), "left out with engine structured-streaming: dataflow has it")
    if engine.trigger is TriggerMode.REAL_TIME:
        _check_real_time(engine, workload, cores, saturating=saturating)


def _check_real_time(engine: EngineSpec, workload: WorkloadSpec, cores: int, *, saturating: bool) -> None:
    interval_s = engine.checkpoint_interval_s
    if workload.depth:
        raise _stateful(workload)
    if saturating:
        allowed = "rate in real-time mode: its batches have a set length, which no load can fill"
        raise Misfit("load.mode", "saturating", allowed)
    if interval_s < SHORTEST_REAL_TIME_S:
        allowed = f"at least {SHORTEST_REAL_TIME_S:g} in real-time mode, the shortest batch that Spark runs in it"
        raise Misfit("engine.checkpoint_interval_s", interval_s, allowed)
    if engine.partitions > cores:
        allowed = f"at most {cores} in real-time mode: all tasks run at once, on workers x worker_cores"
        raise Misfit("engine.partitions", engine.partitions, allowed)


def _stateful(workload: WorkloadSpec) -> Misfit:
    """That real-time mode cannot run this workload, by the field that says how deep it is."""
    reason = "in real-time mode: Spark runs no stateful operator in it"
    if isinstance(workload, NexmarkSpec):
        stateless = ", ".join(query.value for query in NexmarkQuery if query in STATELESS)
        return Misfit("workload.query", workload.query.value, f"{stateless} {reason}")
    return Misfit("workload.depth", workload.depth, f"0 {reason}")
