"""Outages of the query: from the death of a host to its detection and the query's restart.

A fault that strikes before the query runs again extends the outage and is counted in it. If a host dies so late that
the query starts with it and fails soon after, this is an outage of its own. In mode `task` the query need not restart:
an outage lasts until the query is seen to work on. This also ends an outage that was not noticed.

Only faults that lose work begin an outage by themselves. One of another kind (a pause, a broker that is gone) may or
may not bring the query down: if the query fails while such a fault is in force, or soon after, the outage is that
fault's (the last one's of several). It begins with the fault, or with the last commit since: until then it worked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from enum import IntEnum

from experiments.recovery_modes import RecoveryMode
from journal.event import Event
from journal.events.common import ExecutorsLost
from journal.events.injector import Ended, Healed, Injected
from journal.events.query import QueryFailed, QueryReady
from journal.events.services import ProgramEnded

# So long after its end a fault may still make the query fail: the longest timeouts of Spark and Kafka are two minutes.
AFTERMATH_NS = 120 * 10**9
UNNOTICED_NS = 10 * 10**9  # after a restart the query may notice a death from before it for so long


class MomentKind(IntEnum):
    """In the order in which simultaneous events took place."""

    COMMIT = 0
    DEATH = 1
    DISTURBANCE = 2  # a fault that loses no work by itself
    RELIEF = 3  # its end
    NOTICE = 4
    READY = 5
    ALIVE = 6  # in mode task: the query works on, in spite of its losses


@dataclass(frozen=True)
class Moment:
    """Something that happened to the query [UTC ns]; `fault` is the number of the fault that caused it, if one did."""

    at_ns: int
    kind: MomentKind
    fault: int | None = None


@dataclass(frozen=True)
class Outage:
    """`fault` is the first one (None if the query failed by itself), `faults` how many struck until it ran again.

    `others`: which these are beside the first.
    `went_on`: the query was never down, since other hosts did the work (mode `task`); `back_ns`: until then it had
    fewer of them than before, None if that is not known.
    """

    fault: int | None
    faults: int
    death_ns: int
    notice_ns: int | None = None
    ready_ns: int | None = None
    went_on: bool = False
    back_ns: int | None = None
    others: frozenset[int | None] = field(default=frozenset(), compare=False)

    @property
    def struck(self) -> frozenset[int | None]:
        """All faults that struck in it, the first included."""
        return self.others | {self.fault}


def moments(
    query: Iterable[Event],
    supervisor: Iterable[Event],
    injector: Iterable[Event],
    mode: RecoveryMode,
    committed_ns: Iterable[int],
) -> list[Moment]:
    """Deaths, notices and restarts in the order of time, from the journals.

    In mode `task` the query goes on when it notices the loss of an executor, and with every commit: a host that is
    killed before its executor has registered is never noticed. `committed_ns` are the moments of the commits, not
    of their entries in the journal, which come later and could be taken for a sign of life after a death.
    """
    by_task = mode is RecoveryMode.TASK
    found = list(filter(None, map(_of_fault, injector)))
    for event in query:
        match event:
            case ExecutorsLost():
                found.append(Moment(event.at_ns, MomentKind.ALIVE if by_task else MomentKind.NOTICE))
            case QueryFailed():
                found.append(Moment(event.at_ns, MomentKind.NOTICE))
            case QueryReady():
                found.append(Moment(event.at_ns, MomentKind.READY))
    found += [Moment(event.at_ns, MomentKind.NOTICE) for event in supervisor if isinstance(event, ProgramEnded)]
    found += [Moment(at_ns, MomentKind.ALIVE if by_task else MomentKind.COMMIT) for at_ns in committed_ns]
    return sorted(found, key=lambda moment: (moment.at_ns, moment.kind))


def _of_fault(event: Event) -> Moment | None:
    """What an event of the injector's journal means for the query."""
    match event:
        case Injected():
            kind = MomentKind.DEATH if event.kind.loses_work else MomentKind.DISTURBANCE
            return Moment(event.fired_ns, kind, event.fault)
        case Healed() | Ended() if not event.kind.loses_work:
            return Moment(event.at_ns, MomentKind.RELIEF, event.fault)
    return None


