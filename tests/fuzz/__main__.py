"""A night of fuzzing: `python -m tests.fuzz --inputs 1000000` feeds all fuzzers, and prints how many inputs it fed.

Fails if an input got a traceback or an exit code that it should not get, or took more than a second of CPU time.
`--seed` repeats a night; a failure names the fuzzer, seed and number of inputs that repeat it alone.
"""

from __future__ import annotations

import argparse
import logging
import math
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

from tests.fuzz.catalogue import fuzzers
from tests.fuzz.session import Session

CHUNK = 2000  # inputs of weight 1 that a process feeds before it tells how it went
FEWEST = 100  # of any weight
TELL_EACH_S = 10.0


@dataclass
class Total:
    """What came of all inputs of a fuzzer."""

    fed: int = 0
    slowest_s: float = 0.0
    slowest: str = ""
    outcomes: Counter[str] = field(default_factory=Counter)
    failed: int = 0

    def add(self, session: Session) -> None:
        self.fed += session.fed
        self.failed += session.failed
        self.outcomes += session.outcomes
        if session.slowest_s > self.slowest_s:
            self.slowest_s, self.slowest = session.slowest_s, session.slowest


def main() -> int:
    wanted = _arguments()
    chosen = {name: fuzzer for name, fuzzer in fuzzers().items() if not wanted.fuzzer or name in wanted.fuzzer}
    totals = {name: Total() for name in chosen}
    parts = list(_chunks({name: fuzzer.weight for name, fuzzer in chosen.items()}, wanted.inputs, wanted.seed))
    Random(wanted.seed).shuffle(parts)  # so that the rate is the same all night
    print(f"seed {wanted.seed}; fuzzers: {', '.join(chosen)}", file=sys.stderr, flush=True)
    started = told = time.monotonic()
    with _airflow_home(), ProcessPoolExecutor(wanted.processes) as pool:
        asked: dict[Future[Session], tuple[str, int, int]] = {pool.submit(feed, *part): part for part in parts}
        for done in as_completed(asked):
            name, seed, inputs = asked[done]
            try:
                session = done.result()
            except Exception as error:
                session = Session(seed, inputs, failed=1, failures=[f"the process ended: {error!r}"])
            totals[name].add(session)
            for failure in session.failures:
                where = f"--fuzzer {name} --seed {seed} --inputs {inputs}"
                print(f"{where}\n  {failure}", file=sys.stderr, flush=True)
            if time.monotonic() - told > TELL_EACH_S:
                told = time.monotonic()
                print(_line(totals, wanted.inputs, told - started), file=sys.stderr, flush=True)
    print("\n".join(_table(totals)))
    print(_line(totals, wanted.inputs, time.monotonic() - started))
    return 1 if any(total.failed for total in totals.values()) else 0


def feed(name: str, seed: int, inputs: int) -> Session:
    """Feed one fuzzer some inputs; runs in a process of the pool."""
    logging.disable()  # what is damaged is told of, by the thousand
    session = Session(seed, inputs, nightly=True)
    fuzzers()[name].feed(session)
    return session


@contextmanager
def _airflow_home() -> Iterator[None]:
    """Airflow makes its folder when it is first imported, which processes of the pool do."""
    with tempfile.TemporaryDirectory(prefix="aftershock-airflow-") as folder:
        os.environ |= {"AIRFLOW_HOME": folder, "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "false"}
        yield


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=1_000_000, help="for all fuzzers together; default 1000000")
    parser.add_argument("--seed", type=int, default=time.time_ns() // 86_400_000_000_000, help="default: the day's")
    parser.add_argument("--fuzzer", action="append", default=[], metavar="NAME", help="only this one; can be repeated")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="default: one for each core")
    return parser.parse_args()


def _chunks(weights: dict[str, float], inputs: int, seed: int) -> Iterator[tuple[str, int, int]]:
    """(fuzzer, seed, inputs) of each chunk, no seed twice; a night of one chunk has the seed that it is given."""
    for name, weight in weights.items():
        left, number = math.ceil(inputs * weight / sum(weights.values())), 0
        size = max(FEWEST, round(CHUNK * min(1.0, weight)))
        while left > 0:
            yield name, seed + 1_000_003 * number, min(left, size)
            left, number = left - size, number + 1


def _line(totals: dict[str, Total], inputs: int, took_s: float) -> str:
    fed = sum(total.fed for total in totals.values())
    failed = sum(total.failed for total in totals.values())
    slowest_s = max(total.slowest_s for total in totals.values())
    progress = f"{fed:,} of {inputs:,} inputs in {took_s:,.0f} s ({fed / max(took_s, 1e-9):,.0f}/s)"
    return f"{progress}: {failed:,} failed, the slowest took {slowest_s:.3f} s of CPU time"


def _table(totals: dict[str, Total]) -> Iterator[str]:
    yield f"{'fuzzer':24}{'inputs':>12}{'failed':>9}{'slowest [s]':>13}  answers"
    for name, total in totals.items():
        answers = ", ".join(f"{count:,} {answer}" for answer, count in total.outcomes.most_common())
        yield f"{name:24}{total.fed:12,}{total.failed:9,}{total.slowest_s:13.3f}  {answers}"
        yield f"    slowest: {total.slowest}"


if __name__ == "__main__":
    sys.exit(main())
