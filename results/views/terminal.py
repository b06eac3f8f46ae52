"""The result of a run for a terminal: plain text of at most 92 columns that needs no manual."""

from __future__ import annotations

import textwrap
from operator import itemgetter

import pandas as pd

from experiments.wording import counted, on_one_line, percent, signed, significant
from results.predictions.described import why_not_predicted
from results.runs.store import Run
from results.summary.availability import availability
from results.summary.findings import (
    EXECUTOR,
    FAILURE_CLASSES,
    NO_KNOWN_FAULT,
    REPLAY_MODEL,
    about_the_machine,
    advice,
    engine_and_mode,
    failure_share,
    figure_or_dash,
    headline,
    ledger_seconds,
    number,
    quality_totals,
    table_or_empty,
    the_run,
    timed_faults,
    timed_recoveries,
    took_effect,
    utilizations,
)
from results.tables.columns import Column
from results.tables.schema import RUN_TABLES, FaultOutcome, LedgerClass
from results.verdict import Verdict
from results.views.causes import parts_from_prediction

GUIDE = "docs/guides/failed-checks.md"
NOT_COMPARED = "Output: not compared, since the experiment names nothing exact to compare it with"
WIDTH = 92
BAR = 25  # of the whole window
QUERY_MOMENTS = ("death", "planned", "predicted", "available", "normal")
MARKS = {Verdict.PASS: "✓", Verdict.FAIL: "✗", Verdict.UNKNOWN: "?"}
PROBES, FAULTS, RECOVERIES = (RUN_TABLES[name].by_name for name in ("probes", "faults", "recoveries"))
PHASE_COLUMNS = [RECOVERIES[f"{phase}_s"] for phase in ("detect", "restart", EXECUTOR, "restore", "catch_up")]
EXECUTOR_COLUMN = RECOVERIES[f"{EXECUTOR}_s"]
OUTCOMES = {
    FaultOutcome.ABSORBED: "the host was down already",
    FaultOutcome.WITHHELD: "withheld: too many hosts were down",
    FaultOutcome.MISSING: "never came",
}
MEANINGS = {
    LedgerClass.USEFUL: "work that was kept",
    LedgerClass.CHECKPOINT: "writing checkpoints",
    LedgerClass.LOST: "work that a fault undid",
    LedgerClass.DETECT: "from the fault until it was noticed",
    LedgerClass.RESTART: "from the notice until work went on",
    LedgerClass.WARM_UP: "extra time of the first batch",
    LedgerClass.IDLE: "waiting for input",
}


def summary(run: Run) -> str:
    """Return what was run, searched and lost, measured against predicted, advice, kills, quality and verdicts."""
    machine = textwrap.wrap(about_the_machine(run) or "", WIDTH)
    parts = [_title(run), textwrap.wrap(headline(run), WIDTH), _probes(run), _ledger(run), _utilization(run)]
    parts += [_advice(run), _faults(run), _queries(run), _quality(run), machine, _verdicts(run)]
    return "\n\n".join("\n".join(map(on_one_line, part)) for part in parts if part) + "\n"


def _title(run: Run) -> list[str]:
    facts = the_run(run)
    lines = [f"Run {run.run_id}"]
    if facts is None:
        return lines
    faults = table_or_empty(run, "faults")
    text = (
        f"{facts['workload']} on {engine_and_mode(facts)}, "
        f"{facts['workers']} workers, checkpoint every {significant(facts['checkpoint_interval_s'])} s, "
        f"measured for {significant(facts['window_s'])} s. {counted(len(faults), 'fault')} planned "
        f"({significant(facts['failure_rate'])} per second in the cluster), {len(took_effect(faults))} took effect, "
        f"seed {facts['seed']}."
    )
    return lines + textwrap.wrap(text, WIDTH)


def _probes(run: Run) -> list[str]:
    """What each rate that was tried came to; nothing of a run that did not search."""
    probes = table_or_empty(run, "probes")
    if probes.empty:
        return []
    rate, lag, growth = (PROBES[name] for name in ("rate", "lag_median", "growth"))
    units = f"{rate.label} and {growth.label} [{rate.unit}], {lag.label} [{lag.unit}], {PROBES['watched_ns'].label} [s]"
    head = f"{rate.label:>11}{PROBES['watched_ns'].label:>9}{lag.label:>12}{growth.label:>8}  {PROBES['verdict'].label}"
    return [f"Search: {units}", head, *(line for _, row in probes.iterrows() for line in _probe(row))]


