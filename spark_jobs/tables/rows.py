"""The rows of the small tables, by column name (`results.tables.schema`)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from chaos.events import FaultEvent
from chaos.fault_plan import FaultPlan
from chaos.goodness import Strike, fit_to_laws, fit_to_plan
from experiments.spec import Experiment, LoadMode
from journal.event import Event
from journal.events.injector import Absorbed, Ended, Healed, Injected, Joined, OnHost, Withheld
from journal.events.search import Found, ProbeJudged
from journal.events.services import HostSample, LoadScheduled, MachineSample
from results.tables.columns import Row
from results.tables.schema import KEPT_CLASSES, FaultOutcome, LedgerClass
from spark_jobs.streaming.progress import MicroBatch
from spark_jobs.tables.ledger import NS, LedgerSegment
from spark_jobs.tables.streaming.batches import Batch, Commit
from spark_jobs.tables.streaming.executors import Registered, all_back_ns

PROBE_COLUMNS = ("probe", "rate", "started_ns", "watched_ns", "ended_ns", "lag_begin", "lag_end", "growth", "why")
PROBE_FIELDS = {  # columns by what the journal calls them
    "due": "due_records",
    "delivered": "delivered_records",
    "read": "read_records",
    "lag": "lag_median",
    "outcome": "verdict",
}


class Bracket(NamedTuple):
    """What a search found [records/s], and why it ended; None where unknown."""

    sustainable_rate: float | None
    unsustainable_rate: float | None
    search_end: str | None


UNSEARCHED = Bracket(None, None, None)


def faults(plan: FaultPlan, injector: Iterable[Event], executors: Registered | None = None) -> list[Row]:
    """One row per planned fault: when it came, the proof that it did, and when its hosts had `executors` again."""
    by_fault: dict[int, list[OnHost]] = defaultdict(list)
    for event in injector:
        if isinstance(event, OnHost):
            by_fault[event.fault].append(event)
    up = executors or {}
    return [_fault(number, event, plan.due_ns(event), by_fault[number], up) for number, event in enumerate(plan.events)]


def _fault(number: int, event: FaultEvent, planned_ns: int, told: list[OnHost], up: Registered) -> Row:
    struck = [each for each in told if isinstance(each, Injected)]
    healed = [each for each in told if isinstance(each, Healed)]
    ends = {each.host: each.at_ns for each in told if isinstance(each, Healed | Ended)}
    joined = {each.host: each.at_ns for each in told if isinstance(each, Joined)}
    actual_ns = min((each.fired_ns for each in struck), default=None)
    renewed = [each.host for each in struck] if event.kind.loses_the_host else []  # any other keeps its executor
    return {
        "fault": number,
        "kind": event.kind.value,
        "targets": ",".join(event.targets),
        "cause": event.cause,
        "planned_ns": planned_ns,
        "actual_ns": actual_ns,
        "proved_ns": max((each.proved_ns for each in struck), default=None),
        "healed_ns": max(ends.values()) if ends and len(ends) == len(struck) else None,
        "joined_ns": max(joined.values()) if joined and len(joined) == len(struck) else None,
        "executors_ns": all_back_ns(renewed, actual_ns, up),
        "lateness_s": max(((each.fired_ns - planned_ns) / NS for each in struck), key=abs, default=None),
        "outcome": _outcome(told).value,
        "proof": _proof(struck),
        "violations": _violations(struck),
        "heal_violations": _violations(healed),
    }


def _outcome(told: list[OnHost]) -> FaultOutcome:
    """The outcome of a fault on several hosts is that on the host where it did most."""
    happened = {event.name for event in told}
    return next((outcome for outcome in FaultOutcome if outcome in happened), FaultOutcome.MISSING)


def _proof(struck: list[Injected]) -> str | None:
    """What the strikes did and left, such as "7 processes killed; 0 survivors, 0 open ports"."""
    if not struck:
        return None
    return "; ".join(_sums(counts) for counts in ([each.done for each in struck], [each.left for each in struck]))


def _sums(counts: list[Mapping[str, int]]) -> str:
    names = dict.fromkeys(name for count in counts for name in count)
    return ", ".join(f"{sum(count.get(name, 0) for count in counts)} {name}" for name in names)


def _violations(proofs: Sequence[Injected | Healed]) -> int | None:
    """How much contradicts these proofs; None without any."""
    return sum(sum(proof.left.values()) for proof in proofs) if proofs else None


def fault_fit(experiment: Experiment, plan: FaultPlan, injector: Iterable[Event]) -> list[Row]:
    """How the plan fits the laws of the experiment, and how what was injected fits the plan; none without faults."""
    if not experiment.faults.can_fail:
        return []
    fits = [
        *fit_to_laws(experiment.fault_spec, plan.events),
        *fit_to_plan(plan.events, plan.window_start_ns, strikes_ns(injector), plan.max_down),
    ]
    return [fit._asdict() for fit in fits]


def strikes_ns(injector: Iterable[Event]) -> dict[Strike, int | None]:
    """When each strike was carried out [ns], by its fault and host; None for one that was absorbed or withheld."""
    found: dict[Strike, int | None] = {}
    for event in injector:
        match event:
            case Injected():
                found[event.fault, event.host] = event.fired_ns
            case Absorbed() | Withheld():
                found[event.fault, event.host] = None
    return found


def checkpoints(batches: list[Batch], window: tuple[int, int], undisturbed: list[Batch]) -> list[Row]:
    """One row per batch; `undisturbed` are those with input that no outage touched."""
    steady = {batch.batch for batch in undisturbed}
    return [_checkpoint(batch, window, batch.batch in steady) for batch in batches]


def _checkpoint(batch: Batch, window: tuple[int, int], undisturbed: bool) -> Row:
    return {
        "batch": batch.batch,
        "started_ns": batch.started_ns,
        "completed_ns": batch.ended_ns,
        "duration_s": (batch.ended_ns - batch.started_ns) / NS,
        "checkpoint_s": batch.checkpoint_ns / NS,
        "processing_s": batch.processing_ns / NS,
        "wal_s": batch.wal_s,
        "commit_log_s": batch.commit_log_s,
        "state_commit_s": batch.state_commit_s,
        "hop_delay_s": batch.hop_delay_s,
        "records": batch.records,
        "stages": batch.stages,
        "state_rows": batch.state_rows,
        "state_bytes": batch.state_bytes,
        "in_window": window[0] <= batch.started_ns and batch.ended_ns <= window[1],
        "undisturbed": undisturbed,
    }


def ledger(segments: list[LedgerSegment]) -> list[Row]:
    """One row per stretch of the window."""
    return [
        {"start_ns": s.start_ns, "end_ns": s.end_ns, "class": s.kind.value, "seconds": (s.end_ns - s.start_ns) / NS}
        | {"batch": s.batch, "fault": s.fault}
        for s in segments
    ]


def throughput(commits: Iterable[Commit], schedule: LoadScheduled | None, window: tuple[int, int]) -> list[Row]:
    """By second of the window: records that fell due, records committed, and the lag at the second's end."""
    committed: Counter[int] = Counter()
    for commit in commits:
        committed[(commit.at_ns - window[0]) // NS] += commit.records
    done = sum(records for second, records in committed.items() if second < 0)
    found: list[Row] = []
    for second in range((window[1] - window[0]) // NS):
        done += committed[second]
        due_before, due_now = (due(schedule, window[0] + (second + i) * NS) for i in (0, 1))
        counts = {"due": due_now - due_before, "committed": float(committed[second]), "lag": due_now - done}
        found.append({"second": second} | {f"{name}_records": count for name, count in counts.items()})
    return found


def due(schedule: LoadScheduled | None, at_ns: int) -> float:
    """How many records the generator's schedule has made due by then; none without a schedule."""
    return max(0.0, (at_ns - schedule.start_ns) / NS * schedule.rate) if schedule else 0.0


def hosts(samples: Iterable[HostSample], window: tuple[int, int]) -> list[Row]:
    """CPU seconds per second that each host used since its last sample, where that is known, and its memory."""
    found: list[Row] = []
    last: dict[str, HostSample] = {}
    for sample in samples:
        cores = sample.cores_since(last.get(sample.host))
        last[sample.host] = sample
        if window[0] <= sample.at_ns < window[1]:
            second = (sample.at_ns - window[0]) // NS
            found.append({"second": second, "host": sample.host, "cpu_s": cores, "rss_bytes": sample.rss_bytes})
    return found


def clock_step_s(machine: Iterable[MachineSample], window: tuple[int, int]) -> float | None:
    """By how much the gateway's wall clock moved in the window against its monotonic one [s], the farthest two apart.

    By the looks in the window and the two around it, in the order of the journal: after a step the moments say little.
    None without a look before the window and one after it.
    """
    looks = [(look.at_ns, look.monotonic_ns) for look in machine if look.monotonic_ns is not None]
    inside = [place for place, (at_ns, _) in enumerate(looks) if window[0] <= at_ns < window[1]]
    if not inside or inside[0] == 0 or inside[-1] + 1 == len(looks):
        return None
    ahead_ns = [at_ns - monotonic_ns for at_ns, monotonic_ns in looks[inside[0] - 1 : inside[-1] + 2]]
    return (max(ahead_ns) - min(ahead_ns)) / NS


def run(
    run_id: str,
    experiment: Experiment,
    plan: FaultPlan,
    segments: list[LedgerSegment],
    batches: list[Batch],
    service_rate: float | None,
    load_rate: float | None,
    message_overhead: float | None = None,
    bracket: Bracket = UNSEARCHED,
    moved_s: float | None = None,
    copies_cpu_share: float | None = None,
    checkpoint_cpu_share: float | None = None,
    tentative_accuracy: float | None = None,
    tentative_fidelity: float | None = None,
    fell_back: str | None = None,
) -> Row:
    """The run's one row. `service_rate` [1/s] is of its undisturbed batches, `bracket` around the sustainable one.

    `moved_s` is what `clock_step_s` found; the shares of CPU time are `copies.cpu_shares`, those of tentative output
    `tentative.totals`. `fell_back` tells what the run did instead of what was asked.
    """
    start_ns, end_ns = plan.window_start_ns, plan.window_end_ns
    window_s = (end_ns - start_ns) / NS
    kept_ns = sum(s.end_ns - s.start_ns for s in segments if s.kind in KEPT_CLASSES)
    idle_s = sum(s.end_ns - s.start_ns for s in segments if s.kind is LedgerClass.IDLE) / NS
    records = sum(batch.records * _share(batch, start_ns, end_ns) for batch in batches)
    by_records = None
    if service_rate and experiment.load.mode is LoadMode.SATURATING:
        by_records = (records / service_rate + idle_s) / window_s
    return _what_was_run(experiment) | {
        "run_id": run_id,
        "window_start_ns": start_ns,
        "window_end_ns": end_ns,
        "window_s": window_s,
        "service_rate": service_rate,
        "load_rate": load_rate,
        "utilization": kept_ns / (end_ns - start_ns),
        "utilization_by_records": by_records,
        "faults": len(plan.events),
        "records_committed": round(records),
        "message_overhead": message_overhead,
        "fell_back": fell_back,
        "copies_cpu_share": copies_cpu_share,
        "checkpoint_cpu_share": checkpoint_cpu_share,
        "tentative_accuracy": tentative_accuracy,
        "tentative_fidelity": tentative_fidelity,
        **bracket._asdict(),
        "clock_step_s": moved_s,
    }


def _what_was_run(experiment: Experiment) -> Row:
    """What the experiment says of its run."""
    engine = experiment.engine.filled_in
    return {
        "experiment": experiment.name,
        "workload": experiment.workload.title,
        "engine": engine.name.value,
        "recovery": engine.recovery_run.value,
        "trigger": engine.trigger.value,
        "protocol": engine.protocol.value if engine.protocol else None,
        "driver": experiment.cluster.driver.value,
        "seed": experiment.seed,
        "workers": experiment.cluster.workers,
        "depth": experiment.workload.depth,
        "checkpoint_interval_s": engine.checkpoint_interval_s,
        "failure_rate": experiment.fault_spec.failure_rate,
    }


def probes(search: Iterable[Event]) -> list[Row]:
    """Every rate that was tried, with what came of it."""
    return [_probe(event) for event in search if isinstance(event, ProbeJudged)]


def _probe(probe: ProbeJudged) -> Row:
    same = {name: getattr(probe, name) for name in PROBE_COLUMNS}
    return same | {column: getattr(probe, name) for name, column in PROBE_FIELDS.items()}


def bracket(search: Iterable[Event]) -> Bracket:
    """What the search found, by its journal."""
    ends = (Bracket(event.low, event.high, event.end) for event in search if isinstance(event, Found))
    return next(ends, UNSEARCHED)


def _share(batch: Batch, start_ns: int, end_ns: int) -> float:
    """The part of a batch that lies within the window."""
    inside_ns = min(batch.ended_ns, end_ns) - max(batch.started_ns, start_ns)
    return max(0, inside_ns) / (batch.ended_ns - batch.started_ns)


def closed_until_ms(batches: Iterable[MicroBatch]) -> int | None:
    """The watermark of the last committed batch [ms since the epoch]: windows that end by then were emitted.

    None for a query that has no watermark.
    """
    return max((mark for batch in batches if (mark := batch.watermark_ms) is not None), default=None)
