"""What a run's tables say of its checkpoint-and-restart process: its costs, its periods, and its recoveries."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pandas as pd

from experiments.fault_kinds import FaultKind
from experiments.recovery_modes import RecoveryMode
from experiments.spec import Experiment
from results.predictions.outages import MeasuredLedger, Recovery, StruckFault, struck_faults
from results.predictions.partition_checkpoints import PartitionCheckpoints
from results.runs.store import Run
from results.summary.findings import mean, measured_row, with_measured_cost

FEWEST_RECOVERIES = 2  # that were seen undisturbed, to say what one should take


class Unreplayable(Exception):
    """The tables lack an input of the replay; the message names it."""


class MeasuredProcess:
    """Measured costs and outages of one run."""

    def __init__(self, run: Run, experiment: Experiment) -> None:
        self._run, self.experiment = run, experiment
        row = measured_row(run)
        self.start_ns, self.window_s = int(row["window_start_ns"]), float(row["window_s"])
        self.load_rate, self.service_rate = row["load_rate"], row["service_rate"]

    @cached_property
    def _inside(self) -> pd.DataFrame:
        """The batches of the window that had input."""
        checkpoints = self._run.table("checkpoints")
        return checkpoints[checkpoints["in_window"] & (checkpoints["records"] > 0)].sort_values("batch")

    @property
    def costs_s(self) -> list[float]:
        """c of each batch of the window that had input, as far as it was measured [s]."""
        return with_measured_cost(self._inside)["checkpoint_s"].astype(float).tolist()

    @cached_property
    def batches(self) -> pd.DataFrame:
        """Every batch from the last one that began before the window: its start and commit, and how long it took [s].

        Without its warm-up, and without what it did again for a fault that it outlived.
        """
        found, extra_s = self._run.table("checkpoints").sort_values("batch"), self.ledger.extra_s
        starts_s = (found["started_ns"].astype("int64") - self.start_ns) / 1e9
        lengths_s = found["duration_s"].astype(float) - found["batch"].map(extra_s).astype(float).fillna(0.0)
        commits_s = starts_s + found["duration_s"].astype(float)
        batches = pd.DataFrame({"start_s": starts_s, "commit_s": commits_s, "length_s": lengths_s})
        before = int((starts_s <= 0.0).sum())
        return batches[max(0, before - 1) :].reset_index(drop=True)

    @property
    def undisturbed_s(self) -> pd.Series:
        """How long the batches of the window took that no outage touched, by their numbers [s]."""
        return self._inside[self._inside["undisturbed"]].set_index("batch")["duration_s"].astype(float)

    @property
    def records(self) -> pd.Series:
        """The records of each batch, by the number of the batch."""
        return self._run.table("checkpoints").set_index("batch")["records"].astype(float)

    @cached_property
    def tasks(self) -> pd.DataFrame:
        """The tasks of all batches, in mode task, with the times at which they began and ended [s].

        Each driver numbers its executors from 0, so that their names begin with how many drivers there were before.
        """
        if not self._run.has("spark_tasks"):
            raise Unreplayable("there is no table spark_tasks, which says what each host did")
        tasks = self._run.table("spark_tasks")
        times_s = {name: (tasks[f"{name}_ns"].astype("int64") - self.start_ns) / 1e9 for name in ("launched", "ended")}
        ends_s = [strike.struck_s for strike in self.strikes if self.stops_all(strike)]
        drivers = np.searchsorted(ends_s, times_s["launched"].to_numpy())
        executors = [f"{before}.{name}" for before, name in zip(drivers, tasks["executor"], strict=True)]
        return tasks.assign(executor=executors, launched_s=times_s["launched"], ended_s=times_s["ended"])

    @property
    def hop_delay_s(self) -> float:
        """δ: the mean delay from one stage of a batch to the next [s]; 0 where none was measured."""
        return mean(self._inside["hop_delay_s"]) or 0.0

    @property
    def depth(self) -> int:
        """n: the mean number of stages of a batch, rounded; 1 where none was measured."""
        return round(mean(self._inside["stages"]) or 1)

    @cached_property
    def interval_s(self) -> float:
        """The interval as it was run: the mean time from the start of one undisturbed batch to that of the next.

        Spark aligns its triggers to multiples of the set interval and starts at once after a batch that overran it.
        A long period is likelier to be struck, so where faults are dense too few long ones are left. Without any two
        undisturbed batches in a row it is the set interval.
        """
        batches = self._inside
        follows = batches["undisturbed"] & batches["undisturbed"].shift(-1, fill_value=False)
        follows &= batches["batch"].diff(-1) == -1
        periods_s = (batches["started_ns"].shift(-1) - batches["started_ns"])[follows].astype(float) / 1e9
        return mean(periods_s) or self.experiment.engine.checkpoint_interval_s

    @cached_property
    def partition_checkpoints(self) -> PartitionCheckpoints:
        """Those of the testbed."""
        return PartitionCheckpoints(self._run.table("partition_checkpoints"), self.start_ns)

    @cached_property
    def ledger(self) -> MeasuredLedger:
        """What became of the time of the window."""
        rows = self._run.table("ledger")
        return MeasuredLedger(rows, self.strikes, self.start_ns, self.window_s, in_batches=self.works_in_batches)

    @cached_property
    def strikes(self) -> list[StruckFault]:
        """The faults that struck a host that was up, in the order of time."""
        return struck_faults(self._run.table("faults"), self.start_ns)

    @cached_property
    def recoveries(self) -> list[Recovery]:
        """The outages by which it is known what a recovery takes: those of one fault that led to useful work.

        If faults come in bursts there may be too few. Then all that led to useful work, from their last fault on.
        """
        whole = [(tuple(self.ledger.strikes_in(outage)), outage) for outage in self.ledger.outages if outage.is_whole]
        found = [Recovery(strikes, outage) for strikes, outage in whole if strikes]
        single = [each for each in found if len(each.strikes) == 1]
        return single if len(single) >= FEWEST_RECOVERIES else found

    @property
    def recoveries_s(self) -> list[float]:
        """R as eq. 10 means it: from the fault until work goes on at its usual pace."""
        return [each.restart_s + each.outage.warm_up_s for each in self.recoveries]

    @property
    def struck_rate(self) -> float:
        """Faults that took effect per second of the window."""
        return len(self.strikes) / self.window_s

    @property
    def waits_for_hosts(self) -> bool:
        """Whether no recovery was over before the hosts were back that it had lost."""
        return all(each.strikes[0].struck_s + each.outage.down_s >= each.back_s for each in self.recoveries)

    @property
    def works_in_batches(self) -> bool:
        """Whether the engine reads its input batch by batch."""
        return self.experiment.engine.works_in_batches

    def stops_all(self, strike: StruckFault) -> bool:
        """Whether a fault stops the whole query; in mode task the hosts that are left go on."""
        return self.experiment.engine.recovery_run is not RecoveryMode.TASK or strike.kind == FaultKind.DRIVER_KILL

    def lost_share(self, strike: StruckFault) -> float:
        """How much a fault takes of the work since the last checkpoint: in mode task what its hosts held of it."""
        return 1.0 if self.stops_all(strike) else min(1.0, strike.hosts / self.experiment.cluster.workers)
