"""The protocols on clusters of many sizes: throughput, overhead, checkpoint and restart times, all of it simulated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, nan
from statistics import mean

import pandas as pd

from experiments.workloads import NexmarkSpec
from spark_jobs.dataflow.layout import Layout, lay_out
from spark_jobs.dataflow.operators import Delivery
from spark_jobs.dataflow.protocols import PROTOCOLS, Protocol
from spark_jobs.dataflow.queries import dataflow
from spark_jobs.dataflow.scaling.costs import Costs
from spark_jobs.dataflow.scaling.simulation import Cluster, Load

INTERVAL_S = 5.0
WARM_S, MEASURED_S = 5.0, 5.0  # one interval each: every partition takes one checkpoint in either
LOAD_SHARE, FAILURE_S = 0.8, 18.0  # as `checkmate` runs its queries
PROBE_HOOKS, PROBE_STEP_S, PROBE_MOST_S = 20_000, 0.01, 0.5
HOOKS_PER_SECOND = 20_000.0  # of virtual time: more than that are grouped
MOST_GROUPED = 16


@dataclass(frozen=True)
class Point:
    """One protocol on one cluster.

    throughput         records a second that all sources together read when nothing holds them up but the cluster
    message_overhead   bytes sent over those without the protocol's, at 80 % of that
    checkpoint_s       mean, of a round or of a partition's own checkpoint; nan without checkpoints
    restart_s          until a failure at second 18 is mended; nan without checkpoints
    checkpoints        stored by then; `invalid` of them lie beyond the recovery line
    """

    query: str
    protocol: str
    workers: int
    throughput: float
    message_overhead: float
    checkpoint_s: float
    restart_s: float
    checkpoints: int
    invalid: int


def study(
    spec: NexmarkSpec,
    costs: Costs,
    workers: Sequence[int],
    records_per_message: int,
    on_point: Callable[[Point], None] = lambda point: None,
) -> pd.DataFrame:
    """A row for each protocol and number of workers, each number once: the fields of `Point`, and `relative`,
    throughput over that of `none` on as many workers."""
    points = []
    for count in dict.fromkeys(workers):
        layout = lay_out(dataflow(spec, count, Delivery.PLAIN))
        for protocol in PROTOCOLS.values():
            points.append(_point(spec, layout, protocol, costs, records_per_message, count))
            on_point(points[-1])
    table = pd.DataFrame(points)
    base = table[table["protocol"] == "none"].set_index("workers")["throughput"]
    return table.assign(relative=table["throughput"] / table["workers"].map(base))


def _point(
    spec: NexmarkSpec, layout: Layout, protocol: type[Protocol], costs: Costs, records: int, workers: int
) -> Point:
    hook_s, group = _probe(layout, protocol, costs, records)

    def cluster(per_second: float | None) -> Cluster:
        return Cluster(layout, protocol, costs, Load(records, per_second), INTERVAL_S, hook_s=hook_s, group=group)

    saturated = cluster(None)
    saturated.run(WARM_S)
    before = saturated.totals.read_records
    saturated.run(WARM_S + MEASURED_S)
    throughput = (saturated.totals.read_records - before) / MEASURED_S
    loaded = cluster(LOAD_SHARE * throughput)
    loaded.run(FAILURE_S)
    totals, restart = loaded.totals, loaded.restart()
    protected = bool(loaded.checkpoint_seconds)
    return Point(
        query=spec.query.value,
        protocol=protocol.name,
        workers=workers,
        throughput=throughput,
        message_overhead=1 + totals.protocol_bytes / totals.data_bytes,
        checkpoint_s=mean(loaded.checkpoint_seconds) if protected else nan,
        restart_s=restart.seconds if protected else nan,
        checkpoints=restart.stored,
        invalid=restart.undone,
    )


def _probe(layout: Layout, protocol: type[Protocol], costs: Costs, records: int) -> tuple[float, int]:
    """What one of the protocol's hooks takes at this size, and how many messages have to go as one."""
    cluster = Cluster(layout, protocol, costs, Load(records), INTERVAL_S)
    while cluster.totals.hooks < PROBE_HOOKS and cluster.now_s < PROBE_MOST_S:
        cluster.run(cluster.now_s + PROBE_STEP_S)
    totals = cluster.totals
    group = ceil(totals.hooks / cluster.now_s / HOOKS_PER_SECOND)
    return totals.hooks_s / totals.hooks, min(MOST_GROUPED, group)
