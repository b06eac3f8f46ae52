"""Eq. 10 held against several runs of one experiment: what no single run can show, since chance decides it.

The faults of a run strike when chance will have it, so eq. 10, which is the mean over all that chance may do, cannot be
held against one run. Over N faults their luck averages out. Let X be the time from one fault to the next, exponential
with rate L, and Y the useful time in it: the floor of (X - R - (n - 1) delta) / T periods, each worth T - c. By
renewal-reward utilization is U = E[Y] / E[X], which is eq. 10. Over N faults the measured ratio sum Y / sum X differs
from eq. 10 at the rate L' = N / sum X by

    L (mean Y - U mean X) - U'(L) (L' - L) + ..., where L' - L = -L^2 (mean X - 1 / L) + ...

Since U' / L - U / L^2 = d E[Y] / dL = -Cov(X, Y), the coefficient of X in it is -Cov(X, Y) / Var(X): so far as Y goes
with X, it is explained by the rate that was found. What is left has the standard deviation

    L sqrt((Var(Y) - Cov(X, Y)^2 / Var(X)) / N),

which shrinks with the root of the number of faults. Windows are finite besides: a run has no fault before its window,
and none takes back what was done last. So the same process is simulated: windows as long as those of the runs, with as
many faults at uniform times (`simulate_windows`), whose scatter has the limit above, and endless ones (`simulate`),
whose mean is U. The interval is eq. 10, and what the mean of the finite windows is above that of the endless ones,
give or take `ERRORS` standard deviations. Recoveries and checkpoints are as long as they were on average in each run:
their scatter is in the measured utilization and in R and c alike.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TypedDict

import pandas as pd

from experiments.errors import BadInput
from experiments.wording import on_one_line
from models.simulation.simulate import simulate
from models.uncertainty import simulate_windows
from models.utilization import utilization
from results.damage import Damaged
from results.runs.store import Run
from results.summary.findings import ModelInputs, judged_utilization, table_or_empty, the_run, took_effect
from results.verdict import Verdict

FEWEST_SEEDS, FEWEST_FAULTS = 2, 20
ERRORS = 2.576  # standard deviations: a sound model fails once in a hundred times
RUNS, FAILURES, SEED = 400, 200, 20_190


class _Given(TypedDict):
    """What both simulations of a process take."""

    checkpoint_cost: float
    recovery_time: float
    interval: float
    hop_delay: float
    depth: int
    seed: int


@dataclass(frozen=True)
class Pooled:
    """What the runs measured together, and what eq. 10 says of them; None where it is not known."""

    seeds: int
    faults: int
    measured: float | None
    expected: float | None
    low: float | None
    high: float | None
    verdict: Verdict
    why: str | None = None

    @property
    def sentence(self) -> str:
        """For people."""
        head = f"{self.faults} faults under {self.seeds} seed{'s' * (self.seeds != 1)}"
        if self.measured is None:
            return f"unknown: {head}; {self.why}"
        found = f"{head}: measured {self.measured:.4f}, eq. 10 gives {self.expected:.4f}"
        told = f"{found}, and by chance {self.low:.4f} to {self.high:.4f} would be measured"
        return f"{self.verdict}: {told}" + (f"; {self.why}" if self.why else "")

    def row(self) -> dict[str, object]:
        """The fields by name, as `--json` and the comparison page have them."""
        return asdict(self)


class _Lack(Exception):
    """A run does not say what eq. 10 needs."""


@dataclass(frozen=True)
class _Measured:
    """One run: what it measured, and the inputs of eq. 10 at the rate at which it was struck."""

    seed: int
    window_s: float
    faults: int
    utilization: float
    inputs: ModelInputs

    @property
    def expected(self) -> float:
        return float(utilization(*vars(self.inputs).values()))

    @cached_property
    def chance(self) -> tuple[float, float]:
        """What the finite window adds to utilization on average, and the standard deviation of the luck in it."""
        if not self.faults:
            return 0.0, 0.0
        found = self.inputs
        given = _Given(
            checkpoint_cost=found.checkpoint_cost_s,
            recovery_time=found.recovery_time_s,
            interval=found.interval_s,
            hop_delay=found.hop_delay_s,
            depth=found.depth,
            seed=SEED,
        )
        endless = simulate(failure_rate=found.failure_rate, runs=RUNS, failures=FAILURES, **given)
        windows = simulate_windows(window=self.window_s, failures=self.faults, **given)
        return float(windows.mean()) - endless.mean, float(windows.std())


def pooled(runs: Sequence[Run]) -> Pooled:
    """Hold the runs' utilization, by the time in their windows, against eq. 10: they are of one experiment.

    Two runs under one seed had the same faults, and so the same luck: they count as one as far as chance goes. A run in
    which no recovery went undisturbed gets the mean R of the others.
    """
    try:
        found = _with_recoveries([_measured(run) for run in runs])
    except (_Lack, Damaged) as lack:
        return _unknown(0, 0, on_one_line(str(lack)))
    by_seed: dict[int, list[_Measured]] = defaultdict(list)
    for run in found:
        by_seed[run.seed].append(run)
    faults = sum(max(run.faults for run in same) for same in by_seed.values())
    if len(by_seed) < FEWEST_SEEDS or faults < FEWEST_FAULTS:
        return _unknown(len(by_seed), faults, f"at least {FEWEST_SEEDS} seeds and {FEWEST_FAULTS} faults are needed")
    try:
        return _judged(by_seed, faults)
    except BadInput as refusal:
        return _unknown(len(by_seed), faults, on_one_line(str(refusal)))


def _unknown(seeds: int, faults: int, why: str) -> Pooled:
    return Pooled(seeds, faults, None, None, None, None, Verdict.UNKNOWN, why)


def _judged(by_seed: dict[int, list[_Measured]], faults: int) -> Pooled:
    runs = [run for same in by_seed.values() for run in same]
    whole_s = sum(run.window_s for run in runs)
    measured = sum(run.window_s * run.utilization for run in runs) / whole_s
    expected = sum(run.window_s * run.expected for run in runs) / whole_s
    added = sum(run.window_s * run.chance[0] for run in runs) / whole_s
    squares = (sum(run.window_s * run.chance[1] for run in same) ** 2 for same in by_seed.values())
    away = ERRORS * sum(squares) ** 0.5 / whole_s
    low, high = expected + added - away, expected + added + away
    verdict = Verdict.PASS if low <= measured <= high else Verdict.FAIL
    return Pooled(len(by_seed), faults, measured, expected, low, high, verdict)


def _with_recoveries(runs: list[_Measured]) -> list[_Measured]:
    known = [run for run in runs if not math.isnan(run.inputs.recovery_time_s)]
    if len(known) == len(runs):
        return runs
    if not (faults := sum(run.faults for run in known)):
        raise _Lack("no run says how long a recovery takes that no further fault disturbs")
    mean_s = sum(run.faults * run.inputs.recovery_time_s for run in known) / faults
    filled = [replace(run, inputs=replace(run.inputs, recovery_time_s=mean_s)) for run in runs if run not in known]
    return known + filled


def _measured(run: Run) -> _Measured:
    row, faults = the_run(run), table_or_empty(run, "faults")
    judged = judged_utilization(table_or_empty(run, "predictions"), faults)
    if row is None or judged is None or pd.isna(row["utilization"]):
        raise _Lack(f"{run.run_id} has no utilization that eq. 10 describes")
    struck = len(took_effect(faults))
    named = {name: judged[name] for name in ModelInputs.__annotations__}
    if not struck:
        named |= {"failure_rate": 0.0, "recovery_time_s": 0.0}
    if lacking := [name for name, value in named.items() if pd.isna(value) and name != "recovery_time_s"]:
        raise _Lack(f"{run.run_id} does not say its {', '.join(lacking)}")
    rate, cost_s, recovery_s, interval_s, hop_delay_s = (
        math.nan if pd.isna(value) else float(value) for name, value in named.items() if name != "depth"
    )
    inputs = ModelInputs(rate, cost_s, recovery_s, interval_s, hop_delay_s, int(named["depth"]))
    return _Measured(int(row["seed"]), float(row["window_s"]), struck, float(row["utilization"]), inputs)
