"""What a check looks at: the tables of a run, and the small frames derived from them.

A derived frame that cannot be made raises `NotEnough`, so that the verdict is unknown and never pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest

import pandas as pd
import pyarrow as pa

from experiments.errors import EnvironmentFailure
from experiments.fault_kinds import FaultKind
from experiments.spec import Experiment
from models.sustainable.lag import grows, growth
from models.sustainable.search import End
from models.uncertainty import FEWEST_SAMPLES
from results.checks.rules import NotEnough
from results.runs.store import Run
from results.summary.findings import FAILURE_CLASSES, LONG_RUN, REPLAY_MODEL, judged_utilization, took_effect
from results.tables.schema import TABLES, FaultOutcome

MANY_FAULTS, FEW_FAULTS_FACTOR = 20, 2.0  # with fewer faults single recoveries scatter more: twice the tolerance
HOST_START_S = 30.0  # a healed host counts as back when its worker runs again, which takes it some seconds
OPEN_ENDS = {
    End.PROBES: "load.probes were used up",
    End.GENERATOR: "the generator did not deliver the next rate",
    End.COMMITS: "at the next rate the query commits too seldom to be judged",
}
PYTHON_TYPES = {pa.string(): "str", pa.int64(): "int", pa.float64(): "float", pa.bool_(): "bool"}


@dataclass(frozen=True)
class Evidence:
    """A run together with the experiment that it is judged against."""

    run: Run
    experiment: Experiment

    @property
    def name(self) -> str:
        return self.run.run_id

    def raw_table(self, name: str) -> pd.DataFrame:
        """Read a table as it is; raises `NotEnough` when it is missing or cannot be read."""
        try:
            return self.run.table_as_it_is(name)
        except FileNotFoundError:
            raise NotEnough(f"table {name} is missing") from None
        except EnvironmentFailure as error:
            raise NotEnough(f"table {name} cannot be read: {error}") from None

    def table(self, name: str) -> pd.DataFrame:
        """Read a table whose columns have the names and types of its schema; else raises `NotEnough`."""
        frame = self.raw_table(name)
        for field in TABLES[name]:
            if field.name not in frame:
                raise NotEnough(f"table {name} has no column {field.name}")
            if frame[field.name].dtype.type.__name__ != PYTHON_TYPES[field.type]:
                raise NotEnough(f"{name}.{field.name} is {frame[field.name].dtype}, not {field.type}")
        return frame

    def rows(self, name: str, lack: str) -> pd.DataFrame:
        """Read a table that must have rows; `lack` says what it means when there are none."""
        frame = self.table(name)
        if frame.empty:
            raise NotEnough(lack)
        return frame

    def the_run(self) -> pd.Series:
        return self.rows("runs", "table runs has no row").iloc[0]


def columns(evidence: Evidence, table: str) -> pd.DataFrame:
    """Return one row per column of a table as stored, with the name and the type that its schema wants there."""
    frame = evidence.raw_table(table)
    stored = [(name, kind.type.__name__) for name, kind in frame.dtypes.items()]
    wanted = [(field.name, PYTHON_TYPES[field.type]) for field in TABLES[table]]
    rows = [have + want for have, want in zip_longest(stored, wanted, fillvalue=(None, None))]
    return pd.DataFrame(rows, columns=["column", "type", "expected_column", "expected_type"])


def ledger_sum(evidence: Evidence) -> pd.DataFrame:
    """Return one row: seconds in the ledger, seconds in the window, and their relative difference."""
    summed = float(evidence.rows("ledger", "the ledger has no segments")["seconds"].sum())
    run = evidence.the_run()
    window = (run["window_end_ns"] - run["window_start_ns"]) / 1e9
    if window <= 0:
        raise NotEnough("the measurement window is empty")
    return pd.DataFrame({"sum_s": [summed], "window_s": [window], "relative_gap": [abs(summed - window) / window]})


def ledger_joints(evidence: Evidence) -> pd.DataFrame:
    """Return one row per boundary of ledger segments, window edges included: `gap_ns`, negative where they overlap."""
    segments = evidence.rows("ledger", "the ledger has no segments").sort_values(["start_ns", "end_ns"])
    run = evidence.the_run()
    ends = [run["window_start_ns"], *segments["end_ns"]]
    starts = [*segments["start_ns"], run["window_end_ns"]]
    return pd.DataFrame({"gap_ns": [start - end for end, start in zip(ends, starts, strict=True)]})


def effective_faults(evidence: Evidence) -> pd.DataFrame:
    """Return the planned faults that could strike, with `late_s`: how far the worst host was off.

    Those that were absorbed or withheld could not; one that is missing should have, and has no `late_s`.
    """
    faults = evidence.rows("faults", "the run had no planned fault")
    faults = faults[~faults["outcome"].isin([FaultOutcome.ABSORBED, FaultOutcome.WITHHELD])].copy()
    if faults.empty:
        raise NotEnough("every planned fault was absorbed or withheld")
    faults["late_s"] = faults["lateness_s"].abs()
    return faults


def heals(evidence: Evidence) -> pd.DataFrame:
    """Return the faults that could strike, with `healed`: undone, or not due before the run ended, or struck again.

    What dies must also have its place again by itself: a host once the Spark master has registered it, broker and
    master once they answer. `joined` counts as `healed` does; a host that is struck again soon may not get so far.
    """
    faults, end_ns = effective_faults(evidence), evidence.the_run()["window_end_ns"]
    due_s = evidence.experiment.faults.longest_heal_s + HOST_START_S
    due_ns = faults["actual_ns"] + int(due_s * 1e9)
    too_late = (due_ns > end_ns).fillna(False)
    faults["healed"] = faults["healed_ns"].notna() | too_late
    joins = faults["kind"].map(lambda kind: FaultKind(kind).must_come_back)
    again = faults.apply(_struck_again, axis=1, among=faults)
    faults["joined"] = faults["joined_ns"].notna() | too_late | ~joins | again
    return faults


def _struck_again(fault: pd.Series, among: pd.DataFrame) -> bool:
    """Whether one of a fault's hosts was struck again before it had the time to join."""
    if pd.isna(fault["healed_ns"]):
        return False
    later = among[(among["actual_ns"] > fault["actual_ns"]).fillna(False)]
    soon = later[later["actual_ns"] < fault["healed_ns"] + int(HOST_START_S * 1e9)]
    hosts = set(fault["targets"].split(","))
    return any(hosts & set(targets.split(",")) for targets in soon["targets"])


