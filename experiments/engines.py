"""The engines: their fields, and which experiments each engine cannot run."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from experiments.documents.field_types import Spelling
from experiments.documents.parsing import Positive, Spec
from experiments.recovery_modes import (
    OF_STRUCTURED_STREAMING,
    PARTIAL,
    RecoveryMode,
    RecoveryPlanner,
    ReplicationPlanner,
)
from experiments.recovery_modes import OF_THE_TESTBED as STRATEGIES
from experiments.workloads.base import LONGEST_S

SHORTEST_S = 0.001  # of a trigger interval: Spark takes whole milliseconds
SHORTEST_REAL_TIME_S = 5.0  # Spark's spark.sql.streaming.realTimeMode.minBatchDuration
RECORDS_PER_MESSAGE = 1024
BATCH_LENGTH_S = 0.25
REPLICATION_RATIO = 0.5
SPARE_LINES = 1
TRIM_EVERY_S = 1.0
CHECK_INTERVAL_S, CHECK_PERIOD_S = 0.005, 0.1
MOST_IN_A_LOG = 10**12  # entries or records; from 2**63 on, no document of a run holds a number
PLANNER_LIMIT_S = 1.0
BUCKET = Spelling(
    r"^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9._-]+)*$", "s3://BUCKET/PREFIX, a directory if it is left out"
)
ENDPOINT = Spelling(r"^https?://[^\s/@]+$", "http://HOST:PORT or https://HOST, without a user")


class EngineName(StrEnum):
    """What executes the query."""

    STRUCTURED_STREAMING = "structured-streaming"
    DATAFLOW = "dataflow"  # the protocol testbed


class TriggerMode(StrEnum):
    """How Spark runs the query: in batches of what has arrived, or in batches of a fixed length that emit at once."""

    MICRO_BATCH = "micro-batch"
    REAL_TIME = "real-time"


class ProtocolName(StrEnum):
    """How the testbed tolerates faults."""

    NONE = "none"
    COORDINATED = "coordinated"
    UNCOORDINATED = "uncoordinated"
    COMMUNICATION_INDUCED = "communication-induced"
    BATCH_ALIGNED = "batch-aligned"
    OUTPUT_LOG = "output-log"


BY_BATCH = (ProtocolName.BATCH_ALIGNED, ProtocolName.OUTPUT_LOG)
BY_OWN_CLOCK = (ProtocolName.UNCOORDINATED, ProtocolName.COMMUNICATION_INDUCED)


class EngineSpec(Spec):
    """How the query is executed and how it comes back after a failure."""

    name: Annotated[EngineName, Field(description="engine that executes the workload; `dataflow` is the testbed")] = (
        EngineName.STRUCTURED_STREAMING
    )
    checkpoint_interval_s: Annotated[
        float,
        Field(
            ge=SHORTEST_S,
            le=LONGEST_S,
            description="time from one checkpoint to the next; with micro-batches, the trigger interval; at most"
            " `window_s`",
        ),
    ] = 8.0
    recovery: Annotated[
        RecoveryMode | None,
        Field(
            description="what happens after the loss of a host: `query` (the default) restarts the query, `task`"
            " retries the lost tasks; dataflow: which partitions roll back, and when; default: global"
        ),
    ] = None
    trigger: Annotated[TriggerMode, Field(description="how Spark runs the query")] = TriggerMode.MICRO_BATCH
    partitions: Annotated[
        int,
        Field(
            ge=1,
            le=1000,
            description="partitions of the input topic and of each operator; where there is a workload.parallelism, its"
            " first number",
        ),
    ] = 6
    protocol: Annotated[
        ProtocolName | None, Field(description="dataflow: checkpointing protocol; default: coordinated")
    ] = None
    records_per_message: Annotated[
        int | None,
        Field(
            ge=1,
            le=1_000_000,
            description=f"dataflow: the most records in a message; default: {RECORDS_PER_MESSAGE}",
        ),
    ] = None
    batch_length_s: Annotated[
        float | None,
        Field(
            ge=SHORTEST_S,
            le=LONGEST_S,
            description="dataflow, protocols batch-aligned and output-log: time that a batch covers [s];"
            f" default: {BATCH_LENGTH_S:g}, or the checkpoint interval if that is shorter",
        ),
    ] = None
    chaining: Annotated[
        bool | None,
        Field(description="dataflow: whether sources execute the maps and filters that follow them; default: true"),
    ] = None
    standby: Annotated[
        int | None,
        Field(ge=0, le=1000, description="dataflow: number of standby slots, which replace lost ones; default: 0"),
    ] = None
    tentative: Annotated[
        bool | None,
        Field(
            description="dataflow, partial recovery: whether survivors go on without the input of lost partitions, and"
            " emit tentative results; default: false"
        ),
    ] = None
    planner: Annotated[
        RecoveryPlanner | None,
        Field(
            description="dataflow, recovery query-centric: planner that decides which"
            " queries are recovered first; default: best-density"
        ),
    ] = None
    planner_limit_s: Annotated[
        Positive | None,
        Field(
            description="dataflow, planner exact: time limit for the proof that a plan is the best [s];"
            f" default: {PLANNER_LIMIT_S:g}",
            le=1,
        ),
    ] = None
    capacity: Annotated[
        int | None,
        Field(
            ge=1,
            le=1000,
            description="dataflow, recovery query-centric: how many partitions a slot takes; default: an even share",
        ),
    ] = None
    replication_ratio: Annotated[
        float | None,
        Field(
            ge=0,
            le=1,
            description="dataflow, recovery partially-active: share of partitions that have a copy;"
            f" default: {REPLICATION_RATIO:g}",
        ),
    ] = None
    replication_planner: Annotated[
        ReplicationPlanner | None,
        Field(
            description="dataflow, recovery partially-active: planner that chooses the copies; default: structure-aware"
        ),
    ] = None
    copied: Annotated[
        tuple[str, ...],
        Field(
            description="dataflow, recovery partially-active: the partitions that have a copy, such as [window-1.0,"
            " out.0]; default: what the planner chooses"
        ),
    ] = ()
    standby_room: Annotated[
        int | None,
        Field(
            ge=0,
            le=1000,
            description="dataflow, recovery partially-active: a slot with copies takes lost partitions without a copy"
            " until it hosts this many; default: as many as the largest slot has",
        ),
    ] = None
    trim_every_s: Annotated[
        Positive | None,
        Field(
            description="dataflow, recovery partially-active: how often a sink's copy drops output that its primary has"
            f" published [s]; default: {TRIM_EVERY_S:g}"
        ),
    ] = None
    adapt_every_s: Annotated[
        Positive | None,
        Field(
            description="dataflow, recovery partially-active: how often the coordinator chooses again, from measured"
            " rates, which partitions have a copy [s]; default: never"
        ),
    ] = None
    log_extent: Annotated[
        int | None,
        Field(
            ge=1,
            le=MOST_IN_A_LOG,
            description="dataflow, protocol output-log: a partition saves windows as long as a recovery would"
            " read more entries of its log than this (Q in paper cec); default: no target",
        ),
    ] = None
    log_replay: Annotated[
        int | None,
        Field(
            ge=1,
            le=MOST_IN_A_LOG,
            description="dataflow, protocol output-log: a partition saves windows as long as a recovery would"
            " replay more records than this (U in paper cec); default: no target",
        ),
    ] = None
    log_failure_rate: Annotated[
        Positive | None,
        Field(
            description="dataflow, protocol output-log: expected failures of a partition per second; instead of"
            " following a target, the partition then saves windows as long as this costs less time than it is"
            " expected to save in recoveries, by measured costs"
        ),
    ] = None
    check_interval_s: Annotated[
        Positive | None,
        Field(
            description="dataflow, protocol output-log: how long a partition saves windows in every check period [s]"
            f" (CI in paper cec); default: {CHECK_INTERVAL_S:g}"
        ),
    ] = None
    check_period_s: Annotated[
        Positive | None,
        Field(
            description="dataflow, protocol output-log: the check period [s] (CP in paper cec);"
            f" default: {CHECK_PERIOD_S:g}"
        ),
    ] = None
    cpu_limit: Annotated[
        float | None,
        Field(
            gt=0,
            le=1,
            description="dataflow, recovery query-centric: share of its core that a slot gives to partitions; the cost"
            " of a partition is then its measured CPU time; by default each partition costs 1 of engine.capacity",
        ),
    ] = None
    spare_lines: Annotated[
        int | None,
        Field(
            ge=0,
            le=10,
            description="dataflow, protocol coordinated: number of older recovery lines to keep, in case objects of"
            f" newer ones cannot be read; output waits until this many lines follow; default: {SPARE_LINES}",
        ),
    ] = None
    staggered: Annotated[
        bool | None,
        Field(
            description="dataflow, protocols uncoordinated and communication-induced: whether slots take their"
            " checkpoints one after the other, evenly spread over the interval, like hosts whose clocks are not in"
            " step; default: false, so all take them at the same time"
        ),
    ] = None
    store: Annotated[
        Annotated[str, BUCKET] | None,
        Field(description="dataflow: s3://BUCKET/PREFIX for checkpoints; by default a directory of the cluster"),
    ] = None
    store_endpoint: Annotated[
        Annotated[str, ENDPOINT] | None,
        Field(description="dataflow: address of the S3 service; by default that of AWS"),
    ] = None

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
    def spare_lines_run(self) -> int:
        """How many older lines of checkpoints the testbed keeps, given or by default."""
        return SPARE_LINES if self.spare_lines is None else self.spare_lines

    @property
    def staggered_run(self) -> bool:
        """Whether slots of the testbed take their checkpoints one after the other, given or by default."""
        return self.staggered is True

    @property
    def planner_limit_run_s(self) -> float:
        """How long planner `exact` may look for a better plan, given or by default."""
        return self.planner_limit_s or PLANNER_LIMIT_S

    @property
    def tentative_run(self) -> bool:
        """Whether the testbed emits tentative results, given or by default."""
        return self.tentative is True

    @property
    def replication_ratio_run(self) -> float:
        """The share of partitions that have an active copy, given or by default."""
        if self.recovery_run is not RecoveryMode.PARTIALLY_ACTIVE:
            return 0.0
        return REPLICATION_RATIO if self.replication_ratio is None else self.replication_ratio

    @property
    def replication_planner_run(self) -> ReplicationPlanner:
        """What decides which partitions have a copy, given or by default."""
        return self.replication_planner or ReplicationPlanner.STRUCTURE_AWARE

    @property
    def trim_every_run_s(self) -> float:
        """How often a sink's copy drops output that its primary has published [s], given or by default."""
        return self.trim_every_s or TRIM_EVERY_S

    @property
    def protocol_run(self) -> ProtocolName:
        """The protocol of the testbed, given or by default."""
        return self.protocol or ProtocolName.COORDINATED

    @property
    def check_pace_run_s(self) -> tuple[float, float]:
        """CI and CP of protocol `output-log`, given or by default."""
        return self.check_interval_s or CHECK_INTERVAL_S, self.check_period_s or CHECK_PERIOD_S

    @property
    def shortest_interval_s(self) -> float:
        """The shortest checkpoint interval that the engine can run."""
        return SHORTEST_REAL_TIME_S if self.trigger is TriggerMode.REAL_TIME else SHORTEST_S

    @property
    def works_in_batches(self) -> bool:
        """Whether the engine reads, processes and commits its input in micro-batches."""
        return self.name is EngineName.STRUCTURED_STREAMING

    @property
    def takes_checkpoints(self) -> bool:
        """Whether the query is ever checkpointed, and with that its output committed: not with protocol `none`, nor if
        what is lost is made again from the sources."""
        never = self.protocol_run is ProtocolName.NONE or self.recovery_run is RecoveryMode.SOURCE_REPLAY
        return self.works_in_batches or not never

    @property
    def puts_out_by_batch(self) -> bool:
        """Whether output is out for good batch by batch of the testbed, whenever checkpoints are taken."""
        return not self.works_in_batches and self.protocol_run in BY_BATCH

    @property
    def puts_out_once(self) -> bool:
        """Whether a failure duplicates no output: not with protocol `none`, whose output has no numbers."""
        return self.works_in_batches or self.protocol_run is not ProtocolName.NONE

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
