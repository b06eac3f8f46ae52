"""Events of the testbed's driver program (`spark_jobs.testbed`, `testbed.runtime.server.server`).

A position is how far a source has read; positions and lines are by the name of the partition, such as `bids.0`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from journal.codec import Vocabulary
from journal.event import Event
from journal.events.common import DriverStarted, DriverStopped, ExecutorsLost, Failed

Positions = Mapping[str, int]


class RunPhase(StrEnum):
    """What the coordinator is at, in the words of its own phases (`testbed.core.coordinator.coordinator.Phase`)."""

    WAITING = "waiting"
    RESTORING = "restoring"
    RUNNING = "running"


@dataclass(frozen=True)
class ExecutorsUp(Event, name="executors-up"):
    """Spark's scheduler has these executors now."""

    executors: tuple[str, ...]


@dataclass(frozen=True)
class WorkerJoined(Event, name="worker-joined"):
    """A slot said hello from this host: which Spark task it is, on its so manieth attempt."""

    worker: str
    task: int
    attempt: int
    host: str


@dataclass(frozen=True)
class WorkerLost(Event, name="worker-lost"):
    """A slot is gone, or was given up.

    partitions   those that it had, without those that waited there for room; none if it stood by; None in journals from
                 before slots could
    """

    worker: str
    task: int
    why: str
    partitions: tuple[str, ...] | None = None


@dataclass(frozen=True)
class GuestRefused(Event, name="guest-refused"):
    """A connection that was no slot of the run was closed."""

    worker: str
    why: str


@dataclass(frozen=True)
class SlotFailed(Event, name="slot-failed"):
    """A slot ended by its own fault."""

    worker: str
    error: str


@dataclass(frozen=True)
class Recovering(Event, name="recovering"):
    """A recovery begins from a line of checkpoints: their numbers by partition, and where that has the sources.

    restored   the partitions that roll back; the others go on, or were lost again before anybody was told
    promoted   those that do not roll back, because a copy takes their place, unless they were lost again as well
    reached    for each partition that rolls back or is promoted, its progress by its reports: for each input channel
               the number of the last data; for a source its position, on channel -1
    """

    epoch: int
    line: Mapping[str, int]
    positions: Positions
    restored: tuple[str, ...] = ()
    promoted: tuple[str, ...] = ()
    reached: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Copied(Event, name="copied"):
    """Which partitions have a copy now, and the worker that has it."""

    epoch: int
    workers: Mapping[str, str]


@dataclass(frozen=True)
class PlanChanged(Event, name="plan-changed"):
    """From now on these partitions shall have a copy, and no others, because rates have changed.

    fidelity, fidelity_before   output fidelity in the worst case under these rates: of this plan, of the one before
    """

    copied: tuple[str, ...]
    fidelity: float
    fidelity_before: float


@dataclass(frozen=True)
class FellBack(Event, name="fell-back"):
    """The run goes on in another way than the experiment says: what is done instead, and why.

    recovery, protocol  those that the run has instead; None if only a planner left a plan to another
    """

    why: str
    recovery: str | None = None
    protocol: str | None = None


@dataclass(frozen=True)
class QueriesWaiting(Event, name="queries-waiting"):
    """From now on these queries wait for room, those of the highest priority first; none if all were restored."""

    queries: tuple[str, ...]


@dataclass(frozen=True)
class CostsMeasured(Event, name="costs-measured"):
    """By which costs lost partitions are planned now: the cores that each partition takes."""

    cores: Mapping[str, float]


@dataclass(frozen=True)
class PartitionLoaded(Event, name="partition-loaded"):
    """A restored partition has its state again: how long reading and rebuilding it took [s], and what was read."""

    partition: str
    epoch: int
    seconds: float
    size_bytes: int


@dataclass(frozen=True)
class PartitionReached(Event, name="partition-reached"):
    """A restored partition has reached its earlier progress: what it has processed from its restore until now.

    A source reports the records that it has read, and no bytes.
    """

    partition: str
    epoch: int
    records: int
    size_bytes: int


@dataclass(frozen=True)
class PartitionsAbsent(Event, name="partitions-absent"):
    """From now on nothing comes from these partitions, and the others go on without; none if all is there again.

    They were lost and are not restored yet, or get input only from such partitions.
    """

    partitions: tuple[str, ...]


@dataclass(frozen=True)
class PartitionTentative(Event, name="partition-tentative"):
    """A partition goes on without some of its input, from this batch until it is restored."""

    partition: str
    epoch: int
    batch: int


@dataclass(frozen=True)
class EpochReady(Event, name="ready"):
    """Every partition is restored and the sources read; `tasks` are the Spark tasks of the slots."""

    epoch: int
    tasks: tuple[int, ...]