def recoveries(evidence: Evidence) -> pd.DataFrame:
    """Return the recoveries, or of a run that needed none one row: `outage_s`, the ledger's seconds of outages.

    A run needs none where no fault that took effect loses work by itself, and the query went on through those that did.
    """
    found = evidence.table("recoveries")
    if not found.empty:
        return found
    struck = took_effect(evidence.table("faults"))
    if struck.empty:
        raise NotEnough("no fault took effect: there was nothing to recover from")
    if any(FaultKind(kind).loses_work for kind in struck["kind"]):
        raise NotEnough("table recoveries has no rows, but a fault that loses work took effect")
    ledger = evidence.rows("ledger", "the ledger has no segments")
    return pd.DataFrame({"outage_s": [float(ledger.loc[ledger["class"].isin(FAILURE_CLASSES), "seconds"].sum())]})


def fit_to_law(evidence: Evidence) -> pd.DataFrame:
    """Return the comparisons of the plan with its laws, each with the probability that chance does as badly."""
    fits = evidence.table("fault_fit")
    fits = fits[fits["p_value"].notna()]
    if fits.empty:
        raise NotEnough("table fault_fit holds the plan against no law")
    return fits


def missing_faults(evidence: Evidence) -> pd.DataFrame:
    """Return one row: of how many planned strikes (`samples`) there is no trace in the injector's journal."""
    fits = evidence.table("fault_fit")
    fits = fits[fits["test"] == "missing"]
    if not fits["samples"].sum():
        raise NotEnough("the run had no planned fault")
    return fits


def closed_windows(evidence: Evidence) -> pd.DataFrame:
    return evidence.rows("quality", "no event-time window closed during the run")


def predicted_utilization(evidence: Evidence) -> pd.DataFrame:
    """Return the prediction that the run is judged by, as one row with `measured`, `predicted`, `low` and `high`."""
    faults = evidence.table("faults")
    row = judged_utilization(evidence.rows("predictions", "table predictions has no row"), faults)
    if row is None:
        raise NotEnough("no utilization was predicted for this run")
    if pd.isna(row["measured"]):
        raise NotEnough("nothing was measured to hold the prediction against")
    if not pd.isna(row["why"]):
        raise NotEnough(row["why"])
    if row[["predicted", "low", "high"]].isna().any():
        what = "checkpoints, and of recoveries that no second fault disturbed if there are faults"
        raise NotEnough(f"the prediction has no interval: that takes {FEWEST_SAMPLES} of the {what}")
    return row.to_frame().T.astype(dict.fromkeys(("measured", "predicted", "low", "high"), "float64"))


