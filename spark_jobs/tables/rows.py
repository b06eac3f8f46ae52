"""The rows of the small tables, in the order of their schemas' columns (`results.tables.schema`)."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import datetime
from typing import Any

from chaos.events import FaultEvent
from chaos.goodness import fit_to_laws, fit_to_plan
from chaos.holds import StrikeOutcome
from experiments.spec import Experiment, LoadMode
from results.tables.schema import FaultOutcome
from spark_jobs.tables.batches import Batch
from spark_jobs.tables.ledger import NS, Segment

Row = tuple[object, ...]
Bracket = tuple[float | None, float | None, str | None]


def faults(plan: dict[str, Any], injector: list[dict[str, Any]]) -> list[Row]:
    """One row per planned fault: when it came, and the proof that it did."""
    by_fault: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for entry in injector:
        if "fault" in entry:
            by_fault[entry["fault"]].append(entry)
    return [
        _fault(number, event, plan["window_start_ns"], by_fault[number]) for number, event in enumerate(plan["events"])
    ]


def _fault(number: int, event: dict[str, Any], start_ns: int, entries: list[dict[str, Any]]) -> Row:
    planned_ns = start_ns + round(event["at"] * NS)
    struck = [entry for entry in entries if entry["event"] == StrikeOutcome.INJECTED]
    healed = [entry for entry in entries if entry["event"] == "healed"]
    ends = {entry["host"]: entry["at_ns"] for entry in entries if entry["event"] in ("healed", "ended")}
    joined = {entry["host"]: entry["at_ns"] for entry in entries if entry["event"] == "joined"}
    return (
        number,
        event["kind"],
        ",".join(event["targets"]),
        event["cause"],
        planned_ns,
        min((entry["fired_ns"] for entry in struck), default=None),
        max((entry["proved_ns"] for entry in struck), default=None),
        max(ends.values()) if ends and len(ends) == len(struck) else None,
        max(joined.values()) if joined and len(joined) == len(struck) else None,
        max(((entry["fired_ns"] - planned_ns) / NS for entry in struck), key=abs, default=None),
        _outcome(entries).value,
        _proof(struck),
        _violations(struck),
        _violations(healed),
    )


def _outcome(entries: list[dict[str, Any]]) -> FaultOutcome:
    """Of a fault on several hosts: that of the host that it did most to."""
    happened = {entry["event"] for entry in entries}
    return next((outcome for outcome in FaultOutcome if outcome in happened), FaultOutcome.MISSING)


def _proof(struck: list[dict[str, Any]]) -> str | None:
    """What the strikes did and left, such as "7 processes killed; 0 survivors, 0 open ports"."""
    if not struck:
        return None
    return "; ".join(_sums([entry[part] for entry in struck]) for part in ("done", "left"))


def _sums(counts: list[dict[str, int]]) -> str:
    names = dict.fromkeys(name for count in counts for name in count)
    return ", ".join(f"{sum(count.get(name, 0) for count in counts)} {name}" for name in names)


def _violations(proofs: list[dict[str, Any]]) -> int | None:
    """How much contradicts these proofs; None without any."""
    return sum(sum(entry["left"].values()) for entry in proofs) if proofs else None


def fault_fit(experiment: Experiment, plan: dict[str, Any], injector: list[dict[str, Any]]) -> list[Row]:
    """How the plan fits the laws of the experiment, and how what was injected fits the plan; none without faults."""
    if not experiment.faults.can_fail:
        return []
    events = [FaultEvent.from_json(event) for event in plan["events"]]
    return [
        *fit_to_laws(experiment.fault_spec, events),
        *fit_to_plan(events, plan["window_start_ns"], injector, plan.get("max_down")),
    ]


def checkpoints(batches: list[Batch], window: tuple[int, int], undisturbed: list[Batch]) -> list[Row]:
    steady = {batch.batch for batch in undisturbed}
    return [
        (
            batch.batch,
            batch.started_ns,
            batch.ended_ns,
            (batch.ended_ns - batch.started_ns) / NS,
            batch.checkpoint_ns / NS,
            batch.processing_ns / NS,
            batch.wal_s,
            batch.commit_log_s,
            batch.state_commit_s,
            batch.hop_delay_s,
            batch.records,
            batch.stages,
            batch.state_rows,
            batch.state_bytes,
            window[0] <= batch.started_ns and batch.ended_ns <= window[1],
            batch.batch in steady,
        )
        for batch in batches
    ]


def ledger(segments: list[Segment]) -> list[Row]:
    return [(s.start_ns, s.end_ns, s.kind, (s.end_ns - s.start_ns) / NS, s.batch, s.fault) for s in segments]


def throughput(batches: list[Batch], schedule: dict[str, Any] | None, window: tuple[int, int]) -> list[Row]:
    """By second of the window: records that fell due, records committed, and the lag at the second's end."""
    committed: Counter[int] = Counter()
    for batch in batches:
        committed[(batch.ended_ns - window[0]) // NS] += batch.records
    done = sum(records for second, records in committed.items() if second < 0)
    found = []
    for second in range((window[1] - window[0]) // NS):
        done += committed[second]
        due_before, due_now = (due(schedule, window[0] + (second + i) * NS) for i in (0, 1))
        found.append((second, due_now - due_before, float(committed[second]), due_now - done))
    return found


def due(schedule: dict[str, Any] | None, at_ns: int) -> float:
    """How many records the generator's schedule has made due by then; none without a schedule."""
    return max(0.0, (at_ns - schedule["start_ns"]) / NS * schedule["rate"]) if schedule else 0.0


def hosts(samples: list[dict[str, Any]], window: tuple[int, int]) -> list[Row]:
    """CPU seconds per second that each host used since its last sample, and its memory.

    A host that was reborn starts from zero, and so does one that has no sample before.
    """
    found: list[Row] = []
    last: dict[str, dict[str, Any]] = {}
    for sample in samples:
        if sample["event"] != "sample":
            continue
        host, at_ns = sample["host"], sample["at_ns"]
        before = last.get(host, sample)
        last[host] = sample
        if window[0] <= at_ns < window[1]:
            elapsed_ns = at_ns - before["at_ns"]
            gained_s = max(0.0, sample["cpu_s"] - before["cpu_s"])
            used = gained_s / (elapsed_ns / NS) if elapsed_ns > 0 else 0.0
            found.append(((at_ns - window[0]) // NS, host, used, sample["rss_bytes"]))
    return found


def clock_step_s(machine: list[dict[str, Any]], window: tuple[int, int]) -> float | None:
    """By how much the gateway's wall clock moved in the window against its monotonic one [s], the farthest two apart.

    By the looks in the window and the two around it, in the order of the journal: after a step the moments say little.
    None without a look before the window and one after it.
    """
    looks = [entry for entry in machine if "monotonic_ns" in entry]
    inside = [place for place, look in enumerate(looks) if window[0] <= look["at_ns"] < window[1]]
    if not inside or inside[0] == 0 or inside[-1] + 1 == len(looks):
        return None
    ahead_ns = [look["at_ns"] - look["monotonic_ns"] for look in looks[inside[0] - 1 : inside[-1] + 2]]
    return (max(ahead_ns) - min(ahead_ns)) / NS


def run(
    run_id: str,
    experiment: Experiment,
    plan: dict[str, Any],
    segments: list[Segment],
    batches: list[Batch],
    service_rate: float | None,
    load_rate: float | None,
    message_overhead: float | None = None,
    bracket: Bracket = (None, None, None),
    moved_s: float | None = None,
) -> Row:
    """The run's one row. `service_rate` [1/s] is of its undisturbed batches, `bracket` around the sustainable one.

    `moved_s` is what `clock_step_s` found.
    """
    start_ns, end_ns = plan["window_start_ns"], plan["window_end_ns"]
    window_s = (end_ns - start_ns) / NS
    kept_ns = sum(s.end_ns - s.start_ns for s in segments if s.kind in ("useful", "idle"))
    idle_s = sum(s.end_ns - s.start_ns for s in segments if s.kind == "idle") / NS
    records = sum(batch.records * _share(batch, start_ns, end_ns) for batch in batches)
    by_records = None
    if service_rate and experiment.load.mode is LoadMode.SATURATING:
        by_records = (records / service_rate + idle_s) / window_s
    return (
        run_id,
        experiment.name,
        experiment.workload.title,
        experiment.engine.name.value,
        experiment.engine.recovery.value,
        experiment.engine.trigger.value,
        experiment.cluster.driver.value,
        experiment.seed,
        experiment.cluster.workers,
        experiment.workload.depth,
        start_ns,
        end_ns,
        window_s,
        experiment.engine.checkpoint_interval_s,
        experiment.fault_spec.failure_rate,
        service_rate,
        load_rate,
        kept_ns / (end_ns - start_ns),
        by_records,
        len(plan["events"]),
        round(records),
        experiment.engine.filled_in.protocol,
        message_overhead,
        *bracket,
        moved_s,
    )


def probes(search: list[dict[str, Any]]) -> list[Row]:
    """Every rate that was tried, with what came of it."""
    moments = ("probe", "rate", "started_ns", "watched_ns", "ended_ns")
    counts = ("due", "delivered", "read", "lag_begin", "lag_end", "lag", "growth", "outcome", "why")
    return [tuple(entry[name] for name in (*moments, *counts)) for entry in search if entry["event"] == "probe"]


def bracket(search: list[dict[str, Any]]) -> Bracket:
    """The highest rate that was sustained, the lowest that was not [1/s], why there was no more; None where unknown."""
    ends = ((entry["low"], entry["high"], entry["end"]) for entry in search if entry["event"] == "found")
    return next(ends, (None, None, None))


def _share(batch: Batch, start_ns: int, end_ns: int) -> float:
    """The part of a batch that lies within the window."""
    inside_ns = min(batch.ended_ns, end_ns) - max(batch.started_ns, start_ns)
    return max(0, inside_ns) / (batch.ended_ns - batch.started_ns)


def closed_until_ms(query: list[dict[str, Any]]) -> int | None:
    """The watermark of the last committed batch [ms since the epoch]: windows that end by then were emitted.

    None for a query that has no watermark.
    """
    marks = [e["progress"].get("eventTime", {}).get("watermark") for e in query if e["event"] == "progress"]
    stamps = [round(datetime.fromisoformat(mark).timestamp() * 1000) for mark in marks if mark]
    return max(stamps, default=None)
