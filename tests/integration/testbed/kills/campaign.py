"""Kills, one after another, at random and at chosen moments, and what came of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Any

from tests.integration.testbed.exact_results import Verdict, judged
from tests.integration.testbed.kills.moments import AMID_RECOVERY, Moment, moment_at
from tests.integration.testbed.kills.rig import Rig
from tests.integration.testbed.kills.watching import Entry, Stage, Standing, Watch

POLL_S = 0.0005
LONGEST_DELAY_S = 0.5  # of an injection at random
LONGEST_WORK_S = 2.0  # after a recovery, of a run that stores no checkpoints by which to count
MOMENT_LIMIT_S = 6.0  # a moment that has not come by then is let go, and the injection falls all the same
NOTICE_LIMIT_S = 1.0
PAUSE_SHARE, ALL_SHARE, REPLACED_SHARE = 0.08, 0.06, 0.5


class Means(Enum):
    """Killed, all killed at once, or held until given up and then let go on."""

    KILL = "kill"
    KILL_ALL = "kill all"
    PAUSE = "pause"


@dataclass(frozen=True)
class Injection:
    """What fell when, on how many, aimed at which moment, and which it hit."""

    at_ns: int
    means: Means
    victims: int
    target: Moment
    hit: Moment

    @property
    def kills(self) -> int:
        return 0 if self.means is Means.PAUSE else self.victims


@dataclass(frozen=True)
class Episode:
    """A run from its beginning to its end, with all injections, and what of its output was wrong.

    own_deaths   how many slots ended without a strike
    """

    injections: list[Injection]
    verdict: Verdict
    journal: list[Entry]
    own_deaths: int


class Stuck(Exception):
    """A run did not recover, or did not come to its end, or its coordinator gave up."""


class Campaign:
    """Injections on one run, seeded: same targets, same order; their times depend on the machine.

    `limit_s` is how long a recovery, or the end of the run, may take.
    """

    def __init__(self, rig: Rig, moments: list[Moment], seed: int, limit_s: float) -> None:
        self._rig, self._moments, self._random, self._limit_s = rig, moments, Random(seed), limit_s
        self._watch = Watch(rig.journal, rig.job.slots)
        self._struck: list[tuple[int, Means, int, Moment, list[Moment]]] = []
        self._killed = 0

    def run(self, kills: int, checkpoints: int = 0) -> Episode:
        """At least this number of kills, a time without any until so many checkpoints are stored, then the end of the
        run, with one more kill in it unless it comes sooner."""
        while self._killed < kills:
            self._inject(self._random.choice(self._moments))
        self._rest(checkpoints)
        self._rig.drain()
        self._strike(Moment.RUNNING, Means.KILL)
        positions = self._end()["positions"]
        self._watch.close()
        return Episode(self._injections(), judged(self._rig.job, positions), self._watch.entries, self._rig.own_deaths)

    # One injection.

    def _inject(self, target: Moment) -> None:
        never_stores = self._rig.job.strategy.from_sources
        if target in AMID_RECOVERY and self._watch.stage is Stage.RUNNING and (self._watch.stored or never_stores):
            self._strike(Moment.RUNNING, Means.KILL)  # so that there is a recovery
        if target not in AMID_RECOVERY:
            checkpoints = self._random.randrange(3 * len(self._rig.job.layout().partitions))
            self._rest(checkpoints=0 if never_stores else checkpoints)
            self._go_on(until=lambda: False, limit_s=self._random.uniform(0, LONGEST_WORK_S) if never_stores else 0.0)
        self._strike(target, self._means(target))

    def _means(self, target: Moment) -> Means:
        drawn = self._random.random()
        if self._rig.can_pause and drawn < PAUSE_SHARE and target not in AMID_RECOVERY:
            return Means.PAUSE
        return Means.KILL_ALL if drawn > 1 - ALL_SHARE else Means.KILL

    def _strike(self, target: Moment, means: Means) -> None:
        candidates = self._wait_for(target) or self._rig.victims()
        if not candidates or self._watch.end:
            return
        losses, at_ns = self._watch.losses, time.time_ns()
        victim = self._random.choice(candidates)
        if means is Means.PAUSE:
            self._note(at_ns, means, [victim], target, self._pause(victim))
        else:
            victims = self._rig.victims() if means is Means.KILL_ALL else [victim]
            self._note(at_ns, means, victims, target, self._rig.kill(victims))
            self._killed += len(victims)
            self._go_on(until=lambda: self._watch.losses > losses, limit_s=NOTICE_LIMIT_S)

    def _note(self, at_ns: int, means: Means, victims: list[Any], target: Moment, seen: list[Moment]) -> None:
        self._struck.append((at_ns, means, len(victims), target, seen))

    def _pause(self, victim: Any) -> list[Moment]:
        """Until it was given up, and a while longer: into the others' recovery, or beyond it."""
        losses = self._watch.losses
        seen = self._rig.pause(victim, self._random.random() < REPLACED_SHARE)
        if not self._go_on(until=lambda: self._watch.losses > losses, limit_s=self._limit_s):
            raise Stuck("a slot that was paused was not given up")
        self._go_on(until=lambda: False, limit_s=self._random.uniform(0, 2 * LONGEST_DELAY_S))
        self._rig.resume(victim)
        return seen

    def _wait_for(self, target: Moment) -> list[Any] | None:
        """Whom to strike, if the moment tells."""
        if target is Moment.RUNNING:
            self._go_on(until=lambda: False, limit_s=self._random.uniform(0, LONGEST_DELAY_S))
            return None
        found: list[Any] | None = None

        def has_come() -> bool:
            nonlocal found
            if target in AMID_RECOVERY:
                stages = {Moment.SHORT: Stage.SHORT, Moment.RESTORING: Stage.RESTORING}
                return self._watch.stage is stages.get(target, Stage.RUNNING)
            if target is Moment.ALIGNING and not self._rig.sees_alignment:
                return self._watch.stage is Stage.RUNNING and self._watch.in_round
            found = self._rig.is_now(target)
            return found is not None

        self._go_on(until=has_come, limit_s=MOMENT_LIMIT_S)
        if target in AMID_RECOVERY:
            time.sleep(self._random.uniform(0, 0.02))  # into the moment, not only to its beginning
        return found

    # The run in between.

    def _rest(self, checkpoints: int) -> None:
        """Until all go on, and the given number of checkpoints is stored."""

        def is_well() -> bool:
            return self._watch.stage is Stage.RUNNING and self._watch.stored >= checkpoints

        if not self._go_on(until=is_well, limit_s=self._limit_s):
            raise Stuck(f"not recovered in {self._limit_s:g} s")

    def _go_on(self, until: Callable[[], bool], limit_s: float) -> bool:
        """Let time pass; returns whether what was waited for has come."""
        deadline_s = time.monotonic() + limit_s
        while True:
            self._watch.follow()
            if until():
                return True
            if self._watch.end or time.monotonic() > deadline_s:
                return False
            if self._rig.has_ended():
                self._watch.follow()
                if until():
                    return True
                if self._watch.end:
                    return False
                raise Stuck(f"the coordinator is gone; see {self._rig.journal}")
            self._rig.revive()
            time.sleep(POLL_S)

    # The end.

    def _end(self) -> Entry:
        """The entry that says that everything is out, and where that has the sources."""
        self._go_on(until=lambda: self._watch.end is not None, limit_s=self._limit_s)
        if self._watch.end is None:
            raise Stuck(f"not at its end in {self._limit_s:g} s")
        return self._watch.end

    def _injections(self) -> list[Injection]:
        standing, entries = Standing(self._rig.job.slots), sorted(self._watch.entries, key=lambda each: each["at_ns"])
        injections, taken = [], 0
        for at_ns, means, victims, target, seen in self._struck:
            while taken < len(entries) and entries[taken]["at_ns"] <= at_ns:
                standing.take(entries[taken])
                taken += 1
            if standing.end:
                break  # it missed: the output was complete
            amid_round = [Moment.ALIGNING] if not self._rig.sees_alignment and standing.in_round else []
            injections.append(
                Injection(at_ns, means, victims, target, moment_at(standing, at_ns, [*seen, *amid_round]))
            )
        return injections
