"""The findings of a run as plain numbers, for the checks, the report, the terminal and the JSON document.

Times are in seconds. A quantity that was not measured is None, and a table that is missing counts as empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import SupportsFloat

import numpy as np
import pandas as pd

from experiments.recovery_modes import PARTIAL
from experiments.wording import percent, significant
from models.utilization import Values, optimal_interval, utilization
from results.damage import Damaged
from results.runs.store import Run, RunStatus
from results.summary.fallback import fell_back
from results.tables.schema import TABLES, FaultOutcome, LedgerClass

REPLAY_MODEL = "replayed faults"
OTHER_COSTS_MODEL = "replayed faults, c and R of {}"  # a run
LAW_MODEL = "eq. 10, failure law"
LONG_RUN, LONG_RUN_MODEL = "utilization in the long run", "eq. 10, at the rate of this run"
NO_FAULTS_MODEL = "no faults"
FAILURE_CLASSES = (LedgerClass.LOST, LedgerClass.DETECT, LedgerClass.RESTART, LedgerClass.WARM_UP)
BUSY_SHARE = 0.25  # of the cores, from which on others disturb a run; Airflow, which is one of them, takes less
PHASES = ("detect", "restart", "restore", "catch_up")  # of a recovery
BETWEEN = ("death", "notice", "ready", "restored", "normal")  # moments of a recovery: each phase lies between two
EXECUTOR = "executor"  # Spark's own part of the restart
NO_KNOWN_FAULT = "no known fault"  # stands for the hosts of the fault that began a recovery


@dataclass(frozen=True)
class Utilization:
    """Measured utilization beside the prediction that the run is judged by, with the interval of the prediction.

    expected  by eq. 10, which knows the law of the faults, not what came of it: what another seed would give
    """

    measured: float | None
    predicted: float | None
    low: float | None
    high: float | None
    model: str | None
    expected: float | None = None
    why: str | None = None  # why nothing is predicted


@dataclass(frozen=True)
class Advice:
    """What eq. 10 advises: the checkpoint interval T that was run, the optimal one, and the expected U at both."""

    interval_s: float
    expected: float
    optimal_interval_s: float
    optimal_expected: float

    @property
    def gain(self) -> float:
        """What the expected U gains from the optimal interval, as a difference of shares."""
        return self.optimal_expected - self.expected


@dataclass(frozen=True)
class Sustainable:
    """The highest rate that a search found sustained, and the lowest that was not [records/s]."""

    rate: float
    too_high: float | None

    @property
    def sentence(self) -> str:
        """For people."""
        too_high = self.too_high
        above = "no higher one was seen to fail" if too_high is None else f"{significant(too_high)} is too much"
        return f"The query sustains {significant(self.rate)} records/s; {above}."


@dataclass(frozen=True)
class ModelInputs:
    """The measured inputs of the utilization model, in the order of its arguments."""

    failure_rate: float
    checkpoint_cost_s: float
    recovery_time_s: float
    interval_s: float
    hop_delay_s: float
    depth: int

    def at(self, interval_s: Values) -> Values:
        """Utilization that eq. 10 expects at another checkpoint interval [s], scalar or array.

        It is 0 if a checkpoint takes the whole interval or more, where eq. 10 has no meaning.
        """
        known = self.failure_rate, self.checkpoint_cost_s, self.recovery_time_s
        return np.maximum(utilization(*known, interval_s, self.hop_delay_s, self.depth), 0.0)


def figure_or_dash(value: SupportsFloat | None) -> str:
    """To three significant digits; a dash if it was not measured."""
    known = number(value)
    return "-" if known is None else significant(known)


def number(value: SupportsFloat | None) -> float | None:
    """Return a table's value as a float, or None where it is null or NaN."""
    return None if value is None or pd.isna(value) else float(value)


def mean(values: pd.Series) -> float | None:
    """The mean of what was measured; None if nothing was."""
    known = values.dropna()
    return float(known.mean()) if len(known) else None


def table_or_empty(run: Run, name: str) -> pd.DataFrame:
    """Read a table, or return one without rows where this run has none."""
    return run.table(name) if run.has(name) else _empty(name).copy(deep=False)


@cache
def _empty(name: str) -> pd.DataFrame:
    return TABLES[name].empty_table().to_pandas(types_mapper=pd.ArrowDtype)


def the_run(run: Run) -> pd.Series | None:
    """The row of the runs table; None for a run that ended before its tables were made."""
    runs = table_or_empty(run, "runs")
    return None if runs.empty else runs.iloc[0]


def engine_and_mode(row: pd.Series) -> str:
    """What executed a run, for people, by its row of the runs table: such as `dataflow (protocol coordinated)`.

    How the testbed recovers is told if it recovers in parts: only then survivors go on.
    """
    if pd.notna(row.get("protocol")):
        in_parts = f", recovery {row['recovery']}" if row["recovery"] in PARTIAL else ""
        return f"{row['engine']} (protocol {row['protocol']}{in_parts})"
    return f"{row['engine']} ({row['trigger']}, recovery by {row['recovery']})"


