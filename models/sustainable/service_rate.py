"""How many records a query reads in a second while it always has something left to read.

A *report* is a moment [ns] and how many records the query had read by then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

NS = 1e9

Report: TypeAlias = tuple[int, int]


def service_rate(reports: Sequence[Report]) -> float | None:
    """Records/s between the first and the last of these reports; None if they are of one moment, or none."""
    if not reports or reports[0][0] == reports[-1][0]:
        return None
    (begin_ns, begun), (end_ns, done) = reports[0], reports[-1]
    return (done - begun) / (end_ns - begin_ns) * NS


def of_burst(reports: Sequence[Report]) -> float | None:
    """The service rate of a query that read a burst; None if it reported nothing meanwhile.

    The first of the reports is of when the burst began, the last one is the first by which all of it had been read. The
    query may have begun after the one, and it had done before the other. So they are left out if there are others in
    between; if there is a single one, only the first is.
    """
    return service_rate(reports[1:-1] if len(reports) > 3 else reports[-2:])
