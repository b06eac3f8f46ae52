"""The protocols on simulated clusters of many sizes: throughput, overhead, checkpoint and restart times."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil, nan
from statistics import mean
from typing import NamedTuple

import pandas as pd

from experiments.workloads.catalogue import NexmarkSpec
from testbed.core.dataflow.layout import lay_out
from testbed.operators import Delivery
from testbed.protocols import PROTOCOLS, Protocol
from testbed.queries import dataflow
from testbed.scaling.cluster import Cluster, Load, Restart
from testbed.scaling.costs import Costs

INTERVAL_S = 5.0
WARM_S, MEASURED_S = 1.0, INTERVAL_S  # every partition takes one checkpoint in what is measured
LOAD_SHARE, FAILURE_S = 0.8, 18.0  # as `checkmate` runs its queries
FAILURES = range(-5, 5)  # failures before and after that one (0), `APART` of a checkpoint interval apart
APART = 0.3  # so that their ages of the last checkpoint are a tenth of the interval apart
CLOCK_READS = 10_000
PROBE_HOOKS, PROBE_STEP_S, PROBE_MOST_S = 20_000, 0.01, 0.5
HOOKS_PER_SECOND = 20_000.0  # of virtual time: more than that are grouped
MOST_GROUPED, TURN_S = 16, 0.005  # more only if a worker has done with them in a turn of a slot's loop


class SaturatedCluster(NamedTuple):
    """What a cluster comes to that nothing holds up but itself.

    throughput         records a second that all sources together read
    message_overhead   bytes sent over those without the protocol's
    """

    throughput: float
    message_overhead: float


@dataclass(frozen=True)
class LoadedCluster:
    """What a cluster under some load had come to when it failed.

    message_overhead     as of `SaturatedCluster`
    checkpoint_seconds   of every round, or of every partition's own checkpoint
    restart_s            until a failure is mended, mean of failures at several moments; nan without checkpoints
    checkpoints          stored by then; `invalid` of them lie beyond the recovery line
    """

    message_overhead: float
    checkpoint_seconds: tuple[float, ...]
    restart_s: float
    checkpoints: int
    invalid: int


class Deployment:
    """A query with a protocol on a number of simulated workers, with a limit of records per message.

    Workers that are `staggered` take their own checkpoints one after the other.

    What a hook of the protocol takes is timed here as it is made, which takes some tenths of a second: `hook_s`, in CPU
    seconds, so that it is the same on a busy machine.
    """

    def __init__(
        self,
        spec: NexmarkSpec,
        protocol: type[Protocol],
        costs: Costs,
        workers: int,
        records_per_message: int,
        staggered: bool = False,
    ) -> None:
        self._protocol, self._costs, self._records = protocol, costs, records_per_message
        self._staggered = staggered
        self._layout = lay_out(dataflow(spec, workers, Delivery.PLAIN))
        probe = Cluster(self._layout, protocol, costs, Load(records_per_message), INTERVAL_S)
        while probe.totals.hooks < PROBE_HOOKS and probe.now_s < PROBE_MOST_S:
            probe.run(probe.now_s + PROBE_STEP_S)
        totals = probe.totals
        self.hook_s = max(0.0, totals.hooks_s / totals.hooks - _clock_s())
        self._hooks_per_record = totals.hooks / totals.read_records
        self._records_per_second = totals.read_records / probe.now_s
        batch_s = workers * records_per_message / self._records_per_second
        self._most_grouped = max(MOST_GROUPED, int(TURN_S / batch_s))

    def saturated(self) -> SaturatedCluster:
        """Once what is under way has settled."""
        cluster = self._cluster(self._records_per_second, Load(self._records))
        cluster.run(WARM_S)
        before = cluster.totals.read_records
        cluster.run(WARM_S + MEASURED_S)
        return SaturatedCluster((cluster.totals.read_records - before) / MEASURED_S, cluster.totals.message_overhead)

    def under(self, per_second: float) -> LoadedCluster:
        """The result of a failure at second 18, under a load of `per_second` records/s of all sources together.

        How long a restart takes depends on chance: a log is read whole if one of its messages is in flight at the line.
        So it is the mean of failures at ten moments around that second, evenly spread over the interval of checkpoints.
        """
        loaded = self._cluster(per_second, Load(self._records, per_second))
        restarts: dict[int, Restart] = {}
        for number in FAILURES:
            loaded.run(FAILURE_S + APART * number * INTERVAL_S)
            restarts[number] = loaded.restart()
            if number == 0:
                overhead, seconds = loaded.totals.message_overhead, tuple(loaded.checkpoint_seconds)
        restart_s = mean(each.seconds for each in restarts.values()) if seconds else nan
        return LoadedCluster(overhead, seconds, restart_s, restarts[0].stored, restarts[0].undone)

    def _cluster(self, per_second: float, load: Load) -> Cluster:
        """A cluster that reads about `per_second` records/s, with messages in groups that are large enough for that."""
        group = min(self._most_grouped, max(1, ceil(self._hooks_per_record * per_second / HOOKS_PER_SECOND)))
        arguments = (self._layout, self._protocol, self._costs, load, INTERVAL_S)
        return Cluster(*arguments, hook_s=self.hook_s, group=group, staggered=self._staggered)


@cache
def _clock_s() -> float:
    """CPU seconds of reading the clock of a hook once: as much as a short hook, so that it must be taken off."""
    total_s = 0.0
    for _ in range(CLOCK_READS):
        begun_s = time.thread_time()
        total_s += time.thread_time() - begun_s
    return total_s / CLOCK_READS


@dataclass(frozen=True)
class Point:
    """One protocol on one cluster: throughput of `SaturatedCluster`, all else of `LoadedCluster` at 80 % of it.

    checkpoint_s   mean, of a round or of a partition's own checkpoint; nan without checkpoints
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
        for protocol in (each for each in PROTOCOLS.values() if not each.by_batch):
            points.append(_point(spec, protocol, costs, records_per_message, count))
            on_point(points[-1])
    table = pd.DataFrame(points)
    base = table[table["protocol"] == "none"].set_index("workers")["throughput"]
    return table.assign(relative=table["throughput"] / table["workers"].map(base))


def _point(spec: NexmarkSpec, protocol: type[Protocol], costs: Costs, records: int, workers: int) -> Point:
    deployment = Deployment(spec, protocol, costs, workers, records)
    throughput = deployment.saturated().throughput
    loaded = deployment.under(LOAD_SHARE * throughput)
    return Point(
        query=spec.query.value,
        protocol=protocol.name,
        workers=workers,
        throughput=throughput,
        message_overhead=loaded.message_overhead,
        checkpoint_s=mean(loaded.checkpoint_seconds) if loaded.checkpoint_seconds else nan,
        restart_s=loaded.restart_s,
        checkpoints=loaded.checkpoints,
        invalid=loaded.invalid,
    )
