"""The costs of failures and of protection that one run has measured."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.loads import LoadMode
from results.damage import Damaged
from results.predictions.replays import MOST_IDLE
from results.protection.described import Described
from results.runs import store
from results.runs.store import ReadOnce
from results.summary.findings import FAILURE_CLASSES, ledger_seconds, table_or_empty, took_effect
from results.tables.schema import LedgerClass
from results.verdict import Verdict


@dataclass(frozen=True)
class MeasuredRun:
    """None where the run did not measure it, or where its load has no such figure.

    rate              records/s that it does, or sustains, while nothing fails; not under a set rate
    utilization       under a set rate: the part of the time not lost to faults that checkpoints leave
    checkpoint_share  of the time at work, that checkpoints take
    fault_costs_s     what each fault that took effect cost: work undone, detection, restart and warm-up
    shared_cost_s     what all of them cost besides, together: the ledger books it for none of them
    window_s          of the ledger
    p99_s, accuracy   latency, and the accuracy of tentative output
    compared          whether its output was held against an oracle
    failed_check      whether one of its checks failed
    starved           whether it waited for input under a load that is to saturate it
    """

    run_id: str
    rate: float | None
    utilization: float | None
    checkpoint_share: float | None
    fault_costs_s: tuple[float, ...]
    shared_cost_s: float
    window_s: float
    p99_s: float | None
    accuracy: float | None
    compared: bool
    failed_check: bool
    starved: bool

    @property
    def left_s(self) -> float:
        """The time of the window that was not lost to faults [s]."""
        return self.window_s - sum(self.fault_costs_s) - self.shared_cost_s


def measured(run: Described) -> MeasuredRun:
    """Read a run that is done.

    Raises `Damaged`, also where faults took effect and no ledger tells what they cost, which is not that they cost
    nothing. Raises `FileNotFoundError` for a run that is removed meanwhile.
    """
    tables = ReadOnce.of(store.stored(run.row.run_id))
    ledger, metrics = ledger_seconds(tables), run.row.metrics
    share = None if ledger is None else _checkpoint_share(ledger)
    costs_s, shared_s = _fault_costs_s(run, tables, ledger)
    return MeasuredRun(
        run.row.run_id,
        _rate(run, share),
        None if ledger is None else _utilization(run, ledger),
        share,
        costs_s,
        shared_s,
        0.0 if ledger is None else ledger["window"],
        metrics.get("p99_latency_s"),
        metrics.get("tentative_accuracy"),
        "lost" in metrics,
        bool(run.row.verdicts.get(Verdict.FAIL)),
        ledger is not None and _starved(run, bool(costs_s), ledger),
    )


def _checkpoint_share(ledger: dict[str, float]) -> float | None:
    at_work_s = ledger[LedgerClass.USEFUL] + ledger[LedgerClass.CHECKPOINT]
    return ledger[LedgerClass.CHECKPOINT] / at_work_s if at_work_s > 0 else None


def _rate(run: Described, checkpoint_share: float | None) -> float | None:
    """The service rate is of batches, and checkpoints come on top; a rate that was searched for has them in it."""
    metrics = run.row.metrics
    if run.load is LoadMode.SUSTAINABLE:
        return metrics.get("sustainable_rate")
    service_rate = metrics.get("service_rate")
    if run.load is LoadMode.RATE or service_rate is None or checkpoint_share is None:
        return None
    return service_rate * (1 - checkpoint_share)


def _utilization(run: Described, ledger: dict[str, float]) -> float | None:
    left_s = ledger["window"] - sum(ledger[name] for name in FAILURE_CLASSES)
    if run.load is not LoadMode.RATE or left_s <= 0:
        return None
    return 1 - ledger[LedgerClass.CHECKPOINT] / left_s


def _fault_costs_s(
    run: Described, tables: ReadOnce, ledger_s: dict[str, float] | None
) -> tuple[tuple[float, ...], float]:
    """By fault, and what the ledger books for no fault, or for one that took no effect.

    Faults of one outage share it in the ledger, so that only their mean has a meaning.
    """
    struck = [int(fault) for fault in took_effect(table_or_empty(tables, "faults"))["fault"]]
    if not struck:
        return (), 0.0
    if ledger_s is None:
        why = f"it does not tell what {len(struck)} faults cost: it has no rows, or the window of the run is not known"
        raise Damaged(run.row.run_id, "the ledger", why)
    ledger = table_or_empty(tables, "ledger")
    failed = ledger[ledger["class"].isin(_classes(run))]
    is_own = failed["fault"].isin(struck)
    by_fault = {int(fault): float(sum_s) for fault, sum_s in failed[is_own].groupby("fault")["seconds"].sum().items()}
    return tuple(by_fault.get(fault, 0.0) for fault in struck), float(failed["seconds"][~is_own].sum())


def _starved(run: Described, struck: bool, ledger: dict[str, float]) -> bool:
    """As check `load.saturated` has it, which does not ask this of any run that recovers in parts.

    A partition of such a run may wait for one that is lost, but only if something was struck.
    """
    if run.load is not LoadMode.SATURATING or (run.in_parts and struck):
        return False
    return ledger[LedgerClass.IDLE] > MOST_IDLE * ledger["window"]


def _classes(run: Described) -> tuple[LedgerClass, ...]:
    """Under a saturating load there is always input: a partition that idles waits for one that is lost."""
    waits = run.in_parts and run.load is LoadMode.SATURATING
    return (*FAILURE_CLASSES, LedgerClass.IDLE) if waits else FAILURE_CLASSES
