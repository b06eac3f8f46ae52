"""Compares eq. 10 with several runs of one experiment together, since chance decides what a single run measures.

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

Strikes that find their host away are absorbed. Without them there are fewer short gaps than eq. 10 has at the rate N /
sum X, and short gaps cost least, so utilization is lower. It is not lower than eq. 10 at the rate of all strikes: there
an absorbed strike costs as much as any other. So the interval reaches down by the difference of the two.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import NamedTuple, TypedDict

import pandas as pd

from experiments.engines import BY_OWN_CLOCK
from experiments.errors import BadInput
from experiments.fault_kinds import FaultKind
from experiments.recovery_modes import RecoveryMode
from experiments.wording import counted, on_one_line, percent, significant
from models.simulation.simulate import simulate
from models.uncertainty import HostGaps, simulate_windows
from models.utilization import utilization
from results.damage import Damaged
from results.predictions.outages import MeasuredLedger, struck_faults
from results.predictions.partition_checkpoints import PartitionCheckpoints
from results.predictions.replays import MOST_IDLE
from results.runs.store import Run
from results.summary.findings import (
    ModelInputs,
    judged_utilization,
    ledger_seconds,
    number,
    table_or_empty,
    the_run,
    took_effect,
)
from results.tables.schema import FaultOutcome, LedgerClass
from results.verdict import Verdict

FEWEST_SEEDS, FEWEST_FAULTS = 2, 20
ERRORS = 2.576  # standard deviations: a sound model fails at most once in a hundred times
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
    """What the runs measured together, and what eq. 10 says of them; None where it is not known.

    Seeds and faults are 0 if they were not counted, since a run cannot be held against eq. 10.
    """

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
        head = f"{counted(self.faults, 'fault')} under {counted(self.seeds, 'seed')}"
        if self.measured is None:
            return f"unknown: {head}; {self.why}" if self.seeds else f"unknown: {self.why}"
        measured, expected, low, high = (
            significant(each) for each in (self.measured, self.expected, self.low, self.high) if each is not None
        )
        found = f"{head}: measured {measured}, eq. 10 gives {expected}"
        told = f"{found}, and by chance {low} to {high} would be measured"
        return f"{self.verdict}: {told}" + (f"; {self.why}" if self.why else "")

    def row(self) -> dict[str, object]:
        """The fields by name, as `--json` and the comparison page have them."""
        return asdict(self)


class NoWindow(Exception):
    """A run does not say what eq. 10 needs; the message names it."""


class Window(NamedTuple):
    """The window of a run beside eq. 10.

    utilization  as measured
    expected     by eq. 10, with the costs of the run and at the rate at which it was struck
    added        what the finite window adds to utilization on average, and the rule by which its plan was chosen
    luck         the standard deviation of what chance does in such a window
    below        how much less eq. 10 gives if the absorbed strikes count, too
    """

    seed: int
    window_s: float
    faults: int
    utilization: float
    expected: float
    added: float
    luck: float
    below: float = 0.0


@dataclass(frozen=True)
class _Measured:
    """One run: what it measured, and the inputs of eq. 10 at the rate at which it was struck.

    `absorbed` strikes found their host away; they are none of its `faults`.
    """

    seed: int
    window_s: float
    faults: int
    absorbed: int
    utilization: float
    inputs: ModelInputs

    def beside_eq_10(self, gaps: HostGaps | None = None) -> Window:
        expected, least = (float(utilization(*vars(each).values())) for each in (self.inputs, self._with_absorbed()))
        added, luck = self._chance(gaps)
        below = expected - least
        return Window(self.seed, self.window_s, self.faults, self.utilization, expected, added, luck, below)

    def _with_absorbed(self) -> ModelInputs:
        """The inputs at the rate of all strikes."""
        share = self.absorbed / self.faults if self.faults else 0.0
        return replace(self.inputs, failure_rate=self.inputs.failure_rate * (1 + share))

    def _chance(self, gaps: HostGaps | None) -> tuple[float, float]:
        """What the finite window adds, and the luck in it, both simulated."""
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
        windows = simulate_windows(window=self.window_s, failures=self.faults, gaps=gaps, **given)
        return float(windows.mean()) - endless.mean, float(windows.std())


def are_of_one_experiment(digests: Iterable[str | None]) -> bool:
    """Whether runs with these digests of their experiments can be pooled; old runs do not say what they ran."""
    known = set(digests)
    return len(known) == 1 and None not in known


def pooled(runs: Sequence[Run]) -> Pooled:
    """Hold the runs' utilization, by the time in their windows, against eq. 10: they are of one experiment.

    Two runs under one seed had the same faults, and so the same luck: they count as one as far as chance goes. A run in
    which no recovery went undisturbed gets the mean R of the others. It is unknown if failures cost a run less than
    eq. 10 says (`_require_all_work_lost`).
    """
    try:
        for run in runs:
            _require_all_work_lost(run)
        found = _with_recoveries([_measured(run) for run in runs])
    except (NoWindow, Damaged) as lack:
        return _unknown(0, 0, on_one_line(str(lack)))
    if few := _too_few(found):
        return few
    try:
        return _judged([run.beside_eq_10() for run in found])
    except BadInput as refusal:
        return _unknown(*_counts(found), on_one_line(str(refusal)))


def window_of(run: Run, gaps: HostGaps | None = None) -> Window:
    """One run beside eq. 10. Raises `NoWindow` if it does not say what eq. 10 needs.

    `gaps` is the rule by which its plan was chosen, if there was one.
    """
    measured = _measured(run)
    if math.isnan(measured.inputs.recovery_time_s):
        raise NoWindow(f"{run.run_id} has no recovery that no further fault disturbs")
    try:
        return measured.beside_eq_10(gaps)
    except BadInput as refusal:
        raise NoWindow(f"{run.run_id}: {on_one_line(str(refusal))}") from None


def pooled_windows(windows: Sequence[Window]) -> Pooled:
    """The same as `pooled`, of windows that may be of several experiments: each has the eq. 10 of its own costs."""
    return _too_few(windows) or _judged(windows)


def _unknown(seeds: int, faults: int, why: str) -> Pooled:
    return Pooled(seeds, faults, None, None, None, None, Verdict.UNKNOWN, why)


def _counts(runs: Iterable[_Measured | Window]) -> tuple[int, int]:
    """Seeds, and faults: those of runs under one seed are the same ones."""
    faults: dict[int, int] = {}
    for run in runs:
        faults[run.seed] = max(run.faults, faults.get(run.seed, 0))
    return len(faults), sum(faults.values())


def _too_few(runs: Sequence[_Measured | Window]) -> Pooled | None:
    seeds, faults = _counts(runs)
    if seeds < FEWEST_SEEDS or faults < FEWEST_FAULTS:
        return _unknown(seeds, faults, f"at least {FEWEST_SEEDS} seeds and {FEWEST_FAULTS} faults are needed")
    return None


def _judged(windows: Sequence[Window]) -> Pooled:
    whole_s = sum(each.window_s for each in windows)
    measured = sum(each.window_s * each.utilization for each in windows) / whole_s
    expected = sum(each.window_s * each.expected for each in windows) / whole_s
    added = sum(each.window_s * each.added for each in windows) / whole_s
    below = sum(each.window_s * each.below for each in windows) / whole_s
    luck_s: dict[int, float] = defaultdict(float)
    for each in windows:
        luck_s[each.seed] += each.window_s * each.luck
    away = ERRORS * math.hypot(*luck_s.values()) / whole_s
    low, high = expected + added - below - away, expected + added + away
    verdict = Verdict.PASS if low <= measured <= high else Verdict.FAIL
    return Pooled(*_counts(windows), measured, expected, low, high, verdict)


def _with_recoveries(runs: list[_Measured]) -> list[_Measured]:
    known = [run for run in runs if not math.isnan(run.inputs.recovery_time_s)]
    if len(known) == len(runs):
        return runs
    if not (faults := sum(run.faults for run in known)):
        raise NoWindow("no run says how long a recovery takes that no further fault disturbs")
    mean_s = sum(run.faults * run.inputs.recovery_time_s for run in known) / faults
    filled = [replace(run, inputs=replace(run.inputs, recovery_time_s=mean_s)) for run in runs if run not in known]
    return known + filled


def _require_all_work_lost(run: Run) -> None:
    """Raise `NoWindow` for a run with faults of which eq. 10 counts too much as lost.

    It takes a failure to undo all of the time since the last checkpoint. But other hosts may go on with their part of
    the work, or take a checkpoint of it before the recovery begins. Or the load may leave time without input, in which
    nothing is done that could be undone.
    """
    row, struck = the_run(run), took_effect(table_or_empty(run, "faults"))
    if row is None or struck.empty:
        return
    task = row.get("recovery") == RecoveryMode.TASK and (struck["kind"] != FaultKind.DRIVER_KILL).any()
    if task or _others_kept_their_part(run, row, struck):
        raise NoWindow(f"{run.run_id} lost a part of its work only, since other hosts went on: eq. 10 knows no parts")
    ledger = ledger_seconds(run)
    if ledger is None:
        raise NoWindow(f"{run.run_id} has no ledger that says for how long it was idle")
    if (idle := ledger[LedgerClass.IDLE] / ledger["window"]) > MOST_IDLE:
        raise NoWindow(f"{run.run_id} was idle for {percent(idle)} of its window, which eq. 10 does not know")


def _others_kept_their_part(run: Run, row: pd.Series, struck: pd.DataFrame) -> bool:
    """Whether partitions take checkpoints by clocks of their own, and took one between a fault and its recovery."""
    protocol = row.get("protocol")
    judged = judged_utilization(table_or_empty(run, "predictions"), struck)
    interval_s = None if judged is None else number(judged["interval_s"])
    if pd.isna(protocol) or protocol not in BY_OWN_CLOCK or interval_s is None:
        return False
    start_ns, window_s = int(row["window_start_ns"]), float(row["window_s"])
    store_s = PartitionCheckpoints(table_or_empty(run, "partition_checkpoints"), start_ns).store_s
    if store_s is None:
        raise NoWindow(f"{run.run_id} does not say how long a checkpoint takes until it is stored")
    strikes = struck_faults(struck, start_ns)
    ledger = MeasuredLedger(table_or_empty(run, "ledger"), strikes, start_ns, window_s, in_batches=False)
    return any(ledger.leaves_time_for_a_checkpoint(strike, interval_s, store_s) for strike in strikes)


def _measured(run: Run) -> _Measured:
    row, faults = the_run(run), table_or_empty(run, "faults")
    judged = judged_utilization(table_or_empty(run, "predictions"), faults)
    if row is None or judged is None or pd.isna(row["utilization"]):
        raise NoWindow(f"{run.run_id} has no utilization that eq. 10 describes")
    struck, absorbed = len(took_effect(faults)), int((faults["outcome"] == FaultOutcome.ABSORBED).sum())
    named = {name: judged[name] for name in ModelInputs.__annotations__}
    if not struck:
        named |= {"failure_rate": 0.0, "recovery_time_s": 0.0}
    if lacking := [name for name, value in named.items() if pd.isna(value) and name != "recovery_time_s"]:
        raise NoWindow(f"{run.run_id} does not say its {', '.join(lacking)}")
    rate, cost_s, recovery_s, interval_s, hop_delay_s = (
        math.nan if pd.isna(value) else float(value) for name, value in named.items() if name != "depth"
    )
    inputs = ModelInputs(rate, cost_s, recovery_s, interval_s, hop_delay_s, int(named["depth"]))
    return _Measured(int(row["seed"]), float(row["window_s"]), struck, absorbed, float(row["utilization"]), inputs)
