"""Finished runs of one workload side by side, by what protects them against failures.

A matrix holds runs that are alike in all but their engine, its protection, and how often they are struck. Runs without
faults stand in the matrix of every kind of failure of their setting.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

from experiments.loads import LoadMode
from results.damage import Damaged
from results.protection.contest import Contestant, Win, wins
from results.protection.described import Described, EngineFields, Setting, described
from results.protection.estimates import Estimate, mean, with_shared
from results.protection.measured import MeasuredRun, measured
from results.runs.state import RunState
from results.summary.index import IndexRow
from results.tables.schema import SCHEMA_VERSION

MOST_RUNS = 40  # of one protection: the newest, since the code under test changes
SHARES = {"utilization", "checkpoint_share", "accuracy"}  # columns of estimates that are 1 at the most
TOO_FEW = (
    "fewer than two protections have three runs that count and three faults each, in three runs if the faults of "
    "a run share costs"
)


class LeftOut(StrEnum):
    """Why a run is not in its matrix."""

    FAILED = "failed"
    INEXACT = "inexact"  # results lost or wrong: it is not known what the rest of it is worth
    UNREADABLE = "unreadable"
    OUTDATED = "outdated"  # its tables are of another version of the schema
    OLDER = "older"  # there are enough newer ones


@dataclass(frozen=True)
class Protection:
    """One row of a matrix: the runs of one engine and all that protects it, each figure a mean over them."""

    label: str
    runs: tuple[MeasuredRun, ...]

    @property
    def faults(self) -> int:
        """How many took effect."""
        return sum(len(run.fault_costs_s) for run in self.runs)

    @property
    def uncompared(self) -> int:
        """How many of the runs have an output that nothing was compared with."""
        return sum(not run.compared for run in self.runs)

    @property
    def failed_checks(self) -> int:
        """In how many of the runs a check failed."""
        return sum(run.failed_check for run in self.runs)

    @property
    def starved(self) -> int:
        """How many of the runs waited for input under a load that is to saturate them."""
        return sum(run.starved for run in self.runs)

    @property
    def failure_rate(self) -> float:
        """The faults of the runs that were struck, per second that was not lost to faults; 0 without faults."""
        struck = [run for run in self.runs if run.fault_costs_s]
        left_s = sum(run.left_s for run in struck)
        return self.faults / left_s if left_s > 0 else 0.0

    @property
    def highest_failure_rate(self) -> float:
        """That of the run in which failures came most often, per second that was not lost to faults."""
        left_s = [(len(run.fault_costs_s), run.left_s) for run in self.runs]
        return max((faults / seconds for faults, seconds in left_s if seconds > 0), default=0.0)

    @cached_property
    def estimates(self) -> dict[str, Estimate | None]:
        """By name of the column; None of what no run measured."""
        quiet = [run for run in self.runs if not run.fault_costs_s]
        struck = [run for run in self.runs if run.fault_costs_s]
        values: dict[str, list[float | None]] = {
            "rate": [run.rate for run in self.runs],
            "utilization": [run.utilization for run in self.runs],
            "checkpoint_share": [run.checkpoint_share for run in self.runs],
            "cost_s": [cost_s for run in struck for cost_s in run.fault_costs_s],
            "quiet_p99_s": [run.p99_s for run in quiet],
            "struck_p99_s": [run.p99_s for run in struck],
            "accuracy": [run.accuracy for run in struck],
        }
        found = {
            name: mean(
                [value for value in each if value is not None],
                f"{self.label} {name}",
                most=1.0 if name in SHARES else math.inf,
            )
            for name, each in values.items()
        }
        shared = [(run.shared_cost_s, len(run.fault_costs_s)) for run in struck]
        return found | {"cost_s": with_shared(found["cost_s"], shared, f"{self.label} shared cost")}

    @property
    def contestant(self) -> Contestant | None:
        """None of too few runs or faults. Under a set rate all do the same, and it is utilization that is compared."""
        quiet, cost_s = self.estimates["rate"] or self.estimates["utilization"], self.estimates["cost_s"]
        if quiet is None or cost_s is None or quiet.draws is None or cost_s.draws is None:
            return None
        return Contestant(self.label, quiet, cost_s, self.highest_failure_rate)

    def to_json(self) -> dict[str, Any]:
        """With seconds, shares and records/s; each estimate is `{value, low, high, count}` or null."""
        told = {name: None if each is None else each.to_json() for name, each in self.estimates.items()}
        counts = {"faults": self.faults, "failure_rate": self.failure_rate}
        doubts = {"uncompared": self.uncompared, "failed_checks": self.failed_checks, "starved": self.starved}
        return {"protection": self.label, "runs": [run.run_id for run in self.runs], **counts, **doubts, **told}


@dataclass(frozen=True)
class Matrix:
    """The protections of one setting, under failures of one kind; None without faults.

    absent  labels of protections of which runs failed, or measured nothing that counts, and no run is left
    """

    setting: Setting
    failures: str | None
    load: LoadMode
    protections: tuple[Protection, ...]
    left_out: dict[LeftOut, int]
    absent: tuple[str, ...] = ()

    @cached_property
    def contestants(self) -> list[Contestant]:
        """The protections of which enough is known to say how much they do at other failure rates."""
        return [found for each in self.protections if (found := each.contestant)]

    @property
    def outsiders(self) -> list[str]:
        """The labels of protections in the table that cannot win, since too little is known of them."""
        inside = {each.name for each in self.contestants}
        return [each.label for each in self.protections if each.label not in inside]

    @property
    def compared(self) -> str:
        """The name of the estimate by which protections are compared."""
        return "utilization" if self.load is LoadMode.RATE else "rate"

    @cached_property
    def wins(self) -> list[Win]:
        """Who is best at which failure rate; empty where `why_no_winner` says why."""
        return wins(self.contestants)

    @property
    def can_be_drawn(self) -> bool:
        """Whether a plot of it shows anything: who wins, or what a failure costs."""
        return bool(self.wins) or any(each.estimates["cost_s"] is not None for each in self.protections)

    @property
    def why_no_winner(self) -> str | None:
        """Why no protection wins; None if one does."""
        return TOO_FEW if len(self.contestants) < 2 else None

    def to_json(self) -> dict[str, Any]:
        """Failure rates are per second of the time that is not lost to failures."""
        return {
            **asdict(self.setting),
            "failures": self.failures,
            "left_out": {word.value: self.left_out.get(word, 0) for word in LeftOut},
            "absent": list(self.absent),
            "protections": [each.to_json() for each in self.protections],
            "outsiders": self.outsiders,
            "wins": [each.to_json() for each in self.wins],
            "why_no_winner": self.why_no_winner,
        }


@dataclass(frozen=True)
class Group:
    """The runs of one matrix, of which nothing but what was asked of them is read yet."""

    setting: Setting
    failures: str | None
    runs: tuple[Described, ...]

    @property
    def protections(self) -> int:
        """How many there are, if some run of each counts."""
        return len({run.engine for run in self.runs})

    def matrix(self) -> Matrix:
        """Read the runs, which takes some tens of milliseconds each."""
        left_out, kept = Counter[LeftOut](), defaultdict[EngineFields, list[MeasuredRun]](list)
        labels: dict[EngineFields, str] = {}
        for run in self.runs:
            found = _read(run, len(kept[run.engine]))
            if isinstance(found, LeftOut):
                left_out[found] += 1
            else:
                kept[run.engine].append(found)
            if found is not LeftOut.OUTDATED:
                labels[run.engine] = run.label
        named = _told_apart(labels)
        engines = sorted(named, key=named.__getitem__)
        protections = tuple(Protection(named[each], tuple(kept[each])) for each in engines if kept[each])
        absent = tuple(named[each] for each in engines if not kept[each])
        return Matrix(self.setting, self.failures, self.runs[0].load, protections, dict(left_out), absent)


def matrices(rows: Iterable[IndexRow], workload: str | None = None) -> list[Matrix]:
    """The matrices of finished runs, given newest first. The matrices with the most protections come first."""
    return [group.matrix() for group in groups(rows, workload)]


def workloads(rows: Iterable[IndexRow]) -> list[str]:
    """The workloads of the settings of finished runs, each once, by all of their words."""
    return sorted({group.setting.workload for group in groups(rows)})


def groups(rows: Iterable[IndexRow], workload: str | None = None) -> list[Group]:
    """The runs of each matrix; a workload is the first word of its setting's, such as `nexmark`, or all of them."""
    settings = defaultdict[Setting, list[Described]](list)
    for row in rows:
        run = described(row)
        if run and workload in (None, run.setting.workload, run.setting.workload.split()[0]):
            settings[run.setting].append(run)
    found = [group for setting, runs in settings.items() for group in _of_setting(setting, runs)]
    return sorted(found, key=lambda each: -each.protections)