@dataclass(frozen=True)
class RoundStarted(Event, name="round-started"):
    """The coordinator asked for a round of checkpoints."""

    epoch: int
    number: int


@dataclass(frozen=True)
class RoundStored(Event, name="round-stored"):
    """Every checkpoint of a round is stored."""

    epoch: int
    number: int


@dataclass(frozen=True)
class CheckpointStored(Event, name="checkpoint"):
    """A checkpoint was stored: how long that took from the moment that it was taken [s], its size, and that moment.

    taken_ns   None in journals from before slots told of it
    """

    partition: str
    number: int
    seconds: float
    size_bytes: int
    forced: bool
    taken_ns: int | None = None


@dataclass(frozen=True)
class CheckpointRefused(Event, name="checkpoint-refused"):
    """The store refused a checkpoint. The next one makes up for it, or this one is written again."""

    partition: str
    number: int
    error: str


@dataclass(frozen=True)
class StoreSlow(Event, name="store-slow"):
    """A slot has waited for the store for so long [s], or the driver has if `worker` is `driver`.

    As long as the store does not answer, the slot stores no checkpoint, what the driver orders does not begin, and the
    end of a run is not confirmed, so it does not finish.
    """

    worker: str
    seconds: float


@dataclass(frozen=True)
class Committed(Event, name="committed"):
    """All output up to a line of checkpoints is published: where that has the sources."""

    positions: Positions


@dataclass(frozen=True)
class Report(Event, name="progress"):
    """What the slots report twice a second.

    tallies       the counts of each partition (`testbed.core.partition.partition.Tally`)
    positions     where the sources are
    slots         how many slots have partitions; the other figures are theirs
    sent_bytes    what slots have sent to each other
    cpu_s         CPU time of their processes [s]
    idle_s        time in which they had nothing to do [s]
    checkpoint_s  time for checkpoints [s]
    logs          by partition that keeps an output log what that has and costs
    reached       how far each partition has ever been, as of `Recovering`, if partitions recover on their own
    """

    epoch: int
    phase: RunPhase
    tallies: Mapping[str, Mapping[str, int]]
    positions: Positions
    slots: int
    sent_bytes: int
    cpu_s: float
    idle_s: float
    checkpoint_s: float
    logs: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    reached: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def is_running(self) -> bool:
        """Whether the sources read at this moment."""
        return self.phase is RunPhase.RUNNING


@dataclass(frozen=True)
class PartitionCost:
    """What a partition has taken since this worker hosts it: CPU time for processing and for checkpoints [s], records,
    of a copy the size of the messages that have come for it, and the size of the output that it keeps in memory."""

    worker: str
    processing_s: float
    checkpoint_s: float
    records: int
    input_bytes: int
    retained_bytes: int


@dataclass(frozen=True)
class Costs(Event, name="costs"):
    """What partitions and their copies have taken, once a second, as far as they are restored."""

    primaries: Mapping[str, PartitionCost]
    copies: Mapping[str, PartitionCost]


@dataclass(frozen=True)
class Undeleted(Event, name="undeleted"):
    """The object store refused to delete, or to list, objects that are no longer needed."""

    error: str


@dataclass(frozen=True)
class Draining(Event, name="draining"):
    """The sources were told to end where they are."""


@dataclass(frozen=True)
class Finished(Event, name="finished"):
    """The output is complete: where that has the sources."""

    positions: Positions


@dataclass(frozen=True)
class PartMeasured(Event, name="calibration"):
    """A part of the calibration, on the input in a topic, was measured.

    service_rate, load_rate  [events/s]
    overhead_s               what the checkpoints of one interval cost a slot [s]
    """

    topic: str
    events: int
    service_rate: float
    overhead_s: float
    load_rate: float


@dataclass(frozen=True)
class TestbedCalibrated(Event, name="calibrated"):
    """The calibration's result, as of its last part."""

    service_rate: float
    overhead_s: float
    load_rate: float


TESTBED: Vocabulary[Event] = Vocabulary(
    DriverStarted,
    DriverStopped,
    Failed,
    ExecutorsLost,
    ExecutorsUp,
    WorkerJoined,
    WorkerLost,
    GuestRefused,
    SlotFailed,
    Recovering,
    Copied,
    PlanChanged,
    FellBack,
    QueriesWaiting,
    CostsMeasured,
    PartitionLoaded,
    PartitionReached,
    PartitionsAbsent,
    PartitionTentative,
    EpochReady,
    RoundStarted,
    RoundStored,
    CheckpointStored,
    CheckpointRefused,
    StoreSlow,
    Committed,
    Report,
    Costs,
    Undeleted,
    Draining,
    Finished,
    PartMeasured,
    TestbedCalibrated,
)
FALLBACKS: Vocabulary[FellBack] = Vocabulary(FellBack)
