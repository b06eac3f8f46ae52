"""The description of a job, which passes as JSON to the driver program and from there to every slot."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path

from experiments.errors import BadInput
from experiments.typed_json import TypedJson
from experiments.workloads.hashtags import HashtagsSpec
from infra.broker import Broker
from testbed.core.by_batch.cutting import Batching
from testbed.core.dataflow.chaining import chained
from testbed.core.dataflow.layout import Layout, lay_out
from testbed.core.partition.partition import PartitionLimits
from testbed.core.recovery import Global, RecoveryStrategy
from testbed.operators import Delivery
from testbed.output_log.in_parts import in_parts
from testbed.output_log.policies import Saving
from testbed.protocols import Protocol, by_name
from testbed.queries import TestbedWorkload, dataflow
from testbed.recovery import Blocking, PartiallyActive, QueryCentric
from testbed.recovery import by_name as strategy_by_name
from testbed.recovery.partially_active import standby_needed
from testbed.recovery.query_centric import BEST_DENSITY, PLANNING_S
from testbed.stores.store import DirectoryStore, ObjectStore
from workloads.topics import INPUT, OUTPUT, TENTATIVE_OUTPUT

TENTATIVE_FOLDER = "tentative"


class InputKind(Enum):
    """Where events come from: made on the spot from their positions, or a topic of Kafka."""

    GENERATED = "generated"
    KAFKA = "kafka"


class OutputKind(Enum):
    """Where results go: files, a topic of Kafka, or nowhere, to measure the runtime by itself."""

    FILES = "files"
    KAFKA = "kafka"
    NOWHERE = "nowhere"


@dataclass(frozen=True)
class JobInput:
    """The events at positions 0 to before `events` (None: without end).

    start_ns, rate   generated: event p is due at start_ns + p / rate, and not made before; a start long ago makes the
                     source as fast as it can be
    broker, topic    Kafka: the broker, and its topic, which has as many partitions as the sources
    batch_records    Kafka: events in one message, as an Arrow batch; None: each event is a message, as JSON
    """

    kind: InputKind
    events: int | None
    start_ns: int = 0
    rate: float = 10_000.0
    broker: Broker | None = None
    topic: str = INPUT
    batch_records: int | None = None


@dataclass(frozen=True)
class OutputSpec:
    """Where results go, and in which form.

    folder          of files
    broker, topic   of Kafka
    batch_records   Kafka: the most results in one message, as an Arrow batch; None: each is a message, as JSON
    """

    kind: OutputKind
    delivery: Delivery
    folder: str = ""
    broker: Broker | None = None
    topic: str = OUTPUT
    batch_records: int | None = None

    @property
    def tentative(self) -> OutputSpec:
        """Where tentative results go: a topic or a folder of their own, at least once."""
        folder = f"{self.folder}-{TENTATIVE_FOLDER}" if self.folder else ""
        return replace(self, delivery=Delivery.PLAIN, folder=folder, topic=TENTATIVE_OUTPUT)


@dataclass(frozen=True)
class Job(TypedJson):
    """One run of the testbed.

    run_id                  names its producers at the broker: two runs at one broker must not share it
    slots                   tasks that host partitions
    standby                 tasks more, which take the place of those that are lost
    parallelism             partitions of the input, so of each source, and of each operator unless the workload says it
    replication_ratio       of `partially-active`: the share of partitions that have an active copy
    replication_planner     and what chooses them (`models/replication`)
    copied                  the partitions that have a copy, in place of ratio and planner; none: the planner chooses
    standby_room            lost partitions without a copy that a slot with copies takes, as of `RecoveryStrategy`
    trim_every_s            how often a sink's copy drops output that its primary has published [s]
    adapt_every_s           how often the partitions with a copy are chosen again, by measured rates; None: never
    standby_hosts           the addresses of hosts whose slots all stand by at the start
    domains                 the failure domains of hosts, by their addresses, as far as they are known
    recovery                the strategy by which lost partitions are brought back (`testbed.recovery`)
    tentative               whether partitions go on without the input of those that are down
    planner, capacity       of recovery query-centric: `testbed.recovery.query_centric`
    planner_limit_s         and
    cpu_limit               its limit_s and cores
    spare_lines             how many older lines are kept, in case objects of newer ones can't be read
    chaining                whether sources do what maps and filters behind them would do
    checkpoint_interval_s   between rounds, or between the checkpoints of a partition
    staggered               whether slots take their checkpoints one after the other, evenly spread over the interval
    batch_length_s          by batches: what a batch covers of the time at which records were due
    silence_limit_s         a slot that says nothing for so long is given up
    saving                  of protocol output-log: when parts of states are saved
    store                   where checkpoints and logs are: a folder that every host can reach, or s3://BUCKET/PREFIX
    store_endpoint          of S3, unless it is that of AWS
    store_key_file          has the key of the run's objects, so that a second driver can read them; None: each driver
                            draws its own, and there can be no second one
    """

    run_id: str
    workload: TestbedWorkload
    protocol: str
    slots: int
    parallelism: int
    input: JobInput
    output: OutputSpec
    store: str
    standby: int = 0
    replication_ratio: float = 0.5
    replication_planner: str = "structure-aware"
    copied: tuple[str, ...] = ()
    standby_room: int | None = None
    trim_every_s: float = 1.0
    adapt_every_s: float | None = None
    standby_hosts: tuple[str, ...] = ()
    domains: dict[str, tuple[str, ...]] = field(default_factory=dict)
    recovery: str = Global.name
    tentative: bool = False
    planner: str = BEST_DENSITY
    planner_limit_s: float = PLANNING_S
    capacity: int | None = None
    cpu_limit: float | None = None
    spare_lines: int = 1
    chaining: bool = True
    batch_length_s: float = 0.25
    checkpoint_interval_s: float = 5.0
    staggered: bool = False
    silence_limit_s: float = 5.0
    limits: PartitionLimits = field(default_factory=PartitionLimits)
    saving: Saving = field(default_factory=Saving)
    store_endpoint: str | None = None
    store_key_file: str | None = None

    def __post_init__(self) -> None:
        """Raises `BadInput` for what can't be run."""
        for name in (
            "slots",
            "parallelism",
            "checkpoint_interval_s",
            "batch_length_s",
            "silence_limit_s",
            "trim_every_s",
        ):
            if getattr(self, name) <= 0:
                raise BadInput(name, getattr(self, name), "more than 0")
        if self.parallelism < self.slots and self.strategy not in (Blocking, QueryCentric):
            raise BadInput("parallelism", self.parallelism, f"{self.slots} or more, so that every slot has work")
        if self.standby < 0:
            raise BadInput("standby", self.standby, "0 or more")
        if self.protocol_class.by_batch and self.batch_length_s > self.checkpoint_interval_s:
            allowed = f"at most the checkpoint interval, {self.checkpoint_interval_s:g}"
            raise BadInput("batch_length_s", self.batch_length_s, allowed)
        if self.staggered and not self.protocol_class.on_own_time:
            raise BadInput("staggered", self.staggered, f"false with protocol {self.protocol}, which has no own clocks")
        if (why := self.strategy.check(self.protocol_class)) is not None:
            raise BadInput("recovery", self.recovery, why)
        if self.tentative and (why := self.strategy.why_not_tentative()) is not None:
            raise BadInput("tentative", self.tentative, why)
        if self.input.rate <= 0:
            raise BadInput("input.rate", self.input.rate, "more than 0")
        layout = self.layout()
        self.protocol_class.check(layout)
        strategy = self.brought_back_by()
        if self.strategy is QueryCentric:
            self._check_capacity(len(layout.partitions))
        copies = len(strategy.copied(layout))
        if self.adapt_every_s is not None:
            copies = self._most_copies(strategy, layout, self.adapt_every_s)
        self._require_standby(layout, copies)

    def _most_copies(self, strategy: RecoveryStrategy, layout: Layout, adapt_every_s: float) -> int:
        """How many copies there may be if plans follow the load: the first plan may have fewer than a later one."""
        if adapt_every_s <= 0:
            raise BadInput("adapt_every_s", adapt_every_s, "more than 0")
        if not isinstance(strategy, PartiallyActive) or not 0 < strategy.budget(layout) < len(layout.partitions):
            allowed = "left out unless some partitions have a copy and some have none: there is nothing to choose"
            raise BadInput("adapt_every_s", adapt_every_s, allowed)
        return strategy.budget(layout)

    def _require_standby(self, layout: Layout, copies: int) -> None:
        needed = standby_needed(layout, self.slots, copies)
        if self.standby < needed:
            allowed = f"{needed} or more: {copies} copies need this many slots"
            raise BadInput("standby", self.standby, allowed)

    @property
    def protocol_class(self) -> type[Protocol]:
        """The class of the protocol; raises `BadInput` for an unknown name."""
        return by_name(self.protocol)

    @property
    def strategy(self) -> type[RecoveryStrategy]:
        """The class of the recovery strategy; raises `BadInput` for an unknown name."""
        return strategy_by_name(self.recovery)

    def brought_back_by(self) -> RecoveryStrategy:
        """The recovery strategy with its parameters; raises `BadInput`."""
        if self.strategy is PartiallyActive:
            return PartiallyActive(
                self.replication_ratio, self.replication_planner, named=self.copied, standby_room=self.standby_room
            )
        if self.strategy is Blocking:
            return Blocking(by_room=self.parallelism < self.slots)
        if self.strategy is QueryCentric:
            priorities = self.workload.query_priorities if isinstance(self.workload, HashtagsSpec) else {}
            return QueryCentric(self.capacity, self.planner, priorities, self.planner_limit_s, self.cpu_limit)
        return self.strategy()

    def _check_capacity(self, partitions: int) -> None:
        """Raises `BadInput` if the dataflow could not even start whole."""
        if self.capacity is not None and self.capacity * self.slots < partitions:
            least = -(-partitions // self.slots)
            raise BadInput("capacity", self.capacity, f"{least} or more, to start {partitions} partitions")

    @property
    def partition_limits(self) -> PartitionLimits:
        """Output is kept for others only if they may roll back alone."""
        return self.limits if self.strategy.keeps_output() else replace(self.limits, retained_bytes=None)

    @property
    def batching(self) -> Batching:
        """How partitions that work by batches cut them, and take checkpoints at their borders."""
        batches = round(self.checkpoint_interval_s / self.batch_length_s)
        return Batching(round(self.batch_length_s * 1e9), None if self.strategy.from_sources else batches)

    def layout(self) -> Layout:
        """The same on every host."""
        flow = dataflow(self.workload, self.parallelism, self.output.delivery)
        if self.protocol_class.keeps_log:
            flow = in_parts(flow)
        return lay_out(chained(flow) if self.chaining else flow)

    def object_store(self, store_key: bytes | None = None) -> ObjectStore:
        """With the key of the run; without one it gives back only what it took itself."""
        if not self.store.startswith("s3://"):
            return DirectoryStore(Path(self.store), store_key)
        from testbed.stores.s3 import S3Store  # here, since it takes a while to import

        return S3Store(self.store, self.store_endpoint, store_key=store_key)
