"""The jobs that are struck: small messages and little credit, so that much is in flight, and files that are exact."""

from __future__ import annotations

import time
from pathlib import Path

from experiments.workloads.catalogue import NexmarkQuery, NexmarkSpec, ReachabilitySpec
from experiments.workloads.cec_prices import CecPricesSpec
from experiments.workloads.window_tree import WindowTreeSpec
from testbed.core.partition.partition import PartitionLimits
from testbed.operators import Delivery
from testbed.output_log.policies import CheckPacing, Saving
from testbed.queries import TestbedWorkload
from testbed.runtime.job import InputKind, Job, JobInput, OutputKind, OutputSpec
from tests.integration.testbed.kills.moments import Moment

CYCLIC, TREE, PRICES = ReachabilitySpec().name, WindowTreeSpec().name, CecPricesSpec().name
QUERIES = ("q1", "q8", "q12", CYCLIC, TREE, PRICES)
RATE, WINDOW_S = 4000.0, 1.0
# The graph gets denser for ever: with two links for three nodes there are too many paths, with one for ten hardly any.
CYCLIC_RATE, CYCLIC_OVERDUE_S, NODES_A_KILL = 600.0, 10.0, 1200
# Of protocol `output-log`: windows are saved again all the time.
OFTEN = Saving(extent=500, replay=2000, pace=CheckPacing(interval_s=0.005, period_s=0.02))


def job_of(query: str, protocol: str, seed: int, root: Path, slots: int, kills: int, records: int = 16) -> Job:
    """A run for a number of kills; each slot has one partition of each operator, or its share of a tree.

    `records`: the most in a message. With 1 each operator is a partition of its own, and a range has 16 messages.
    """
    cyclic = query == CYCLIC
    start_ns = time.time_ns() - round(CYCLIC_OVERDUE_S * 1e9 if cyclic else 0)
    workload = _workload(query, seed, kills)
    return Job(
        run_id=root.name,
        workload=workload,
        protocol=protocol,
        slots=slots,
        parallelism=workload.sources if isinstance(workload, WindowTreeSpec) else slots,
        input=JobInput(InputKind.GENERATED, None, start_ns, CYCLIC_RATE if cyclic else RATE),
        output=OutputSpec(OutputKind.FILES, Delivery.EXACTLY_ONCE, str(root / "output")),
        store=str(root / "store"),
        checkpoint_interval_s=0.5,
        batch_length_s=0.1,
        silence_limit_s=3.0,
        saving=OFTEN,
        chaining=records > 1 and query != PRICES,  # the filter is an operator of its own, as in the paper
        limits=PartitionLimits(records_per_message=records, frames_in_flight=4, messages_in_range=16),
    )


def _workload(query: str, seed: int, kills: int) -> TestbedWorkload:
    if query == CYCLIC:
        return ReachabilitySpec(nodes=NODES_A_KILL * kills, stream_seed=seed)
    if query == TREE:
        return WindowTreeSpec(window_s=2 * WINDOW_S, slide_s=WINDOW_S / 2, stream_seed=seed)
    if query == PRICES:
        return CecPricesSpec(items=600, window_records=10, least_price=200, stream_seed=seed)
    return NexmarkSpec(query=NexmarkQuery(query), window_s=WINDOW_S, slide_s=WINDOW_S, stream_seed=seed)


def moments_of(job: Job) -> list[Moment]:
    """Those that the job has and that can be seen.

    A partition aligns only if it waits for markers on several channels. Writers can be seen only if the store is a
    directory; with replay from the sources nothing is written.
    """
    aligns = job.protocol_class.in_rounds and any(len(each.inputs) > 1 for each in job.layout().partitions)
    stores = Path(job.store).is_absolute() and not job.strategy.from_sources
    seen = {Moment.ALIGNING: aligns, Moment.STORING: stores}
    return [moment for moment in Moment if seen.get(moment, True)]
