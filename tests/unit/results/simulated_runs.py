"""Runs of a query in micro-batches, simulated: recoveries and checkpoints scatter as measured ones do.

Errors can be planted in their tables and in the formulas that predict them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
import pyarrow as pa

from experiments.spec import Experiment
from models.utilization import utilization
from results.checks.catalogue import CHECKS
from results.checks.evidence import Evidence
from results.predictions import long_run, replays
from results.predictions.tables import write_predictions
from results.runs.store import RunStatus
from results.summary.findings import the_run
from results.tables.schema import TABLES
from results.verdict import Verdict

PREDICTED = "utilization.predicted"
JUDGES = [check for check in CHECKS if check.name in (PREDICTED, "utilization.long_run")]
RECORDS, START_NS = 10_000, 1_795_000_000_000_000_000
SECONDS_PER_FAULT = 33.0
INTERVAL_S, WORK_S, COST_S, DETECT_S, RESTART_S, WARM_UP_S, AWAY_S = 10.0, 8.7, 0.55, 0.15, 9.8, 5.0, 2.1
SCATTER = {"work": 0.06, "cost": 0.3, "detect": 0.2, "restart": 0.06, "warm-up": 0.2}  # coefficients of variation


@dataclass(frozen=True)
class Simulated:
    """What predictions and checks read of a run, and write to it: its tables, in memory."""

    tables: dict[str, pd.DataFrame]
    run_id: str = "simulated"

    def known_status(self) -> RunStatus:
        """As of a run that is done."""
        return RunStatus(state="done", started_ns=0)

    def has(self, name: str) -> bool:
        """Whether the table was simulated."""
        return name in self.tables

    def table(self, name: str) -> pd.DataFrame:
        """A table with the columns that were simulated."""
        return self.tables[name]

    def table_as_it_is(self, name: str) -> pd.DataFrame:
        """With all columns of the schema and their types; those that are not simulated are empty."""
        schema = pa.schema([pa.field(field.name, field.type) for field in TABLES[name]])
        whole = self.tables[name].reindex(columns=schema.names)
        return pa.Table.from_pandas(whole, schema, preserve_index=False).to_pandas(types_mapper=pd.ArrowDtype)

    def write_table(self, name: str, table: pa.Table) -> None:
        """Keep a table in memory."""
        self.tables[name] = table.to_pandas()


class Machine:
    """One query, batch by batch; everything that happens is booked as the ledger would."""

    def __init__(self, rng: np.random.Generator, faults: int) -> None:
        self._rng, self.window_s = rng, faults * SECONDS_PER_FAULT
        self._struck_s = np.sort(rng.uniform(0.0, self.window_s, faults)).tolist()
        self._segments: list[tuple[float, float, str, float, float]] = []
        self._batches: list[tuple[float, float, float, bool]] = []
        self._committed = 0.0

    def run(self) -> Simulated:
        """Simulate the whole window; returns its tables, as the results of a run."""
        now, fault, begun = -2.0 * INTERVAL_S, 0, None
        while now < self.window_s:
            work_s, cost_s = self._draw("work", WORK_S), self._draw("cost", COST_S)
            warm_up_s = self._draw("warm-up", WARM_UP_S) if begun is not None else 0.0
            end = now + warm_up_s + work_s + cost_s
            if fault < len(self._struck_s) and self._struck_s[fault] < end:
                death = max(now, self._struck_s[fault])
                self._book(now, death, "lost", fault)
                now, fault, begun = self._recover(death, fault)
                continue
            if begun is not None:
                self._book(now, now + warm_up_s, "warm-up", begun, len(self._batches))
            self._book(now + warm_up_s, end - cost_s, "useful", np.nan)
            self._book(end - cost_s, end, "checkpoint", np.nan)
            self._batches.append((now, end, cost_s, begun is None))
            due = max(end, (np.floor(now / INTERVAL_S) + 1) * INTERVAL_S)
            if fault < len(self._struck_s) and self._struck_s[fault] < due:
                self._book(end, self._struck_s[fault], "idle", np.nan)
                now, fault, begun = self._recover(self._struck_s[fault], fault)
                continue
            self._book(end, due, "idle", np.nan)
            now, begun = due, None
        return Simulated(self._tables())

    def _recover(self, death: float, fault: int) -> tuple[float, int, int]:
        """The end of a recovery, the next fault, and the one that began the outage. A fault meanwhile restarts it."""
        begun, since = fault, death
        while True:
            notice = since + self._draw("detect", DETECT_S)
            ready = notice + self._draw("restart", RESTART_S)
            fault += 1
            if fault == len(self._struck_s) or self._struck_s[fault] >= ready:
                self._book(death, notice if since == death else death, "detect", begun)
                self._book(notice if since == death else death, ready, "restart", begun)
                return ready, fault, begun
            since = self._struck_s[fault]

    def _draw(self, name: str, mean: float) -> float:
        shape = 1.0 / SCATTER[name] ** 2
        return float(self._rng.gamma(shape, mean / shape))

    def _book(self, start: float, end: float, kind: str, fault: float, batch: float = np.nan) -> None:
        start, end = np.clip([start, end], 0.0, self.window_s)
        if end > start:
            self._segments.append((start, end, kind, fault, batch))

    def _tables(self) -> dict[str, pd.DataFrame]:
        ledger = pd.DataFrame(self._segments, columns=["start", "end", "class", "fault", "batch"])
        ledger = ledger.assign(
            start_ns=_ns(ledger["start"]), end_ns=_ns(ledger["end"]), seconds=ledger["end"] - ledger["start"]
        )
        batches = pd.DataFrame(self._batches, columns=["start", "end", "checkpoint_s", "undisturbed"])
        struck = pd.Series(self._struck_s)
        return {
            "runs": pd.DataFrame([_run_row(ledger, self.window_s)]),
            "ledger": ledger,
            "checkpoints": batches.assign(
                batch=range(len(batches)), started_ns=_ns(batches["start"]), records=RECORDS, stages=1,
                duration_s=batches["end"] - batches["start"], hop_delay_s=0.0, commit_log_s=0.1,
                in_window=(batches["start"] >= 0) & (batches["end"] <= self.window_s),
            ),
            "faults": pd.DataFrame(
                {"fault": range(len(struck)), "kind": "kill", "targets": "worker-1", "outcome": "injected"}
            ).assign(cause="a clock", actual_ns=_ns(struck), healed_ns=_ns(struck + AWAY_S)),
            "partition_checkpoints": TABLES["partition_checkpoints"].empty_table().to_pandas(),
        }  # fmt: skip


def _run_row(ledger: pd.DataFrame, window_s: float) -> dict[str, object]:
    good = ledger.loc[ledger["class"].isin(["useful", "idle"]), "seconds"].sum()
    end_ns = START_NS + round(window_s * 1e9)
    times = {"window_start_ns": START_NS, "window_end_ns": end_ns, "window_s": window_s, "utilization": good / window_s}
    return times | {"load_rate": None, "service_rate": None, "seed": 1}


def _ns(seconds: pd.Series) -> pd.Series:
    return START_NS + (seconds * 1e9).round().astype("int64")


def fails(run: Simulated, experiment: Experiment) -> bool | None:
    """Whether one of the `JUDGES` says fail; None if it is not known what the run's utilization should be."""
    write_predictions(run, experiment)
    from results.checks.judge import judge, open_context  # seconds, which the tests of its runs need not wait for

    context = open_context(Path(tempfile.gettempdir()) / "data_docs")  # the Data Docs are never built
    found = {check.name: judge(context, check, Evidence(run, experiment))[0]["verdict"] for check in JUDGES}
    if found[PREDICTED] == Verdict.UNKNOWN:
        return None
    return Verdict.FAIL in found.values()


