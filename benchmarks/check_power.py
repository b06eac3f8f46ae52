"""How often the check of utilization notices an error, and how often it raises a false alarm.

`.venv/bin/python -m benchmarks.check_power [--runs 200] [--faults 6 20 60]` simulates runs of a query in
micro-batches, one batch after another, with recoveries and checkpoints that scatter as measured ones do. Each run is
judged as a real one is. Then an error is planted in its tables or in a formula, and it is judged again. Prints the
share of the runs in which the verdict was fail, of those in which it was not unknown.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from unittest.mock import patch

import numpy as np
import pandas as pd

from experiments.spec import Experiment
from models.utilization import utilization
from results.checks.evidence import tolerated
from results.predictions import long_run, replays
from results.predictions.process import Process
from results.summary.findings import the_run
from results.tables.schema import TABLES

RECORDS, START_NS = 10_000, 1_795_000_000_000_000_000
SECONDS_PER_FAULT = 33.0
INTERVAL_S, WORK_S, COST_S, DETECT_S, RESTART_S, WARM_UP_S, AWAY_S = 10.0, 8.7, 0.55, 0.15, 9.8, 5.0, 2.1
SCATTER = {"work": 0.06, "cost": 0.3, "detect": 0.2, "restart": 0.06, "warm-up": 0.2}  # coefficients of variation


@dataclass(frozen=True)
class Simulated:
    """What `Process` reads of a run: its tables."""

    tables: dict[str, pd.DataFrame]

    def has(self, name: str) -> bool:
        return name in self.tables

    def table(self, name: str) -> pd.DataFrame:
        return self.tables[name]


class Machine:
    """One query, batch by batch; everything that happens is booked as the ledger would."""

    def __init__(self, rng: np.random.Generator, faults: int) -> None:
        self._rng, self.window_s = rng, faults * SECONDS_PER_FAULT
        self._struck_s = np.sort(rng.uniform(0.0, self.window_s, faults)).tolist()
        self._segments: list[tuple[float, float, str, float, float]] = []
        self._batches: list[tuple[float, float, float, bool]] = []
        self._committed = 0.0

    def run(self) -> Simulated:
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
                duration_s=batches["end"] - batches["start"], hop_delay_s=0.0,
                in_window=(batches["start"] >= 0) & (batches["end"] <= self.window_s),
            ),
            "faults": pd.DataFrame(
                {"fault": range(len(struck)), "kind": "kill", "targets": "worker-1", "outcome": "injected"}
            ).assign(actual_ns=_ns(struck), healed_ns=_ns(struck + AWAY_S)),
            "partition_checkpoints": TABLES["partition_checkpoints"].empty_table().to_pandas(),
        }  # fmt: skip


def _run_row(ledger: pd.DataFrame, window_s: float) -> dict[str, object]:
    good = ledger.loc[ledger["class"].isin(["useful", "idle"]), "seconds"].sum()
    times = {"window_start_ns": START_NS, "window_s": window_s, "utilization": good / window_s}
    return times | {"load_rate": None, "service_rate": None, "seed": 1}


def _ns(seconds: pd.Series) -> pd.Series:
    return START_NS + (seconds * 1e9).round().astype("int64")


def fails(run: Simulated, experiment: Experiment) -> bool | None:
    """Whether the run's utilization, or eq. 10, comes to the verdict fail; None if it is unknown."""
    process = Process(run, experiment)
    try:
        predicted = replays.replayed(process).predicted
    except replays.Unreplayable:
        return None
    apart = abs(float(the_run(run)["utilization"]) - predicted)
    low, high = long_run.bounds(process)
    return apart > tolerated(len(process.strikes), experiment) or not low <= long_run.eq_10(process) <= high


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
    with patch.object(long_run, "utilization", lambda *given: 1.05 * utilization(*given)):
        yield


FORMULAS = {
    "R + 10 %": longer_recoveries,
    "c doubled": lambda: batches_that(cost=2.0),
    "T doubled": lambda: batches_that(period=2.0),
    "eq. 10 + 5 %": wrong_eq_10,
}
TABLES_WITH = {"lost work halved": booked(_half_useful), "lost work counted as useful": booked(_all_useful)}


def main() -> None:
    given = _arguments()
    experiment = Experiment(engine={"checkpoint_interval_s": INTERVAL_S})
    print(f"{'planted error':30}" + "".join(f"{count:>10} faults" for count in given.faults), flush=True)
    shares: dict[str, list[float]] = {}
    for count in given.faults:
        for name, share in _noticed(count, given.runs, experiment).items():
            shares.setdefault(name, []).append(share)
    for name, found in shares.items():
        print(f"{name:30}" + "".join(f"{share:16.1%} " for share in found))


def _noticed(faults: int, runs: int, experiment: Experiment) -> dict[str, float]:
    rng = np.random.default_rng([7, faults])
    found: dict[str, list[bool]] = {"none (false alarms)": []}
    unknown = 0
    for _ in range(runs):
        run = Machine(rng, faults).run()
        if fails(run, experiment) is None:
            unknown += 1
            continue
        found["none (false alarms)"].append(fails(run, experiment))
        for name, plant in TABLES_WITH.items():
            found.setdefault(name, []).append(fails(plant(run), experiment))
        for name, planted in FORMULAS.items():
            with planted():
                found.setdefault(name, []).append(fails(run, experiment))
    return {"unknown": unknown / runs} | {name: float(np.mean(seen)) for name, seen in found.items()}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="simulated runs for each number of faults")
    parser.add_argument("--faults", type=int, nargs="+", default=[6, 20, 60])
    return parser.parse_args()


if __name__ == "__main__":
    main()
