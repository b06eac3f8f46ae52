"""An operator with an output log that crashes at a step, is restored, and goes on: compared with a run without faults.

A step takes input in, saves parts, commits the log, or trims it. Upstream keeps what a recovery may replay and no more;
downstream gets what is committed, and a crash loses some of what is under way to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from random import Random

from testbed.operators.parts import Parted
from testbed.output_log.eventual import EventualCheckpoint
from testbed.output_log.log import OutputLog
from testbed.output_log.logged import LoggedOperator
from testbed.output_log.policies import Policy
from testbed.output_log.reading import LogReader
from testbed.stores.store import MemoryStore
from tests.unit.testbed.output_log.inputs import Case, Event, Records, Watermark

NAME = "operator.0"
Row = tuple


def rows_of(batches: Sequence) -> list[Row]:
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def without_faults(case: Case, events: Sequence[Event]) -> list[Row]:
    """What the operator puts out without log and faults."""
    operator, _ = case.make()
    found = [_given(operator, each) for each in events]
    return rows_of([each for each in found if each is not None])


@cache
def exact(case: Case, seed: int) -> list[Row]:
    """What the operator puts out of the input of a seed. Not for tests in which operators have planted errors."""
    return without_faults(case, case.events(seed))


def state_at(case: Case, events: Sequence[Event], position: int, watermark_ns: int) -> dict[bytes, bytes]:
    """The parts of all windows in a run without faults, at a position and an event time."""
    operator, _ = case.make()
    for each in events:
        if isinstance(each, Records):
            batch = each.batch.slice(0, position - operator.position)
            if batch.num_rows:
                operator.process(each.port, batch)
        elif each.at_ns <= watermark_ns:
            operator.advance(each.at_ns)
    return operator.parts()


def _given(operator: Parted, event: Event):
    if isinstance(event, Records):
        return operator.process(event.port, event.batch)
    return operator.advance(event.at_ns)


def behind(events: Sequence[Event], position: int) -> list[Event]:
    """The input behind a position; the event times right at it, too."""
    found, at = list[Event](), 0
    for each in events:
        if isinstance(each, Watermark):
            found += [each] if at >= position else []
            continue
        fresh = min(max(at + each.batch.num_rows - position, 0), each.batch.num_rows)
        at += each.batch.num_rows
        if fresh:
            found.append(Records(each.port, each.batch.slice(each.batch.num_rows - fresh)))
    return found


@dataclass
class Run:
    """One run with crashes.

    crashes   after how many steps since the crash before
    damage    what a crash does to the store
    arrived   what downstream has; put_out: what was put out in this life or arrived before it
    """

    case: Case
    policy: Policy
    seed: int
    crashes: Sequence[int]
    damage: Callable[[MemoryStore, Random], None] = lambda store, random: None
    spare: int = 1
    store: MemoryStore = field(default_factory=MemoryStore)
    put_out: list[Row] = field(default_factory=list)
    found: list[EventualCheckpoint] = field(default_factory=list)
    logged: LoggedOperator = field(init=False)

    def __post_init__(self) -> None:
        self._random = Random(self.seed)
        self._events = self.case.events(self.seed)
        self._acknowledged = self._replayable_after = 0

    def run(self) -> list[Row]:
        """Everything that downstream has at the end."""
        self._begin()
        for steps in self.crashes:
            pending = iter(self._pending)
            if not self._live(pending, steps):
                break
            self._crash()
        else:
            self._live(iter(self._pending), None)
        return self.put_out

    def _begin(self) -> None:
        operator, self._rows = self.case.make()
        self.logged = LoggedOperator(operator, OutputLog(self.store, NAME, self.spare), self.policy)
        self._pending = self._events

    def _live(self, pending: Iterator[Event], steps: int | None) -> bool:
        """Go on to the end, or for the given number of steps; returns whether it crashes there."""
        taken = 0
        while taken != steps:
            taken += 1
            event = next(pending, None) if self._random.random() < 0.6 else False
            if event is None:
                self._commit()
                return False
            if event:
                self._take(event)
            else:
                self._random.choice((self._check, self._commit, self._trim))()
        return True

    def _take(self, event: Event) -> None:
        if isinstance(event, Records):
            self.logged.process(event.port, event.batch)
        else:
            self.logged.advance(event.at_ns)

    def _check(self) -> None:
        self.logged.check(lambda: self._random.randint(1, 3) if self._random.random() < 0.8 else 0)

    def _commit(self) -> None:
        rows = rows_of(self.logged.commit())
        self.put_out += rows
        if rows and len(self.put_out) != self.logged.log.results:
            raise WrongState(f"{len(self.put_out)} rows are out, and the log has {self.logged.log.results}")

    def _trim(self) -> None:
        self._acknowledged = self._random.randint(self._acknowledged, len(self.put_out))
        self._replayable_after = max(self._replayable_after, self.logged.log.replay_after)
        self.logged.log.trim(self._acknowledged)

    def _crash(self) -> None:
        self.damage(self.store, self._random)
        arrived = self._random.randint(self._acknowledged, len(self.put_out))
        self.put_out = self.put_out[:arrived]
        self._begin()
        found = self.logged.restore(LogReader(self.store, NAME, self._rows), arrived, self._replayable_after)
        self.found.append(found)
        self._pending = behind(self._events, found.replay_after)
        self._compare_state(found)

    def _compare_state(self, found: EventualCheckpoint) -> None:
        """Eventual checkpoint and replay make the state of a run without faults: in a second operator like this one."""
        operator, _ = self.case.make()
        twin = LoggedOperator(operator, OutputLog(MemoryStore(), NAME), self.policy)
        arrived = len(self.put_out)
        twin.restore(LogReader(self.store, NAME, self._rows), arrived, self._replayable_after)
        for each in self._pending:
            if isinstance(each, Records) and twin.replaying:
                twin.process(each.port, each.batch.slice(0, found.position - operator.position))
        expected = state_at(self.case, self._events, found.position, found.watermark_ns)
        if operator.parts() != expected:
            raise WrongState(f"{operator.parts()} at {found.position} instead of {expected}")


class WrongState(Exception):
    """A restored state is not the one of a run without faults, or something is out that the log has not got."""
