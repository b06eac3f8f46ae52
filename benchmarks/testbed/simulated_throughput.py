"""Throughput by protocol at one record per message: simulated workers beside measured ones.

    .venv/bin/python -m benchmarks.testbed.simulated_throughput [--queries q1 ...] [--workers 2] [--window S]
        [--messages-in-range N]

runs each query with each protocol on a local cluster, as `benchmarks.testbed.throughput` does, and simulates the same
cells with costs that it measures first, as the simulated rows of `checkmate` do. Every map and filter is an operator.
The simulation processes one message after the other; the testbed does so with `--messages-in-range 1`. Prints a
Markdown table: events per second, their shares of those without checkpoints, and the simulated share over the measured
one by the wall clock. Nothing else may run on the machine. Takes some 35 s a cell.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from aftershock.reference import markdown
from benchmarks.arguments import above_zero, at_least, at_least_one
from benchmarks.one_line_errors import one_line_errors
from benchmarks.testbed.throughput import cluster_of, job_of, measured
from experiments.engines import ProtocolName
from experiments.workloads.catalogue import NexmarkQuery
from reproductions.checkmate.experiments import QUERIES
from reproductions.checkmate.simulated import RECORDS_PER_MESSAGE, SimulatedCell

PROTOCOLS = (
    ProtocolName.NONE,
    ProtocolName.COORDINATED,
    ProtocolName.UNCOORDINATED,
    ProtocolName.COMMUNICATION_INDUCED,
)
HEAD = ("query", "protocol", "measured", "share", "share by CPU time", "simulated", "share", "simulated / measured")


class Rates(NamedTuple):
    """Events per second of one cell: measured by the wall clock and by the slots' CPU time, and simulated."""

    wall: float
    cpu: float
    simulated: float


def rows_of(rates: dict[tuple[NexmarkQuery, ProtocolName], Rates]) -> Iterator[tuple[str, ...]]:
    """A row for each cell; the shares are of the same query without checkpoints."""
    for (query, protocol), found in rates.items():
        base = rates[query, ProtocolName.NONE]
        wall, cpu, simulated = (of / without for of, without in zip(found, base, strict=True))
        yield (
            *(query.value, protocol.value),
            *(f"{found.wall:,.0f}", f"{wall:.0%}", f"{cpu:.0%}"),
            *(f"{found.simulated:,.0f}", f"{simulated:.0%}", f"{simulated / wall:.2f}"),
        )


@one_line_errors()
def main() -> None:
    """Print the table, and meanwhile each cell as it is done."""
    given = _arguments()
    cells = [(NexmarkQuery(query), protocol) for query in given.queries for protocol in PROTOCOLS]
    simulated = {cell: SimulatedCell(*cell, given.workers).sustainable_rate() for cell in cells}
    rates: dict[tuple[NexmarkQuery, ProtocolName], Rates] = {}
    with cluster_of(given.workers) as cluster:
        for query, protocol in cells:
            name = f"{query.value}-{protocol.value}"
            cell = query.value, protocol.value, given.workers
            job = job_of(name, *cell, cluster.root, RECORDS_PER_MESSAGE, chaining=False)
            limits = replace(job.limits, messages_in_range=given.messages_in_range)
            figures = measured(cluster, replace(job, limits=limits), given.window)
            found = Rates(figures.wall, figures.cpu, simulated[query, protocol])
            rates[query, protocol] = found
            print(f"{name}: {found.wall:,.0f} events/s, simulated {found.simulated:,.0f}", file=sys.stderr, flush=True)
    print(markdown.table(HEAD, rows_of(rates)))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    queries = [query.value for query in QUERIES]
    parser.add_argument("--queries", nargs="+", choices=queries, default=queries)
    parser.add_argument("--workers", type=at_least(2), default=2, help="two or more, since an operator has two parts")
    parser.add_argument("--window", type=above_zero, default=15.0, help="seconds that are measured")
    parser.add_argument("--messages-in-range", type=at_least_one, default=1, help="that are processed together at most")
    return parser.parse_args()


if __name__ == "__main__":
    main()