@dataclass
class _OutageCauses:
    """Faults that lose no work by themselves but may make the query fail, and when the query last committed."""

    since: dict[int | None, int] = field(default_factory=dict)  # by fault: when it began
    until: dict[int | None, int] = field(default_factory=dict)  # by fault: when its aftermath ends
    held: Counter[int | None] = field(default_factory=Counter)  # by fault: on how many hosts it is in force
    committed_ns: int = 0

    def begin(self, moment: Moment) -> None:
        self.since.setdefault(moment.fault, moment.at_ns)  # a fault on several hosts begins with the first
        self.held[moment.fault] += 1

    def end(self, moment: Moment) -> None:
        self.held[moment.fault] -= 1
        self.until[moment.fault] = moment.at_ns + AFTERMATH_NS

    def outage(self, noticed_ns: int) -> Outage:
        """The outage of a query that failed then, though nothing had died."""
        able = [each for each in self.since if self.held[each] > 0 or noticed_ns <= self.until.get(each, 0)]
        if not able:
            return Outage(None, 0, noticed_ns, noticed_ns)
        fault = max(able, key=lambda each: self.since[each])
        return Outage(fault, 1, max(self.since[fault], self.committed_ns), noticed_ns)


def with_hosts_back(outages: Iterable[Outage], away: Collection[tuple[int, int]]) -> list[Outage]:
    """The outages, and of those through which the query went on when the hosts were back that it went on without.

    `away`: from when until when hosts had no executor [ns], for each fault.
    """
    return [replace(each, back_ns=_back_ns(each, away)) if each.went_on else each for each in outages]


def _back_ns(outage: Outage, away: Iterable[tuple[int, int]]) -> int | None:
    until_ns = outage.ready_ns or outage.death_ns
    own_ns = [back_ns for struck_ns, back_ns in away if outage.death_ns <= struck_ns <= until_ns]
    return max(own_ns, default=None)


def outages(events: list[Moment]) -> list[Outage]:
    """Fold the moments into outages; the last one may still be open."""
    closed: list[Outage] = []
    current: Outage | None = None
    causes = _OutageCauses()
    struck = list[int | None]()  # the faults of the last outage, by strike: one on several hosts strikes each of them
    unnoticed = list[Moment]()  # deaths after the notice: the query may not know of them when it is ready
    for moment in events:
        match moment.kind:
            case MomentKind.DISTURBANCE:
                causes.begin(moment)
            case MomentKind.RELIEF:
                causes.end(moment)
            case MomentKind.COMMIT:
                causes.committed_ns = moment.at_ns
            case MomentKind.DEATH if current is not None:
                struck.append(moment.fault)
                current = _with_struck(current, struck)
                unnoticed += [] if current.notice_ns is None else [moment]
            case MomentKind.DEATH:
                current, struck, unnoticed = Outage(moment.fault, 1, moment.at_ns), [moment.fault], []
            case MomentKind.NOTICE if current is not None:
                current = current if current.notice_ns is not None else replace(current, notice_ns=moment.at_ns)
                unnoticed = []
            case MomentKind.NOTICE:
                if unnoticed and closed and moment.at_ns - (closed[-1].ready_ns or 0) <= UNNOTICED_NS:
                    closed[-1] = _with_struck(closed[-1], struck[: -len(unnoticed)])
                    struck = [each.fault for each in unnoticed]
                    current = _with_struck(Outage(struck[0], 1, causes.committed_ns, moment.at_ns), struck)
                else:
                    current = causes.outage(moment.at_ns)
                    struck = [] if current.fault is None else [current.fault]
                unnoticed = []
            case MomentKind.READY if current is not None and current.notice_ns is not None:
                closed.append(replace(current, ready_ns=moment.at_ns))
                current, causes.committed_ns = None, moment.at_ns
            case MomentKind.ALIVE:
                causes.committed_ns = moment.at_ns
                if current is not None:
                    went_on = current.notice_ns is None
                    notice_ns = moment.at_ns if current.notice_ns is None else current.notice_ns
                    closed.append(replace(current, notice_ns=notice_ns, ready_ns=moment.at_ns, went_on=went_on))
                    current = None
    return closed + ([current] if current else [])


def _with_struck(outage: Outage, struck: Iterable[int | None]) -> Outage:
    """The outage with the faults that struck in it."""
    faults = frozenset(struck)
    return replace(outage, faults=len(faults), others=faults - {outage.fault})
