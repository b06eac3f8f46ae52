"""Which experiments an engine can't run."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from experiments.documents.parsing import Misfit
from experiments.engines import BY_BATCH, BY_OWN_CLOCK, EngineName, EngineSpec, ProtocolName, TriggerMode
from experiments.fault_kinds import FaultKind
from experiments.recovery_modes import (
    OF_STRUCTURED_STREAMING,
    PARTIAL,
    TELL_QUERIES,
    RecoveryMode,
    RecoveryPlanner,
    names,
)
from experiments.recovery_modes import OF_THE_TESTBED as STRATEGIES
from experiments.workloads.catalogue import (
    STATELESS,
    TESTBED,
    NexmarkQuery,
    NexmarkSpec,
    ReachabilitySpec,
    WorkloadSpec,
)
from experiments.workloads.cec_prices import CecPricesSpec
from experiments.workloads.hashtags import HashtagsSpec
from experiments.workloads.layered import LayeredSpec

CHOOSING = ("replication_ratio", "replication_planner", "adapt_every_s")  # what decides which partitions have a copy
UNSET = (None, ())
ONLY_UNDER = {
    RecoveryMode.QUERY_CENTRIC: ("planner", "capacity", "cpu_limit"),
    RecoveryMode.PARTIALLY_ACTIVE: (*CHOOSING, "copied", "standby_room", "trim_every_s"),
}
OF_THE_TESTBED = (
    *("protocol", "records_per_message", "batch_length_s", "chaining", "standby"),
    *("tentative", "spare_lines", "staggered"),
    *("planner", "planner_limit_s", "capacity", "cpu_limit"),
    *(*CHOOSING, "copied", "standby_room", "trim_every_s"),
    *("log_extent", "log_replay", "log_failure_rate", "check_interval_s", "check_period_s"),
    *("store", "store_endpoint"),
)
ACYCLIC_ONLY = (ProtocolName.COORDINATED, *BY_BATCH)
IN_PARTS = frozenset({NexmarkQuery.Q8, NexmarkQuery.Q12})  # queries whose state has parts
WITHOUT_A_LOG = (RecoveryMode.PARTIALLY_ACTIVE, RecoveryMode.SOURCE_REPLAY)  # strategies that read no output log


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
    if isinstance(workload, NexmarkSpec) and workload.query not in TESTBED:
        queries = ", ".join(query.value for query in NexmarkQuery if query in TESTBED)
        raise Misfit("workload.query", workload.query.value, f"{queries} with engine dataflow")
    if isinstance(workload, ReachabilitySpec) and engine.protocol_run in ACYCLIC_ONLY:
        others = ", ".join(each.value for each in ProtocolName if each not in ACYCLIC_ONLY)
        allowed = f"{others} with reachability: on its cycle an operator would wait for itself"
        raise Misfit("engine.protocol", engine.protocol_run.value, allowed)
    _check_batches(engine)
    _check_output_log(engine, workload)
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
        reason = "each partition has all purchases of its items"
        raise Misfit(
            "workload.items", workload.items, f"at least {engine.partitions}, the number of partitions: {reason}"
        )
    hosting = cores - engine.standby_run
    if engine.partitions < hosting and engine.recovery_run not in TELL_QUERIES:
        spare = " that does not stand by" if engine.standby_run else ""
        reason = f"each of workers x worker_cores slots{spare} needs a partition"
        raise Misfit("engine.partitions", engine.partitions, f"at least {hosting} with engine dataflow: {reason}")
    if FaultKind.DRIVER_KILL in kinds and engine.recovery_run is RecoveryMode.SOURCE_REPLAY:
        allowed = f"any other kind with engine.recovery {RecoveryMode.SOURCE_REPLAY.value}: nothing outlives the driver"
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
    if engine.tentative_run and mode is RecoveryMode.SOURCE_REPLAY:
        allowed = "left out with engine.recovery source-replay: a partition that missed input has no checkpoint"
        raise Misfit("engine.tentative", engine.tentative_run, allowed)
    if engine.store and mode is RecoveryMode.SOURCE_REPLAY:
        raise Misfit("engine.store", engine.store, "left out with engine.recovery source-replay: nothing is stored")
    if engine.planner_limit_s is not None and engine.planner is not RecoveryPlanner.EXACT:
        allowed = "left out unless engine.planner is exact: the others need no limit"
        raise Misfit("engine.planner_limit_s", engine.planner_limit_s, allowed)
    if engine.capacity is not None and engine.cpu_limit is not None:
        raise Misfit(
            "engine.cpu_limit",
            engine.cpu_limit,
            "left out with engine.capacity: a slot has one limit, partitions or CPU",
        )
    for only, fields in ONLY_UNDER.items():
        for name in fields:
            if mode is not only and (value := getattr(engine, name)) not in UNSET:
                raise Misfit(f"engine.{name}", _shown(value), f"left out unless engine.recovery is {only}")
    for name in CHOOSING:
        if engine.copied and (value := getattr(engine, name)) is not None:
            raise Misfit(f"engine.{name}", str(value), "left out with engine.copied, which says what has a copy")
    if engine.spare_lines is not None and engine.protocol_run is not ProtocolName.COORDINATED:
        raise Misfit("engine.spare_lines", engine.spare_lines, "left out unless engine.protocol is coordinated")
    if engine.staggered is not None and engine.protocol_run not in BY_OWN_CLOCK:
        by_clock = " or ".join(protocol.value for protocol in BY_OWN_CLOCK)
        allowed = f"left out unless engine.protocol is {by_clock}: in the others the coordinator or the input decides"
        raise Misfit("engine.staggered", str(engine.staggered).lower(), allowed)
    if engine.standby_run >= cores:
        allowed = f"at most {cores - 1}: of workers x worker_cores slots, one at least must host partitions"
        raise Misfit("engine.standby", engine.standby_run, allowed)


def _shown(value: Any) -> str:
    return f"[{', '.join(value)}]" if isinstance(value, tuple) else str(value)


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
    if engine.protocol_run is not ProtocolName.OUTPUT_LOG:
        for name in ("log_extent", "log_replay", "log_failure_rate", "check_interval_s", "check_period_s"):
            if (value := getattr(engine, name)) is not None:
                raise Misfit(f"engine.{name}", value, "left out unless engine.protocol is output-log")
        return
    if not (isinstance(workload, CecPricesSpec) or (isinstance(workload, NexmarkSpec) and workload.query in IN_PARTS)):
        reason = "no operator has a state in parts that could be saved one by one"
        allowed = f"batch-aligned with {workload.title}: {reason}. cec-prices and nexmark q8 and q12 have"
        raise Misfit("engine.protocol", engine.protocol_run.value, allowed)
    if engine.recovery_run in WITHOUT_A_LOG:
        allowed = f"{names([each for each in STRATEGIES if each not in WITHOUT_A_LOG])} with protocol output-log"
        raise Misfit("engine.recovery", engine.recovery_run.value, allowed)
    if engine.tentative_run:
        allowed = "left out with protocol output-log: this combination was never tested"
        raise Misfit("engine.tentative", engine.tentative_run, allowed)
    if engine.log_failure_rate is not None and (engine.log_extent, engine.log_replay) != (None, None):
        allowed = "left out with engine.log_extent or engine.log_replay: costs or targets decide"
        raise Misfit("engine.log_failure_rate", engine.log_failure_rate, allowed)
    interval_s, period_s = engine.check_pace_run_s
    if interval_s >= period_s and engine.check_interval_s is None:
        raise Misfit("engine.check_period_s", period_s, f"above the check interval, {interval_s:g} s (CI below CP)")
    if interval_s >= period_s:
        raise Misfit("engine.check_interval_s", interval_s, f"below the check period, {period_s:g} s (CI below CP)")


def _check_structured_streaming(engine: EngineSpec, workload: WorkloadSpec, cores: int, *, saturating: bool) -> None:
    if isinstance(workload, ReachabilitySpec):
        allowed = "wordcount, nexmark or own-job with engine structured-streaming, which knows no cycles"
        raise Misfit("workload.name", workload.name.value, allowed)
    if isinstance(workload, LayeredSpec | HashtagsSpec):
        reason = "in which Spark decides which partition reads what"
        allowed = f"wordcount, nexmark or own-job with engine structured-streaming, {reason}"
        raise Misfit("workload.name", workload.name.value, allowed)
    if isinstance(workload, CecPricesSpec):
        reason = "which has no count windows"
        allowed = f"wordcount, nexmark or own-job with engine structured-streaming, {reason}"
        raise Misfit("workload.name", workload.name.value, allowed)
    if engine.recovery_run not in OF_STRUCTURED_STREAMING:
        allowed = f"{names(OF_STRUCTURED_STREAMING)} with engine structured-streaming"
        raise Misfit("engine.recovery", engine.recovery_run.value, allowed)
    for name in OF_THE_TESTBED:
        if (value := getattr(engine, name)) not in UNSET:
            raise Misfit(f"engine.{name}", _shown(value), "left out with engine structured-streaming: dataflow has it")
    if engine.trigger is TriggerMode.REAL_TIME:
        _check_real_time(engine, workload, cores, saturating=saturating)


def _check_real_time(engine: EngineSpec, workload: WorkloadSpec, cores: int, *, saturating: bool) -> None:
    interval_s = engine.checkpoint_interval_s
    if workload.depth:
        raise _stateful(workload)
    if saturating:
        allowed = "rate in real-time mode: its batches have a set length, which no load can fill"
        raise Misfit("load.mode", "saturating", allowed)
    if interval_s < engine.shortest_interval_s:
        allowed = f"at least {engine.shortest_interval_s:g} in real-time mode, the shortest batch that Spark runs in it"
        raise Misfit("engine.checkpoint_interval_s", interval_s, allowed)
    if engine.partitions > cores:
        allowed = f"at most {cores} in real-time mode: all tasks run at once, on workers x worker_cores"
        raise Misfit("engine.partitions", engine.partitions, allowed)


def _stateful(workload: WorkloadSpec) -> Misfit:
    """That real-time mode cannot run this workload, by the field that says how deep it is."""
    reason = f"in real-time mode: Spark {version('pyspark')} runs no stateful operator in it"
    if isinstance(workload, NexmarkSpec):
        stateless = ", ".join(query.value for query in NexmarkQuery if query in STATELESS)
        return Misfit("workload.query", workload.query.value, f"{stateless} {reason}")
    return Misfit("workload.depth", workload.depth, f"0 {reason}")
