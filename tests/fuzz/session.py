"""What all fuzzers share: which inputs they draw, who counts and times them, and what a wrong answer is.

A fuzzer is a function that takes a `Session` and gives it `session.inputs` inputs, each within `session.feeding`. It is
found by its entry in `FUZZERS` of a module `tests/fuzz/fuzz_*.py`.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

VARIABLE = "AFTERSHOCK_FUZZ_INPUTS"
USUAL = 400  # inputs that a fuzzer of weight 1 gets in the normal tests
MOST_S = 1.0  # of CPU time, that one input may take
HANGS_S = 30  # what takes longer is ended
MOST_KEPT = 20  # failures of a session that are told in full


def inputs_wanted(weight: float = 1.0) -> int:
    """How many inputs a fuzzer gets in a test; the environment variable sets the number for one of weight 1."""
    return max(1, round(int(os.environ.get(VARIABLE, USUAL)) * weight))


@dataclass
class Session:
    """Some inputs for one fuzzer. `nightly`: a wrong answer is noted instead of raised, and so is a slow one."""

    seed: int
    inputs: int
    nightly: bool = False
    fed: int = 0
    slowest_s: float = 0.0
    slowest: str = ""
    outcomes: Counter[str] = field(default_factory=Counter)
    failed: int = 0
    failures: list[str] = field(default_factory=list)

    def draws(self) -> Iterator[Random]:
        """A source of randomness for each input; each can be had again by the session's seed and its number."""
        for number in range(self.inputs):
            yield Random(f"{self.seed}/{number}")

    def hypothesis(self, strategy: SearchStrategy[Any], feed: Callable[[Any], None]) -> None:
        """Feed what a strategy draws; in the normal tests an input that fails is made as small as can be."""

        @settings(
            max_examples=self.inputs,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate] if self.nightly else [Phase.generate, Phase.shrink],
        )
        @seed(self.seed)
        @given(strategy)
        def each(drawn: Any) -> None:
            with self.feeding(drawn):
                feed(drawn)

        each()

    @contextmanager
    def feeding(self, shown: object) -> Iterator[None]:
        """Within, one input is fed: it is counted and timed, and an exception that comes out is a wrong answer."""
        started = time.process_time()
        try:
            with _ended_if_it_hangs(self.nightly):
                yield
        except Exception as error:
            if not self.nightly:
                error.add_note(f"the input: {shown!r}")
                raise
            self._note(f"{type(error).__name__}: {error}", shown)
        finally:
            self._count(time.process_time() - started, shown)

    def _count(self, took_s: float, shown: object) -> None:
        self.fed += 1
        if took_s > self.slowest_s:
            self.slowest_s, self.slowest = took_s, _short(shown)
        if self.nightly and took_s > MOST_S:
            self._note(f"took {took_s:.2f} s", shown)

    def _note(self, problem: str, shown: object) -> None:
        self.failed += 1
        if len(self.failures) < MOST_KEPT:
            self.failures.append(f"{problem}\n  input: {shown!r}")


@dataclass(frozen=True)
class Fuzzer:
    """A name, what feeds a session, and how many inputs it gets relative to others, in a night and in a test.

    One whose inputs take long has a low weight.
    """

    name: str
    feed: Callable[[Session], None]
    weight: float = 1.0


def _short(shown: object) -> str:
    text = repr(shown)
    return text if len(text) <= 200 else f"{text[:150]} ... ({len(text):,} characters)"


class Hangs(Exception):
    """An input that took so long that it was ended."""


@contextmanager
def _ended_if_it_hangs(wanted: bool) -> Iterator[None]:
    """Only where asked for: a signal handler belongs to the main thread of a process of one's own."""
    if not wanted:
        yield
        return

    def end(*_: object) -> None:
        raise Hangs(f"no answer within {HANGS_S} s")

    earlier = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, HANGS_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, earlier)
