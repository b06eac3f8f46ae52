"""The jobs that are struck: small messages and little credit, so that much is in flight, and files that are exact."""

from __future__ import annotations

import time
from pathlib import Path

from experiments.workloads import NexmarkQuery, NexmarkSpec, ReachabilitySpec
from testbed.core.partition import PartitionLimits
from testbed.operators import Delivery
from testbed.runtime.job import InputKind, Job, JobInput, OutputKind, OutputSpec
from tests.integration.spark_jobs.kills.moments import Moment

CYCLIC = ReachabilitySpec().name
QUERIES = ("q1", "q8", "q12", CYCLIC)
RATE, WINDOW_S = 4000.0, 1.0
# The graph gets denser for ever: with two links for three nodes there are too many paths, with one for ten hardly any.
CYCLIC_RATE, CYCLIC_OVERDUE_S, NODES_A_KILL = 600.0, 10.0, 1200


def job_of(query: str, protocol: str, seed: int, root: Path, slots: int, kills: int) -> Job:
    """A run for so many kills; each slot has one partition of each operator."""
    cyclic = query == CYCLIC
    start_ns = time.time_ns() - round(CYCLIC_OVERDUE_S * 1e9 if cyclic else 0)
    return Job(
        run_id=root.name,
        workload=_graph(seed, kills) if cyclic else _auctions(query, seed),
        protocol=protocol,
        slots=slots,
        parallelism=slots,
        input=JobInput(InputKind.GENERATED, None, start_ns, CYCLIC_RATE if cyclic else RATE),
        output=OutputSpec(OutputKind.FILES, Delivery.EXACTLY_ONCE, str(root / "output")),
        store=str(root / "store"),
        checkpoint_interval_s=0.5,
        batch_length_s=0.1,
        silence_limit_s=3.0,
        limits=PartitionLimits(records_per_message=16, frames_in_flight=4),
    )


def _graph(seed: int, kills: int) -> ReachabilitySpec:
    return ReachabilitySpec(nodes=NODES_A_KILL * kills, stream_seed=seed)


def _auctions(query: str, seed: int) -> NexmarkSpec:
    return NexmarkSpec(query=NexmarkQuery(query), window_s=WINDOW_S, slide_s=WINDOW_S, stream_seed=seed)


def moments_of(job: Job) -> list[Moment]:
    """Those that the job has and that can be seen.

    Only where a partition waits for markers on several channels does one align, and only in a directory does one see
    who writes.
    """
    aligns = job.protocol_class.in_rounds and any(len(each.inputs) > 1 for each in job.layout().partitions)
    seen = {Moment.ALIGNING: aligns, Moment.STORING: Path(job.store).is_absolute()}
    return [moment for moment in Moment if seen.get(moment, True)]