def _probe(row: pd.Series) -> list[str]:
    watched_s = significant((row["ended_ns"] - row["watched_ns"]) / 1e9)
    told = f"{significant(row['rate']):>11}{watched_s:>9}{significant(row['lag_median']):>12}"
    told += f"{figure_or_dash(row['growth']):>8}  "
    return textwrap.wrap(
        f"{row['verdict']}: {row['why']}", WIDTH, initial_indent=told, subsequent_indent=" " * len(told)
    )


def _ledger(run: Run) -> list[str]:
    ledger = ledger_seconds(run)
    if ledger is None:
        return []
    window = ledger["window"]
    lines = [f"{'Where the time went':48}{'seconds':>9}{'share':>9}"]
    for name in LedgerClass:
        share = ledger[name] / window
        bar = "█" * round(share * BAR)
        lines.append(f"  {name:11}{MEANINGS[name]:35}{significant(ledger[name]):>9}{percent(share):>9} {bar}".rstrip())
    failures = f"  {'failures':11}{' + '.join(FAILURE_CLASSES):35}"
    share = failure_share(ledger)
    lines.append(f"{failures}{significant(share * window):>9}{percent(share):>9}")
    return [*lines, f"  {'window':46}{significant(window):>9}{percent(1):>9}"]


def _utilization(run: Run) -> list[str]:
    found, facts = utilizations(run), the_run(run)
    if found.measured is None or facts is None:
        return []
    lines = ["Utilization: the share of time that is useful or idle", f"  measured   {significant(found.measured)}"]
    by_records = number(facts["utilization_by_records"])
    if by_records is not None:
        lines[-1] += f"   from the ledger; from the records committed {significant(by_records)}"
    if found.predicted is not None:
        lines.append(f"  predicted  {significant(found.predicted)}")
        if found.low is not None and found.high is not None:
            lines[-1] += f"   likely {significant(found.low)} to {significant(found.high)},"
        by = "a replay of the faults that struck" if found.model == REPLAY_MODEL else "the model without faults"
        lines[-1] += f" by {by}"
    elif why := why_not_predicted(run):
        lines.append(f"  predicted  {why}")
    if found.model == REPLAY_MODEL and found.expected is not None:
        expected = significant(found.expected)
        lines.append(f"  expected   {expected}   by eq. 10 at the planned fault rate: the mean over other seeds")
    return [part for line in lines for part in textwrap.wrap(line, WIDTH, subsequent_indent=" " * 13)]


def _advice(run: Run) -> list[str]:
    best = advice(run)
    if best is None:
        return []
    now_s, best_s = significant(best.interval_s), significant(best.optimal_interval_s)
    now, then = significant(best.expected), significant(best.optimal_expected)
    return [
        f"{'Advice of eq. 10, at the fault rate of this run':48}{'now':>9}{'optimal':>9}",
        f"  {'checkpoint interval':46}{now_s:>7} s{best_s:>7} s",
        f"  {'expected utilization':46}{now:>9}{then:>9}   ({signed(best.gain)})",
    ]


def _faults(run: Run) -> list[str]:
    """Every fault with the first recovery that it began; every other recovery has a line of its own."""
    faults, recoveries = timed_faults(run), timed_recoveries(run)
    if faults.empty and recoveries.empty:
        return []
    is_first = recoveries["kind"].notna() & ~recoveries.duplicated("fault")
    first = {int(row["fault"]): row for _, row in recoveries[is_first].iterrows()}
    columns = _phase_columns(recoveries)
    lines = [(row["planned_at_s"], _fault(row, first.get(int(row["fault"])), columns)) for _, row in faults.iterrows()]
    lines += [(row["death_at_s"], _other_recovery(row, columns)) for _, row in recoveries[~is_first].iterrows()]
    phases = "".join(f"{column.label:>{_width(column)}}" for column in columns)
    head = f"{FAULTS['planned_ns'].label:>8}{FAULTS['lateness_s'].label:>10}  {FAULTS['fault'].label:29}{phases}"
    part = f"; {EXECUTOR_COLUMN.label}: Spark's part" if EXECUTOR_COLUMN in columns else ""
    note = f"{RECOVERIES['restart_s'].label}: with warm-up{part}; -: not measured"
    return [
        f"Faults and recoveries [{FAULTS['lateness_s'].unit}]; {note}",
        head,
        *(line for _, line in sorted(lines, key=itemgetter(0))),
    ]


def _phase_columns(recoveries: pd.DataFrame) -> list[Column]:
    """Spark's part of a restart is measured on the testbed only: elsewhere, its column would be empty."""
    has_part = recoveries[EXECUTOR_COLUMN.name].notna().any()
    return [column for column in PHASE_COLUMNS if has_part or column is not EXECUTOR_COLUMN]


def _width(column: Column) -> int:
    return max(7, len(column.label)) + 1


