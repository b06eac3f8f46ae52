"""The faults that struck a run, and how long the outages after them took, by its tables `faults` and `ledger`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from experiments.fault_kinds import FaultKind
from results.summary.findings import took_effect
from results.tables.schema import KEPT_CLASSES, LedgerClass

DOWN = (LedgerClass.DETECT, LedgerClass.RESTART, LedgerClass.WARM_UP)
AT_WORK = (*KEPT_CLASSES, LedgerClass.CHECKPOINT)


@dataclass(frozen=True)
class StruckFault:
    """A fault that took effect; seconds from the start of the window."""

    fault: int
    kind: str
    targets: tuple[str, ...]
    struck_s: float
    back_s: float  # when its last host was healed; struck_s if none ever was
    executors_s: float | None = None  # when its last host had a Spark executor again
    cause: str = ""  # the clock or burst that it came from

    @property
    def hosts(self) -> int:
        """How many it struck."""
        return len(self.targets)


def struck_faults(faults: pd.DataFrame, start_ns: int) -> list[StruckFault]:
    """The faults of a table that took effect, in the order of time; `start_ns`: the start of the window."""
    found = took_effect(faults).sort_values("actual_ns")
    return [_struck_fault(row, start_ns) for _, row in found.iterrows()]


def _struck_fault(row: pd.Series, start_ns: int) -> StruckFault:
    struck_s = _seconds(row["actual_ns"], start_ns)
    back_s = struck_s if pd.isna(row["healed_ns"]) else max(struck_s, _seconds(row["healed_ns"], start_ns))
    up_ns = row.get("executors_ns")  # tables of an older version lack it
    executors_s = None if pd.isna(up_ns) else _seconds(up_ns, start_ns)
    hosts = tuple(row["targets"].split(","))
    return StruckFault(int(row["fault"]), row["kind"], hosts, struck_s, back_s, executors_s, str(row["cause"]))


def _seconds(at_ns: float, start_ns: int) -> float:
    return (int(at_ns) - start_ns) / 1e9


@dataclass(frozen=True)
class LedgerOutage:
    """What the ledger says of an outage, under the fault that began it; seconds."""

    fault: int
    start_s: float
    end_s: float
    down_s: float
    warm_up_s: float
    lost_s: float
    is_whole: bool  # it led to useful work within the window

    @property
    def ready_s(self) -> float:
        """When detection and restart were over."""
        return self.start_s + self.down_s


@dataclass(frozen=True)
class Recovery:
    """An outage after which useful work followed, and the faults that struck in it; each restarts the recovery."""

    strikes: tuple[StruckFault, ...]
    outage: LedgerOutage

    @property
    def kind(self) -> str:
        """The kind of the last fault."""
        return self.strikes[-1].kind

    @property
    def extended_s(self) -> float:
        """From the first fault to the last."""
        return max(0.0, self.strikes[-1].struck_s - self.outage.start_s) if len(self.strikes) > 1 else 0.0

    @property
    def restart_s(self) -> float:
        """Detection and restart, from the last fault on."""
        return self.outage.down_s - self.extended_s

    @property
    def back_s(self) -> float:
        """When the last of its hosts was healed."""
        return max(strike.back_s for strike in self.strikes)

    @property
    def away_s(self) -> float:
        """For how long hosts were away from the last fault on."""
        return self.back_s - self.strikes[-1].struck_s


class MeasuredLedger:
    """The ledger of a run: what became of the time of its window, and the outages among it."""

    def __init__(
        self, rows: pd.DataFrame, strikes: Sequence[StruckFault], start_ns: int, window_s: float, *, in_batches: bool
    ) -> None:
        """`rows`: the table; `start_ns`, `window_s`: the window; `in_batches`: whether the engine works in batches."""
        self._rows, self._strikes, self._in_batches = rows, strikes, in_batches
        self._start_ns, self._window_s = start_ns, window_s

    @property
    def extra_s(self) -> pd.Series:
        """Warm-up and work done again, by the number of the batch that took it [s]."""
        return (
            self._rows[self._rows["class"].isin([LedgerClass.WARM_UP, LedgerClass.LOST])]
            .groupby("batch")["seconds"]
            .sum()
        )

    @cached_property
    def outages(self) -> list[LedgerOutage]:
        """Every outage that the window saw, in the order of time."""
        caused = self._rows[self._rows["fault"].notna()]
        found = [self._outage(int(fault), rows) for fault, rows in caused.groupby("fault")]
        return sorted(found, key=lambda outage: outage.start_s)

    def strikes_in(self, outage: LedgerOutage) -> list[StruckFault]:
        """The faults that struck during an outage, the one that began it included."""
        return [s for s in self._strikes if s.fault == outage.fault or outage.start_s <= s.struck_s < outage.end_s]

    @cached_property
    def outage_of(self) -> dict[int, LedgerOutage]:
        """By fault that struck, the outage that it began, or during which it struck."""
        return {strike.fault: outage for outage in self.outages for strike in self.strikes_in(outage)}

    def leaves_time_for_a_checkpoint(self, strike: StruckFault, interval_s: float, store_s: float) -> bool:
        """Whether the hosts that a fault leaves take a checkpoint before the recovery, if each has a clock of its own.

        They go on until the recovery begins. The line has a checkpoint that they store meanwhile, so that they keep
        their part of the work. The death of the driver leaves none of them.
        """
        outage = self.outage_of.get(strike.fault)
        left = strike.kind != FaultKind.DRIVER_KILL
        return left and outage is not None and outage.down_s >= interval_s + store_s

    @property
    def idle_share(self) -> float:
        """The idle share of the window."""
        idle_s = self._rows.loc[self._rows["class"] == LedgerClass.IDLE, "seconds"].sum()
        return float(idle_s) / self._window_s

    @property
    def failed_by_itself(self) -> bool:
        """Whether the query was down once without a fault."""
        return bool((self._rows["class"].isin(DOWN) & self._rows["fault"].isna()).any())

    def _outage(self, fault: int, rows: pd.DataFrame) -> LedgerOutage:
        """A fault that a batch outlived cost lost work only: it is an outage of no length."""
        seconds = rows.groupby("class")["seconds"].sum()
        down = rows[rows["class"] != LedgerClass.LOST]
        struck_s = next((strike.struck_s for strike in self._strikes if strike.fault == fault), 0.0)
        end_ns = None if down.empty else int(down["end_ns"].max())
        return LedgerOutage(
            fault,
            struck_s if down.empty else _seconds(down["start_ns"].min(), self._start_ns),
            struck_s if end_ns is None else _seconds(end_ns, self._start_ns),
            float(seconds.get(LedgerClass.DETECT, 0.0) + seconds.get(LedgerClass.RESTART, 0.0)),
            float(seconds.get(LedgerClass.WARM_UP, 0.0)),
            float(seconds.get(LedgerClass.LOST, 0.0)),
            end_ns is None or self._worked_from(end_ns),
        )

    def _worked_from(self, at_ns: int) -> bool:
        """Whether the system works, or waits for work, from then on; a first batch that a fault cuts off is neither."""
        after = self._rows[self._rows["start_ns"] == at_ns]["class"]
        return len(after) > 0 and (not self._in_batches or after.iloc[-1] in AT_WORK)
