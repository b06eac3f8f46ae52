"""Outages of the query: from the death of a host over its notice to the query's restart.

A fault that strikes before the query runs again extends the outage and is counted in it. In mode `task` the query
need not restart: an outage lasts until it is seen to work on, which also ends one that nobody noticed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

from experiments.spec import RecoveryMode


class Kind(IntEnum):
    """In the order in which simultaneous events took place."""

    DEATH = 0
    NOTICE = 1
    READY = 2
    ALIVE = 3  # in mode task: the query works on, whatever it lost


@dataclass(frozen=True)
class Moment:
    at_ns: int
    kind: Kind
    fault: int | None = None


@dataclass(frozen=True)
class Outage:
    """`fault` is the first one (None if the query failed by itself), `faults` how many struck until it ran again."""

    fault: int | None
    faults: int
    death_ns: int
    notice_ns: int | None = None
    ready_ns: int | None = None


def moments(
    query: list[dict[str, Any]],
    supervisor: list[dict[str, Any]],
    injector: list[dict[str, Any]],
    mode: RecoveryMode,
    committed_ns: Iterable[int],
) -> list[Moment]:
    """Deaths, notices and restarts in the order of time, from the journals.

    In mode `task` the query goes on when it notices the loss of an executor, and with every commit: a host that is
    killed before its executor has registered is never noticed. `committed_ns` are the moments of the commits, not
    of their entries in the journal, which come later and could be taken for a sign of life after a death.
    """
    by_task = mode is RecoveryMode.TASK
    found = [Moment(e["fired_ns"], Kind.DEATH, e["fault"]) for e in injector if e["event"] == "injected"]
    for entry in query:
        if entry["event"] == "executors-lost":
            found.append(Moment(entry["at_ns"], Kind.ALIVE if by_task else Kind.NOTICE))
        elif entry["event"] == "query-failed":
            found.append(Moment(entry["at_ns"], Kind.NOTICE))
        elif entry["event"] == "ready":
            found.append(Moment(entry["at_ns"], Kind.READY))
    found += [Moment(e["at_ns"], Kind.NOTICE) for e in supervisor if e["event"] == "program-ended"]
    found += [Moment(at_ns, Kind.ALIVE) for at_ns in committed_ns if by_task]
    return sorted(found, key=lambda moment: (moment.at_ns, moment.kind))


def outages(events: list[Moment]) -> list[Outage]:
    """Fold the moments into outages; the last one may still be open."""
    closed: list[Outage] = []
    current: Outage | None = None
    for moment in events:
        match moment.kind:
            case Kind.DEATH if current is None:
                current = Outage(moment.fault, 1, moment.at_ns)
            case Kind.DEATH:
                current = replace(current, faults=current.faults + 1)
            case Kind.NOTICE if current is None:
                current = Outage(None, 0, moment.at_ns, moment.at_ns)
            case Kind.NOTICE if current.notice_ns is None:
                current = replace(current, notice_ns=moment.at_ns)
            case Kind.READY if current is not None and current.notice_ns is not None:
                closed.append(replace(current, ready_ns=moment.at_ns))
                current = None
            case Kind.ALIVE if current is not None:
                notice_ns = moment.at_ns if current.notice_ns is None else current.notice_ns
                closed.append(replace(current, notice_ns=notice_ns, ready_ns=moment.at_ns))
                current = None
    return closed + ([current] if current else [])