def booked(change: Callable[[pd.DataFrame], pd.DataFrame]) -> Callable[[Simulated], Simulated]:
    """An error in the measured ledger, and so in the utilization that is computed from it."""

    def planted(run: Simulated) -> Simulated:
        ledger = change(run.tables["ledger"].copy())
        row = _run_row(ledger, float(the_run(run)["window_s"]))
        return replace(run, tables=run.tables | {"ledger": ledger, "runs": pd.DataFrame([row])})

    return planted


def _all_useful(ledger: pd.DataFrame) -> pd.DataFrame:
    return ledger.assign(**{"class": ledger["class"].replace("lost", "useful")})


def _half_useful(ledger: pd.DataFrame) -> pd.DataFrame:
    half = ledger[ledger["class"] == "lost"].copy()
    rest = half.assign(**{"class": "useful", "fault": np.nan, "seconds": half["seconds"] / 2})
    ledger.loc[half.index, "seconds"] /= 2
    return pd.concat([ledger, rest], ignore_index=True)


def _longer(ledger: pd.DataFrame) -> pd.DataFrame:
    """Each recovery, its warm-up included, is booked 10 % too long, and what follows begins later."""
    ledger, end = ledger.sort_values("start", ignore_index=True), ledger["end"].max()
    recoveries = ledger[ledger["class"].isin(["detect", "restart", "warm-up"])].groupby("fault")
    for last, seconds in zip(recoveries.tail(1).index, recoveries["seconds"].sum(), strict=True):
        over = min(ledger.loc[last, "end"] + 0.1 * seconds, end)
        ledger.loc[last, "end"] = over
        ledger.loc[(ledger.index > last) & (ledger["start"] < over), "start"] = over
    ledger["seconds"] = ledger["end"] - ledger["start"]
    return ledger[ledger["seconds"] > 0].assign(start_ns=_ns(ledger["start"]), end_ns=_ns(ledger["end"]))


@contextmanager
def longer_recoveries() -> Iterator[None]:
    """R + 10 % where a replay predicts it."""
    right = replays._predicted

    def wrong(*given: object) -> object:
        return tuple(1.1 * each for each in right(*given))

    with patch.object(replays, "_predicted", wrong):
        yield


@contextmanager
def batches_that(cost: float = 1.0, period: float = 1.0) -> Iterator[None]:
    """Another c or T in the formula of the replay."""
    right = replays.MicroBatches

    def wrong(costs_s: np.ndarray, lengths_s: np.ndarray, *, interval_s: float, **given: float) -> object:
        return right(cost * costs_s, period * lengths_s, interval_s=period * interval_s, **given)

    with patch.object(replays, "MicroBatches", wrong):
        yield


@contextmanager
def wrong_eq_10() -> Iterator[None]:
    """A prediction of eq. 10 that is 5 % too high."""
    with patch.object(long_run, "utilization", lambda *given: 1.05 * utilization(*given)):
        yield


FORMULAS = {
    "R + 10 % in the formula": longer_recoveries,
    "c doubled": lambda: batches_that(cost=2.0),
    "T doubled": lambda: batches_that(period=2.0),
    "eq. 10 + 5 %": wrong_eq_10,
}
TABLES_WITH = {
    "lost work halved": booked(_half_useful),
    "lost work counted as useful": booked(_all_useful),
    "R + 10 % in the ledger": booked(_longer),
}
EXPERIMENT = Experiment(engine={"checkpoint_interval_s": INTERVAL_S})