def _of_setting(setting: Setting, runs: Sequence[Described]) -> list[Group]:
    kinds: list[str | None] = list(dict.fromkeys(run.failures for run in runs if run.failures is not None))
    kinds = kinds or [None]
    return [Group(setting, kind, tuple(run for run in runs if run.failures in (None, kind))) for kind in kinds]


def _read(run: Described, already: int) -> MeasuredRun | LeftOut:
    """What a run measured, or why it does not count."""
    row = run.row
    reasons = {
        LeftOut.FAILED: row.state == RunState.FAILED,
        LeftOut.UNREADABLE: row.state != RunState.DONE,
        LeftOut.OUTDATED: row.schema_version != SCHEMA_VERSION,
        LeftOut.INEXACT: bool(row.metrics.get("lost") or row.metrics.get("wrong")),
        LeftOut.OLDER: already >= MOST_RUNS,
    }
    for reason, holds in reasons.items():
        if holds:
            return reason
    try:
        return measured(run)
    except (Damaged, FileNotFoundError):
        return LeftOut.UNREADABLE


def _told_apart(labels: dict[EngineFields, str]) -> dict[EngineFields, str]:
    """Labels that engines share are followed by the fields in which these differ."""
    found = {}
    for engine, label in labels.items():
        alike = [dict(other) for other, text in labels.items() if text == label]
        differ = [(name, value) for name, value in engine if len({str(each.get(name)) for each in alike}) > 1]
        found[engine] = ", ".join([label, *(f"{name} {value}" for name, value in differ)])
    return found