def measured_row(run: Run) -> pd.Series:
    """The row of the runs table. Raises `Damaged` if the table has no row."""
    row = the_run(run)
    if row is None:
        raise Damaged(run.run_id, "table runs", "it has no row")
    return row


def took_effect(faults: pd.DataFrame) -> pd.DataFrame:
    """The faults that happened and found their host in a state to be struck."""
    return faults[(faults["outcome"] == FaultOutcome.INJECTED) & faults["actual_ns"].notna()]


def with_measured_cost(checkpoints: pd.DataFrame) -> pd.DataFrame:
    """The rows of table `checkpoints` whose cost was measured.

    If the report of a batch died with its driver, the next one makes it up, with the cost of the batch before. Only
    such a batch of Spark lacks the time for the commit log; the testbed has none.
    """
    reported = checkpoints["commit_log_s"].notna()
    return checkpoints[reported] if reported.any() else checkpoints


def judged_utilization(predictions: pd.DataFrame, faults: pd.DataFrame) -> pd.Series | None:
    """The prediction that a run is judged by: the replay of its faults, or the model without faults where none struck.

    None for a run with faults that the model does not describe.
    """
    rows = predictions[predictions["quantity"] == "utilization"].drop_duplicates("model").set_index("model", drop=False)
    wanted = [REPLAY_MODEL] if len(took_effect(faults)) else [NO_FAULTS_MODEL, REPLAY_MODEL]
    return next((rows.loc[model] for model in wanted if model in rows.index), None)


def utilizations(run: Run) -> Utilization:
    """Measured and predicted utilization of a run, as far as it has them.

    Without a prediction that judges the run only `measured` is known, and without tables not even that.
    """
    row = judged_utilization(table_or_empty(run, "predictions"), table_or_empty(run, "faults"))
    facts = the_run(run)
    measured = None if facts is None else number(facts["utilization"])
    if row is None:
        return Utilization(measured, None, None, None, None)
    judged, predicted, low, high = (number(row[name]) for name in ("measured", "predicted", "low", "high"))
    expected = _expected(table_or_empty(run, "predictions"))
    why = None if pd.isna(row["why"]) else str(row["why"])
    return Utilization(measured if judged is None else judged, predicted, low, high, row["model"], expected, why)


def _expected(predictions: pd.DataFrame) -> float | None:
    """What eq. 10 expects at the rate of the law; without a law, the model without faults."""
    for model in (LAW_MODEL, NO_FAULTS_MODEL):
        rows = predictions[predictions["model"] == model]
        if len(rows):
            return number(rows.iloc[0]["predicted"])
    return None


def sustainable(run: Run) -> Sustainable | None:
    """What the search of a run found; None for a run that did not search, or found nothing."""
    facts = the_run(run)
    if facts is None or (rate := number(facts.get("sustainable_rate"))) is None:
        return None
    return Sustainable(rate, number(facts.get("unsustainable_rate")))


def model_inputs(run: Run) -> ModelInputs | None:
    """The measured inputs of the prediction that the run is judged by; None unless all of them were measured."""
    row = judged_utilization(table_or_empty(run, "predictions"), table_or_empty(run, "faults"))
    if row is None:
        return None
    values = {name: number(row[name]) for name in ModelInputs.__annotations__}
    if values["failure_rate"] == 0 and values["recovery_time_s"] is None:
        values["recovery_time_s"] = 0.0  # a run without failures measures no recovery, and its model needs none
    known = {name: value for name, value in values.items() if value is not None}
    return None if len(known) < len(values) else ModelInputs(depth=int(known.pop("depth")), **known)


def advice(run: Run) -> Advice | None:
    """What the model says of the checkpoint interval; None without faults, where no interval is optimal."""
    inputs = model_inputs(run)
    if inputs is None or not inputs.failure_rate > 0 or not inputs.checkpoint_cost_s > 0:
        return None
    return _advice_at(inputs)


def _advice_at(inputs: ModelInputs) -> Advice:
    """What eq. 10 says of the checkpoint interval at these inputs, whose rate and cost are above 0."""
    best_s = float(optimal_interval(inputs.failure_rate, inputs.checkpoint_cost_s))
    return Advice(inputs.interval_s, float(inputs.at(inputs.interval_s)), best_s, float(inputs.at(best_s)))


def ledger_seconds(run: Run) -> dict[str, float] | None:
    """Seconds of each class of the ledger and of the whole `window`; None when the run has no ledger."""
    segments, facts = table_or_empty(run, "ledger"), the_run(run)
    if segments.empty or facts is None:
        return None
    summed = segments.groupby("class")["seconds"].sum()
    window = float(facts["window_end_ns"] - facts["window_start_ns"]) / 1e9
    if not window > 0:
        return None
    return {each.value: float(summed.get(each, 0.0)) for each in LedgerClass} | {"window": window}