def long_run(evidence: Evidence) -> pd.DataFrame:
    """Return one row: eq. 10 with the inputs of this run, and its distances from the bounds of its simulated mean."""
    rows = evidence.rows("predictions", "table predictions has no row")
    found = rows[rows["quantity"] == LONG_RUN]
    if found.empty or found[["predicted", "low", "high"]].isna().any(axis=None):
        raise NotEnough("eq. 10 was not simulated: there were too few faults, checkpoints or recoveries")
    row = found.iloc[[0]][["predicted", "low", "high"]].astype("float64")
    return row.assign(above_low=row["predicted"] - row["low"], below_high=row["high"] - row["predicted"])


def allowed_utilization(evidence: Evidence) -> tuple[float, float]:
    """Within which bounds the measured utilization must lie.

    A replay knows when the faults struck: what is left to chance shrinks with their number, so it is held to a
    tolerance. Without faults the bounds are those of the prediction, which are narrow.
    """
    row = predicted_utilization(evidence).iloc[0]
    if row["model"] != REPLAY_MODEL:
        return float(row["low"]), float(row["high"])
    tolerance = tolerated(len(took_effect(evidence.table("faults"))), evidence.experiment)
    return float(row["predicted"]) - tolerance, float(row["predicted"]) + tolerance


def tolerated(faults: int, experiment: Experiment) -> float:
    """How far measured and replayed utilization may lie apart."""
    return experiment.tolerances.utilization * (1.0 if faults >= MANY_FAULTS else FEW_FAULTS_FACTOR)


def both_estimates(evidence: Evidence) -> pd.DataFrame:
    """Return one row with the two estimates of utilization and their distance."""
    run = evidence.the_run()
    if pd.isna(run["utilization_by_records"]):
        raise NotEnough("there is no second estimate: no undisturbed batch in the window gave a service rate")
    if pd.isna(run["utilization"]):
        raise NotEnough("the ledger gave no utilization")
    by_time, by_records = float(run["utilization"]), float(run["utilization_by_records"])
    return pd.DataFrame({"by_time": [by_time], "by_records": [by_records], "distance": [abs(by_time - by_records)]})


def clock(evidence: Evidence) -> pd.DataFrame:
    """Return one row: by how much the wall clock was moved while the window was measured [s]."""
    moved_s = evidence.the_run()["clock_step_s"]
    if pd.isna(moved_s):
        raise NotEnough("nobody looked at the gateway's clock before, in and after the window")
    return pd.DataFrame({"clock_step_s": [float(moved_s)]})


def bracket(evidence: Evidence) -> pd.DataFrame:
    """Return one row: the highest rate that was sustained, the lowest that was not, and by how much they differ."""
    run = evidence.the_run()
    low, high, end = run["sustainable_rate"], run["unsustainable_rate"], run["search_end"]
    if pd.isna(low):
        raise NotEnough("no rate was sustained")
    if pd.isna(end) or end != End.CLOSED:
        ended = OPEN_ENDS.get(end, "nothing says why it ended")
        raise NotEnough(f"{'no rate failed' if pd.isna(high) else 'the bracket is not closed'}: {ended}")
    return pd.DataFrame({"low": [float(low)], "high": [float(high)], "gap": [float(high / low - 1)]})


def growth_of_lag(evidence: Evidence) -> pd.DataFrame:
    """Return one row: whether lag grows over the window, by how much as a share of the load, and its median [s]."""
    seconds, load_rate = evidence.rows("throughput", "the window has no whole second"), evidence.the_run()["load_rate"]
    samples = list(zip(seconds["second"].astype(float), seconds["lag_records"].astype(float), strict=True))
    slope = growth(samples)
    if slope is None or pd.isna(load_rate):
        raise NotEnough("the window is too short to tell whether lag grows")
    rate = float(load_rate)
    level_s = float(seconds["lag_records"].median()) / rate
    return pd.DataFrame({"grows": [grows(samples, rate)], "growth": [slope / rate], "level_s": [level_s]})
