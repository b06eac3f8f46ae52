"""Which experiments can't have their input in Arrow batches."""

from __future__ import annotations

from experiments.engines import EngineName, EngineSpec
from experiments.loads import LoadMode, LoadSpec
from experiments.parsing import Misfit
from experiments.workloads import NexmarkSpec, WorkloadSpec

FIELD = "load.batch_records"


def check_batches(load: LoadSpec, engine: EngineSpec, workload: WorkloadSpec) -> None:
    """Raises `Misfit` if the input is to be in batches that nobody would make or read, or that would not fill up."""
    records = load.batch_records
    if records is None:
        return
    if engine.name is not EngineName.DATAFLOW:
        raise Misfit(FIELD, records, f"left out with engine {engine.name.value}: only dataflow reads Arrow batches")
    if not isinstance(workload, NexmarkSpec):
        raise Misfit(FIELD, records, f"left out with {workload.title}: only nexmark has its events as Arrow batches")
    most = int(load.rate * engine.checkpoint_interval_s / engine.partitions)
    if load.mode is not LoadMode.SATURATING and records > most:
        reason = "a partition is to get a full batch in each checkpoint interval"
        allowed = f"at most {most} at load.rate {load.rate:g} on {engine.partitions} partitions: {reason}"
        raise Misfit(FIELD, records, allowed if most else f"left out at load.rate {load.rate:g}: {reason}")