def failure_share(ledger: dict[str, float]) -> float:
    """Share of the window that failures took: work lost, detecting, restarting, warming up."""
    return sum(ledger[name] for name in FAILURE_CLASSES) / ledger["window"]


def quality_totals(run: Run) -> dict[str, int] | None:
    """Sums over the closed windows of the query: exact, emitted, lost, duplicated, wrong, and `windows`."""
    quality = table_or_empty(run, "quality")
    if quality.empty:
        return None
    names = ("exact", "emitted", "lost", "duplicated", "wrong")
    return {name: int(quality[name].sum()) for name in names} | {"windows": len(quality)}


def tentative_quality(run: Run) -> dict[str, float | None]:
    """Accuracy of the tentative output of a run, and the output fidelity predicted for it; None without any."""
    facts = the_run(run)
    names = ("tentative_accuracy", "tentative_fidelity")
    return {name: None if facts is None else number(facts.get(name)) for name in names}


def seconds_from(start_ns: int | None, moments_ns: pd.Series) -> pd.Series:
    """Moments as seconds from the start of the window, NaN where the moment or the start was not measured."""
    if start_ns is None:
        return pd.Series(float("nan"), index=moments_ns.index)
    return (moments_ns - start_ns).astype("float64") / 1e9


def timed_faults(run: Run) -> pd.DataFrame:
    """Every planned fault once, by planned time; `planned_at_s` and `actual_at_s` count from the window's start."""
    faults, start_ns = table_or_empty(run, "faults").sort_values("planned_ns"), _window_start_ns(run)
    faults["planned_at_s"] = seconds_from(start_ns, faults["planned_ns"])
    faults["actual_at_s"] = seconds_from(start_ns, faults["actual_ns"])
    return faults


def timed_recoveries(run: Run) -> pd.DataFrame:
    """Every recovery once, by its begin, with `kind` and `targets` of the fault that began it (null if none is known).

    One fault may begin several recoveries: if it makes the query fail again. `death_at_s` counts from the start of the
    window. Tables of an older version lack `executor_s`.
    """
    columns = ["fault", "faults", "death_ns", *(f"{part}_s" for part in (*PHASES, EXECUTOR))]
    phases = table_or_empty(run, "recoveries").reindex(columns=columns)
    begun_by = table_or_empty(run, "faults")[["fault", "kind", "targets"]]
    joined = phases.merge(begun_by, on="fault", how="left").sort_values("death_ns", ignore_index=True)
    joined["death_at_s"] = seconds_from(_window_start_ns(run), joined["death_ns"])
    return joined


def _window_start_ns(run: Run) -> int | None:
    facts = the_run(run)
    return None if facts is None else int(facts["window_start_ns"])


def about_the_machine(run: Run) -> str | None:
    """How busy others kept the machine during the window, and how fast it was; None of a run that has noted neither."""
    status = run.known_status()
    return " ".join(filter(None, (_machine_load(status), _machine_speed(status)))) or None


def _machine_speed(status: RunStatus) -> str | None:
    if status.machine_speed is None:
        return None
    return f"The machine's speed was {significant(status.machine_speed)} pieces of work a second before the start."


def _machine_load(status: RunStatus) -> str | None:
    cores, others = status.cores, status.others_cores
    if cores is None or others is None:
        return None
    kept = f"{significant(others)} of the machine's {cores} cores"
    text = f"Programs outside of the cluster kept {kept} busy in the window"
    is_busy = others > BUSY_SHARE * cores
    return f"{text}: what is late, slow or unknown may be due to that." if is_busy else f"{text}."


def headline(run: Run) -> str:
    """The answer in a few sentences: what the run did instead of what was asked, the sustainable rate, what failures
    cost, as predicted, and what would be best."""
    instead = fell_back(the_run(run))
    return f"This run fell back: {instead}. {_answer(run)}" if instead else _answer(run)


def _answer(run: Run) -> str:
    ledger, found, best = ledger_seconds(run), utilizations(run), advice(run)
    if ledger is None or found.measured is None:
        return "This run measured no utilization; its logs and status say why."
    cost, measured = percent(failure_share(ledger)), significant(found.measured)
    text = f"Failures cost {cost} of the time: measured utilization {measured}"
    if found.predicted is not None:
        predicted, replayed = significant(found.predicted), found.model == REPLAY_MODEL
        text += f" against a predicted {predicted}"
        if found.low is not None and found.high is not None:
            text += f" ({significant(found.low)} to {significant(found.high)})"
        text += ", by a replay of its faults" if replayed else ""
    if best is not None:
        interval_s = significant(best.optimal_interval_s)
        now, then = significant(best.expected), significant(best.optimal_expected)
        text += (
            f". At this fault rate, eq. 10 expects {now} at this interval, and {then} at the best one, {interval_s} s"
        )
    searched = sustainable(run)
    return f"{text}." if searched is None else f"{searched.sentence} {text}."
