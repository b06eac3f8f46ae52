"""Which partitions of the testbed were lost, by which fault, and how long no slot had them.

The death of a slot without partitions, such as one that stands by, loses nothing. That of the driver loses all of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.fault_kinds import FaultKind
from infra.cluster import HANDLE_FILE, Handle
from journal.event import Event
from journal.events.common import DriverStarted, ExecutorsLost
from journal.events.injector import Injected
from journal.events.query import QueryReady
from journal.events.services import ProgramEnded
from journal.events.testbed import EpochReady, Finished, Recovering, WorkerJoined, WorkerLost
from results.runs.json_files import read_json

# A slot is given up after 5 s of silence; what it dies of later than this after a fault is no effect of that fault.
EFFECT_NS = 30 * 10**9


@dataclass(frozen=True)
class Loss:
    """A slot was lost that had partitions, or the driver, with all of them; `fault` is None if it was lost by itself.

    That a driver ended its supervisor notices.
    """

    fault: int | None
    death_ns: int
    notice_ns: int
    partitions: tuple[str, ...]


def host_names(raw: Path) -> dict[str, str]:
    """The names of a run's hosts by their addresses; none of a run whose logs do not have them."""
    try:
        handle = Handle.from_json(read_json(raw / HANDLE_FILE))
    except (FileNotFoundError, ValueError):
        return {}
    return {host.address: name for name, host in handle.hosts.items()}


def losses(
    journal: Iterable[Event],
    injector: Iterable[Event],
    hosts: Mapping[str, str],
    supervisor: Iterable[Event] = (),
) -> list[Loss]:
    """The losses in the order in which they were noticed; `hosts` has the names of hosts by their addresses.

    The loss of a slot is due to the last fault on its host before it. If the name of the host is not known, any fault
    counts. The loss of a driver is due to the first fault that struck it: another may have struck before the next
    driver began.
    """
    strikes = sorted((e for e in injector if isinstance(e, Injected)), key=lambda each: each.fired_ns)
    ends_ns = [event.at_ns for event in supervisor if isinstance(event, ProgramEnded)]
    host_of: dict[str, str | None] = {}
    found, last_ns, driver_since_ns = [], 0, 0
    for event, everything in _with_everything(journal):
        match event:
            case WorkerJoined():
                host_of[event.worker] = hosts.get(event.host)
            case WorkerLost() if event.partitions:
                host = host_of.get(event.worker)
                able = [e for e in strikes if host in (None, e.host) and 0 <= event.at_ns - e.fired_ns <= EFFECT_NS]
                found.append(_loss(able[-1:], event.at_ns, event.at_ns, event.partitions))
            case DriverStarted():
                if everything:
                    able = [e for e in strikes if _is_of_driver(e) and driver_since_ns <= e.fired_ns <= event.at_ns]
                    ended_ns = [at_ns for at_ns in ends_ns if driver_since_ns < at_ns <= event.at_ns]
                    found.append(_loss(able[:1], last_ns, min(ended_ns, default=event.at_ns), everything))
                driver_since_ns = event.at_ns
        last_ns = event.at_ns
    return found


def _with_everything(journal: Iterable[Event]) -> Iterator[tuple[Event, tuple[str, ...]]]:
    """Each event, with the partitions that the death of the driver would take then: all, from the first recovery to
    the end of the dataflow."""
    everything: tuple[str, ...] = ()
    for event in journal:
        if isinstance(event, Recovering):
            everything = tuple(event.line)
        elif isinstance(event, Finished):
            everything = ()
        yield event, everything


def _loss(due_to: Sequence[Injected], death_ns: int, notice_ns: int, partitions: tuple[str, ...]) -> Loss:
    """A loss that is due to this fault; without any, something else ended its slot at `death_ns`."""
    fault, at_ns = (due_to[0].fault, due_to[0].fired_ns) if due_to else (None, death_ns)
    return Loss(fault, at_ns, notice_ns, partitions)


def _is_of_driver(strike: Injected) -> bool:
    return strike.kind is FaultKind.DRIVER_KILL


def with_losses(journal: Iterable[Event], lost: Iterable[Loss]) -> Iterator[Event | Loss]:
    """The journal, and each loss after the event that tells of it."""
    coming = deque(lost)
    for event in journal:
        yield event
        tells = isinstance(event, DriverStarted) or (isinstance(event, WorkerLost) and bool(event.partitions))
        if tells and coming and coming[0].notice_ns <= event.at_ns:
            yield coming.popleft()


def as_query_journal(journal: Iterable[Event]) -> Iterator[Event]:
    """The journal as `outages.moments` reads that of the query driver: the loss of a slot that had partitions is what
    it notices, and it is ready once nothing is lost any more."""
    down: set[str] = set()
    coming: dict[int, set[str]] = {}
    for event, everything in _with_everything(journal):
        match event:
            case DriverStarted():  # that the one before ended its supervisor tells
                down, coming = set(everything), {}
            case WorkerLost() if event.partitions is None or event.partitions:
                lost = set(event.partitions or ())
                down |= lost
                coming = {epoch: partitions - lost for epoch, partitions in coming.items()}
                yield ExecutorsLost((event.worker,), at_ns=event.at_ns)
            case Recovering():
                coming[event.epoch] = {*event.restored, *event.promoted}
            case EpochReady():
                down -= coming.pop(event.epoch, set())
                if not down:
                    yield QueryReady((), at_ns=event.at_ns)


def that_took_something(injector: Iterable[Event], journal: Sequence[Event], lost: Sequence[Loss]) -> list[Event]:
    """The injector's journal without the strikes that took nothing: they hit only slots without a partition. The driver
    takes all slots with it."""
    blamed, outages = {each.fault for each in lost}, list(_outages(journal, lost))
    return [
        event
        for event in injector
        if not isinstance(event, Injected)
        or _is_of_driver(event)
        or event.fault in blamed
        or any(start_ns <= event.fired_ns < end_ns for start_ns, end_ns in outages)
    ]


def _outages(journal: Iterable[Event], lost: Iterable[Loss]) -> Iterator[tuple[int, float]]:
    """From each death until nothing was lost any more."""
    ready_ns = [event.at_ns for event in as_query_journal(journal) if isinstance(event, QueryReady)]
    for loss in lost:
        yield loss.death_ns, next((at_ns for at_ns in ready_ns if at_ns > loss.notice_ns), float("inf"))
