"""Which experiments can't have their input in Arrow batches."""

from __future__ import annotations

from experiments.documents.parsing import Misfit
from experiments.engines import EngineName, EngineSpec
from experiments.loads import LoadMode, LoadSpec
from experiments.workloads.catalogue import NexmarkSpec, WorkloadSpec

FIELD = "load.batch_records"


def check_batches(load: LoadSpec, engine: EngineSpec, workload: WorkloadSpec) -> None:
    """Raises `Misfit` for batches of input that no generator makes, that no source reads, or that would not fill up."""
    records = load.batch_records
    if records is None:
        return
    if engine.name is not EngineName.DATAFLOW:
        raise Misfit(FIELD, records, f"left out with engine {engine.name.value}: only dataflow reads Arrow batches")
    if not isinstance(workload, NexmarkSpec):
        raise Misfit(FIELD, records, f"left out with {workload.title}: only nexmark has its events as Arrow batches")
    most = most_in_batch(load, engine, load.rate)
    if load.mode is not LoadMode.SATURATING and records > most:
        reason = "a partition is to get a full batch in each checkpoint interval"
        share = f" and load.share {load.share:g}" if load.mode is LoadMode.SUSTAINABLE else ""
        at = f"at load.rate {load.rate:g}{share}"
        allowed = f"at most {most} {at} on {engine.partitions} partitions: {reason}"
        raise Misfit(FIELD, records, allowed if most else f"left out {at}: {reason}")


def most_in_batch(load: LoadSpec, engine: EngineSpec, rate: float) -> int:
    """With how many records a partition still gets a full batch in each checkpoint interval.

    In mode sustainable the window has only a share of the `rate` [records/s] that a probe found sustained: that counts.
    """
    slowest = load.share * rate if load.mode is LoadMode.SUSTAINABLE else rate
    return int(slowest * engine.checkpoint_interval_s / engine.partitions)