def _fault(row: pd.Series, recovery: pd.Series | None, columns: list[Column]) -> str:
    late_s = number(row["lateness_s"])
    late = "-" if late_s is None else f"{significant(1000 * late_s)} ms"
    line = f"{significant(row['planned_at_s']):>8}{late:>10}  {_struck(row):29}"
    if row["outcome"] != FaultOutcome.INJECTED:
        return f"{line}   ({OUTCOMES[FaultOutcome(row['outcome'])]})"
    return f"{line}   (no recovery of its own)" if recovery is None else line + _phases(recovery, columns)


def _other_recovery(row: pd.Series, columns: list[Column]) -> str:
    """A recovery from a further failure under a fault, or of no known fault, by its begin instead of a planned time."""
    struck = NO_KNOWN_FAULT if pd.isna(row["kind"]) else f"again {_struck(row)}"
    return f"{significant(row['death_at_s']):>8}{'-':>10}  {_shortened(struck):29}{_phases(row, columns)}"


def _struck(row: pd.Series) -> str:
    return _shortened(f"{row['kind']} {row['targets'].replace(',', ' ')}")


def _shortened(text: str) -> str:
    return textwrap.shorten(text, 28, placeholder="…")


def _phases(row: pd.Series, columns: list[Column]) -> str:
    return "".join(f"{figure_or_dash(row[column.name]):>{_width(column)}}" for column in columns)


def _queries(run: Run) -> list[str]:
    """When each lost query was back, those of the highest priority first; nothing if the run has no data on queries."""
    rows, found = table_or_empty(run, "query_recoveries"), availability(run)
    if found is None:
        return []
    head = f"{'priority':>8}{'lost':>8}{'planned':>9}{'by model':>10}{'available':>11}{'on time':>9}  query"
    lines = [f"Queries [s] since the first of {found.count} was lost; - is not known, or never", head]
    rows = rows.assign(**{f"{name}_s": (rows[f"{name}_ns"] - found.first_ns) / 1e9 for name in QUERY_MOMENTS})
    for _, row in rows.sort_values(["priority", "planned_s"], ascending=[False, True]).iterrows():
        priority = significant(row["priority"])
        lost, planned, model, back, normal = (figure_or_dash(row[f"{name}_s"]) for name in QUERY_MOMENTS)
        lines.append(f"{priority:>8}{lost:>8}{planned:>9}{model:>10}{back:>11}{normal:>9}  {row['query']}")
    if found.never_back:
        lines += textwrap.wrap(f"Not available by the end: {', '.join(found.never_back)}", WIDTH)
    return lines


def _quality(run: Run) -> list[str]:
    totals = quality_totals(run)
    if totals is None:
        return [] if run.has("quality") or the_run(run) is None else [NOT_COMPARED]
    return [
        f"Output against the exact result, {totals['windows']} windows, {totals['exact']:,} results",
        f"  {totals['lost']:,} lost, {totals['wrong']:,} wrong, {totals['duplicated']:,} emitted more than once",
    ]


def _verdicts(run: Run) -> list[str]:
    verdicts = table_or_empty(run, "verdicts")
    if verdicts.empty:
        return []
    counts = verdicts["verdict"].value_counts()
    told = ", ".join(f"{counts.get(verdict.value, 0)} {verdict.value}" for verdict in Verdict)
    of_tables = verdicts["check"].str.endswith((".schema", ".values"))
    routine = verdicts[of_tables & (verdicts["verdict"] == Verdict.PASS.value)]
    lines = [f"Checks: {told}"]
    if len(routine):
        lines.append(f"  {MARKS[Verdict.PASS]} {len(routine)} checks of the tables' schemas and values")
    lines += [line for _, row in verdicts.drop(routine.index).iterrows() for line in _verdict(run, row)]
    has_passed = (verdicts["verdict"] == Verdict.PASS.value).all()
    return lines if has_passed else [*lines, f"  What to do: {GUIDE}"]


def _verdict(run: Run, row: pd.Series) -> list[str]:
    """What a check found; below a failed comparison with the prediction, where the run parts from it."""
    verdict = Verdict(row["verdict"])
    observed, expected, detail = (
        "" if pd.isna(row[name]) else row[name] for name in ("observed", "expected", "detail")
    )
    told = observed
    if verdict is not Verdict.PASS:
        told = f"{observed} (expected {expected}): {detail}" if observed else detail
    first = f"  {MARKS[verdict]} {row['check']:30}"
    rest = " " * len(first)
    lines = textwrap.wrap(told, WIDTH, initial_indent=first, subsequent_indent=rest)
    cause = parts_from_prediction(run, row["check"]) if verdict is Verdict.FAIL else None
    where = "" if cause is None else cause.in_its_table
    return lines + textwrap.wrap(where, WIDTH, initial_indent=rest, subsequent_indent=rest)
