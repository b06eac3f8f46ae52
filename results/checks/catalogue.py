"""Every check by name: what it looks at, which expectations decide it, and how it reads.

This is the only place that maps expectations of Great Expectations to the names of checks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial

import pandas as pd
import pyarrow as pa

from experiments.engines import EngineName
from experiments.spec import Experiment, LoadMode
from models.sustainable.lag import MOST_GROWTH, STUCK, ProbeOutcome, limit_s
from results.checks import evidence as derive
from results.checks import replay_tables
from results.checks.evidence import Evidence
from results.checks.rules import Rule, TableCheck, between, in_set, pairs_equal, present
from results.predictions.replays import FEWEST_FAULTS
from results.tables.schema import LEDGER_CLASSES, TABLES, FaultOutcome

JUDGED_TABLES = tuple(table for table in TABLES if table != "verdicts")
LAGS = ("lag_records", "lag_begin", "lag_end", "lag_median", "growth")
HELD_AGAINST_OTHERS = ("recoveries", "replayed_recoveries", "useful_time")  # tables with a check of values of their own
SIGNED = ("seed", "second", "batch", "fault", "lateness_s", "difference_s")
UNSIGNED_OR_NOT = frozenset({*SIGNED, *LAGS})  # no bound at zero
MOST_STEP_S = 0.005  # half of what a fault may be off; NTP's slewing is none, since it moves both clocks alike
LEAST_CHANCE = 1e-4  # a sound plan fails one such test in ten thousand
ON_ANY_SCALE = frozenset({"measured", "predicted", "low", "high"})  # their unit is that of the predicted quantity


@dataclass(frozen=True)
class Check(TableCheck[Evidence]):
    """One check of a run, and the experiments for which it has a meaning.

    asks, asked_of  what it decides, and of which experiments, in words: docs/reference/checks.md is made of them
    """

    _: KW_ONLY
    asks: str
    asked_of: str = "every experiment"
    applies: Callable[[Experiment], bool] = lambda experiment: True


def has_faults(experiment: Experiment) -> bool:
    return experiment.faults.can_fail


def saturates(experiment: Experiment) -> bool:
    """Only then is time without input no part of the run: the model assumes it, the second estimate needs it."""
    return experiment.load.mode is LoadMode.SATURATING


def searches(experiment: Experiment) -> bool:
    """Whether the run looked for the rate that it can sustain."""
    return experiment.load.mode is LoadMode.SUSTAINABLE


def model_describes(experiment: Experiment) -> bool:
    """The utilization model knows only faults that lose work: others (a pause, a slow host) cost time in other ways."""
    return all(kind.loses_work for kind in experiment.faults.kinds)


def is_replayed(experiment: Experiment) -> bool:
    """Whether so many faults are expected that a run can be judged by a replay of them."""
    faults = experiment.fault_spec
    enough = faults.failure_rate * faults.duration_s >= FEWEST_FAULTS
    return has_faults(experiment) and model_describes(experiment) and enough


def is_dataflow(experiment: Experiment) -> bool:
    return experiment.engine.name is EngineName.DATAFLOW


def takes_checkpoints(experiment: Experiment) -> bool:
    return is_dataflow(experiment) and experiment.engine.takes_checkpoints


def has_oracle(experiment: Experiment) -> bool:
    """Whether there is an exact output to hold the output against; of an own job there is none."""
    return experiment.workload.has_oracle


def checks_for(experiment: Experiment) -> list[Check]:
    """The checks that have a meaning for this experiment."""
    return [check for check in CHECKS if check.applies(experiment)]


def value_rules(table: str) -> list[Rule]:
    """The expectations on a table's values that follow from its schema: what must be there, and in what range."""
    rules = []
    for field in TABLES[table]:
        if not field.nullable:
            rules.append(present(field.name))
        if field.type in (pa.int64(), pa.float64()) and field.name not in UNSIGNED_OR_NOT | ON_ANY_SCALE:
            rules.append(between(field.name, 0, 1 if field.name == "utilization" else None))
    if table == "ledger":
        rules.append(in_set("class", *LEDGER_CLASSES))
    if table == "probes":
        rules.append(in_set("verdict", *(outcome.value for outcome in ProbeOutcome)))
    if table == "faults":
        rules.append(in_set("outcome", *(outcome.value for outcome in FaultOutcome)))
    return rules


def _schema_check(table: str) -> Check:
    return Check(
        name=f"{table}.schema",
        table=table,
        subject=partial(derive.columns, table=table),
        rules=lambda evidence: [pairs_equal("column", "expected_column"), pairs_equal("type", "expected_type")],
        observed=lambda frame: f"{frame['column'].notna().sum()} columns",
        expected=lambda evidence: f"{len(TABLES[table])} columns by name, order and type",
        asks="the table has the columns of the schema, in name, order and type",
        asked_of=ASKED_OF[HAVE_THE_TABLE.get(table)],
        applies=HAVE_THE_TABLE.get(table, lambda experiment: True),
    )


def _values_check(table: str) -> Check:
    return Check(
        name=f"{table}.values",
        table=table,
        subject=lambda evidence: evidence.rows(table, f"table {table} has no rows"),
        rules=lambda evidence: value_rules(table),
        observed=_rows,
        expected=lambda evidence: "no value missing or out of range",
        asks="the table has rows, and no value is missing or out of range",
        asked_of=ASKED_OF[NEEDED_FOR.get(table)],
        applies=NEEDED_FOR.get(table, lambda experiment: True),
    )


def _rows(frame: pd.DataFrame) -> str:
    return f"{len(frame):,} row{'s' * (len(frame) != 1)}"


def _recoveries_seen(frame: pd.DataFrame) -> str:
    return f"no recovery, {frame['outage_s'].iat[0]:g} s of outages" if "outage_s" in frame else _rows(frame)


def _recovery_rules(evidence: Evidence) -> list[Rule]:
    """On the recoveries, or on what stands for their absence."""
    return [in_set("outage_s", 0.0)] if evidence.table("recoveries").empty else value_rules("recoveries")


HAVE_THE_TABLE = {"quality": has_oracle, "partition_checkpoints": is_dataflow, "probes": searches}
NEEDED_FOR = {
    **dict.fromkeys(("faults", "fault_fit"), has_faults),
    "partition_checkpoints": takes_checkpoints,
    "probes": searches,
    "quality": has_oracle,
}

ASKED_OF = {
    None: "every experiment",
    has_oracle: "an oracle",
    is_dataflow: "the testbed",
    takes_checkpoints: "the testbed with a protocol that takes checkpoints",
    searches: "`load.mode` `sustainable`",
    saturates: "`load.mode` `saturating`",
    has_faults: "faults",
    is_replayed: "at least 3 expected faults, all of kinds that lose work",
}


def _expected_utilization(evidence: Evidence) -> str:
    (low, high), row = derive.allowed_utilization(evidence), derive.predicted_utilization(evidence).iloc[0]
    return f"{low:.3f} to {high:.3f} ({row['model']}: {row['predicted']:.3f})"


def _level_limit_s(evidence: Evidence) -> float:
    """Of lag in a window, which is seen every second: not after batches only, as in a probe, but amid them, too."""
    return STUCK * limit_s(evidence.experiment.engine.checkpoint_interval_s)


CHECKS: tuple[Check, ...] = (
    *map(_schema_check, JUDGED_TABLES),
    *(_values_check(table) for table in JUDGED_TABLES if table not in HELD_AGAINST_OTHERS),
    Check(
        name="recoveries.values",
        table="recoveries",
        subject=derive.recoveries,
        rules=_recovery_rules,
        observed=_recoveries_seen,
        expected=lambda evidence: "no value missing or out of range; no outage without a recovery",
        asks="recoveries have no value missing or out of range; without a recovery there is no outage either",
        asked_of=ASKED_OF[has_faults],
        applies=has_faults,
    ),
    Check(
        name="replayed_recoveries.values",
        table="replayed_recoveries",
        subject=replay_tables.recoveries,
        rules=lambda evidence: value_rules("replayed_recoveries") + replay_tables.RECOVERY_RULES,
        observed=_rows,
        expected=lambda evidence: "a row for each outage, which says what the ledger says; R as in the prediction",
        asks="each outage has its row, which says what the ledger says; their mean R is that of the prediction",
        asked_of=ASKED_OF[is_replayed],
        applies=is_replayed,
    ),
    Check(
        name="useful_time.values",
        table="useful_time",
        subject=replay_tables.useful_time,
        rules=lambda evidence: value_rules("useful_time") + replay_tables.useful_time_rules(evidence),
        observed=lambda frame: (
            f"{frame['measured_s'].iat[-1]:.1f} s measured and {frame['replayed_s'].iat[-1]:.1f} s replayed, "
            f"{frame['second'].iat[-1]} s after the window opened"
        ),
        expected=lambda evidence: "curves that rise from 0 to what the utilizations say, and no faster than time",
        asks="both curves rise from 0 to what their utilizations say, never fall, and are never faster than time",
        asked_of=ASKED_OF[is_replayed],
        applies=is_replayed,
    ),
    Check(
        name="ledger.adds_up",
        table="ledger",
        subject=derive.ledger_sum,
        rules=lambda evidence: [between("relative_gap", 0, evidence.experiment.tolerances.ledger_share)],
        observed=lambda frame: f"{frame['sum_s'].iat[0]:.3f} s of {frame['window_s'].iat[0]:.3f} s",
        expected=lambda evidence: f"equal within {evidence.experiment.tolerances.ledger_share:.2%}",
        asks="the classes of the ledger add up to the window (`tolerances.ledger_share`)",
    ),
    Check(
        name="ledger.contiguous",
        table="ledger",
        subject=derive.ledger_joints,
        rules=lambda evidence: [in_set("gap_ns", 0)],
        observed=lambda frame: f"{(frame['gap_ns'] > 0).sum()} gaps, {(frame['gap_ns'] < 0).sum()} overlaps",
        expected=lambda evidence: "0 gaps, 0 overlaps",
        asks="the stretches of the ledger have no gaps and no overlaps",
    ),
    Check(
        name="clock.steady",
        table="runs",
        subject=derive.clock,
        rules=lambda evidence: [between("clock_step_s", 0, MOST_STEP_S)],
        observed=lambda frame: f"the wall clock was moved by {frame['clock_step_s'].iat[0] * 1e3:,.2f} ms",
        expected=lambda evidence: f"{MOST_STEP_S * 1e3:g} ms at most: all times in the tables are the wall clock's",
        asks="the wall clock moved by at most 5 ms against the monotonic clock",
    ),
    Check(
        name="faults.on_time",
        table="faults",
        subject=derive.effective_faults,
        rules=lambda evidence: [
            present("actual_ns"),
            between("late_s", 0, evidence.experiment.lateness_limit_s, share=0.99),
        ],
        observed=lambda frame: (
            f"{frame['late_s'].quantile(0.99) * 1e3:.2f} ms off at p99, {frame['late_s'].max() * 1e3:.2f} at most, "
            f"{len(frame)} faults"
        ),
        expected=lambda evidence: f"{evidence.experiment.lateness_limit_s * 1e3:g} ms at p99",
        asks="strikes came within the driver's limit of their planned time, at p99 (`tolerances.lateness_s`)",
        asked_of=ASKED_OF[has_faults],
        applies=has_faults,
    ),
    Check(
        name="faults.proved",
        table="faults",
        subject=derive.effective_faults,
        rules=lambda evidence: [
            present("proved_ns"),
            present("violations"),
            in_set("violations", 0),
        ],
        observed=lambda frame: (
            f"{frame['proved_ns'].notna().sum()} of {len(frame)} proved, {frame['violations'].sum()} contradictions"
        ),
        expected=lambda evidence: "all proved, nothing that contradicts (survivors, open ports, packets through, ...)",
        asks="every fault that took effect is proved, and nothing contradicts a proof",
        asked_of=ASKED_OF[has_faults],
        applies=has_faults,
    ),
    Check(
        name="faults.healed",
        table="faults",
        subject=derive.heals,
        rules=lambda evidence: [in_set("healed", True), in_set("joined", True), in_set("heal_violations", 0)],
        observed=lambda frame: (
            f"{frame['healed_ns'].notna().sum()} of {len(frame)} undone, "
            f"{frame['joined_ns'].notna().sum()} joined again by themselves, "
            f"{frame['heal_violations'].sum()} contradictions"
        ),
        expected=lambda evidence: "all that were due before the end undone; lost hosts, broker and master joined",
        asks="every fault that was to end was undone; lost hosts, broker and master joined again",
        asked_of=ASKED_OF[has_faults],
        applies=has_faults,
    ),
    Check(
        name="faults.follow_their_law",
        table="fault_fit",
        subject=derive.fit_to_law,
        rules=lambda evidence: [between("p_value", LEAST_CHANCE, None)],
        observed=lambda frame: f"p {frame['p_value'].min():.2g} in the worst of {len(frame)} tests",
        expected=lambda evidence: f"p {LEAST_CHANCE:g} or more: the plan could have come from its laws",
        asks="the plan could have come from its laws: p is at least .0001 in every test",
        asked_of="a fault process that can be held against its law",
        applies=lambda experiment: any(process.shows_its_law for process in experiment.faults.processes),
    ),
    Check(
        name="faults.as_planned",
        table="fault_fit",
        subject=derive.missing_faults,
        rules=lambda evidence: [present("statistic"), in_set("statistic", 0.0)],
        observed=lambda frame: f"{frame['statistic'].sum():.0f} of {frame['samples'].sum()} planned strikes missing",
        expected=lambda evidence: "every planned strike injected, absorbed or withheld",
        asks="every planned strike was injected, absorbed or withheld",
        asked_of=ASKED_OF[has_faults],
        applies=has_faults,
    ),
    Check(
        name="quality.nothing_lost",
        table="quality",
        subject=derive.closed_windows,
        rules=lambda evidence: [in_set("lost", 0)],
        observed=lambda frame: (
            f"{frame['lost'].sum():,} of {frame['exact'].sum():,} results lost, "
            f"{frame['duplicated'].sum():,} duplicated, {len(frame)} windows"
        ),
        expected=lambda evidence: "0 lost",
        asks="no result of the oracle is missing",
        asked_of=ASKED_OF[has_oracle],
        applies=has_oracle,
    ),
    Check(
        name="quality.nothing_wrong",
        table="quality",
        subject=derive.closed_windows,
        rules=lambda evidence: [in_set("wrong", 0)],
        observed=lambda frame: f"{frame['wrong'].sum():,} of {frame['exact'].sum():,} results wrong",
        expected=lambda evidence: "0 wrong",
        asks="no result differs from the oracle's",
        asked_of=ASKED_OF[has_oracle],
        applies=has_oracle,
    ),
    Check(
        name="utilization.predicted",
        table="predictions",
        subject=derive.predicted_utilization,
        rules=lambda evidence: [between("measured", *derive.allowed_utilization(evidence))],
        observed=lambda frame: f"{frame['measured'].iat[0]:.3f}",
        expected=_expected_utilization,
        asks="measured and replayed utilization agree (`tolerances.utilization`); without faults, with the model",
        asked_of="no faults, or at least 3 expected ones, all of kinds that lose work",
        applies=lambda experiment: not has_faults(experiment) or is_replayed(experiment),
    ),
    Check(
        name="utilization.long_run",
        table="predictions",
        subject=derive.long_run,
        rules=lambda evidence: [between("above_low", 0, None), between("below_high", 0, None)],
        observed=lambda frame: f"eq. 10 gives {frame['predicted'].iat[0]:.4f}",
        expected=lambda evidence: "{low:.4f} to {high:.4f} by simulating its process".format(
            **derive.long_run(evidence).iloc[0]
        ),
        asks="eq. 10 is within 5 standard errors of the simulated mean of its own process",
        asked_of=ASKED_OF[is_replayed],
        applies=is_replayed,
    ),
    Check(
        name="utilization.estimates_agree",
        table="runs",
        subject=derive.both_estimates,
        rules=lambda evidence: [between("distance", 0, evidence.experiment.tolerances.estimates)],
        observed=lambda frame: f"{frame['by_time'].iat[0]:.3f} by time, {frame['by_records'].iat[0]:.3f} by records",
        expected=lambda evidence: f"equal within {evidence.experiment.tolerances.estimates:g}",
        asks="utilization by time and by records agree (`tolerances.estimates`)",
        asked_of=ASKED_OF[saturates],
        applies=saturates,
    ),
    Check(
        name="sustainable.bracketed",
        table="runs",
        subject=derive.bracket,
        rules=lambda evidence: [between("gap", 0, evidence.experiment.load.precision)],
        observed=lambda frame: (
            f"{frame['low'].iat[0]:,.0f} records/s sustained, {frame['high'].iat[0]:,.0f} not, "
            f"{frame['gap'].iat[0]:.1%} apart"
        ),
        expected=lambda evidence: f"at most {evidence.experiment.load.precision:.1%} apart",
        asks="the search closed its bracket within `load.precision`",
        asked_of=ASKED_OF[searches],
        applies=searches,
    ),
    Check(
        name="sustainable.sustained",
        table="throughput",
        subject=derive.growth_of_lag,
        rules=lambda evidence: [in_set("grows", False), between("level_s", None, _level_limit_s(evidence))],
        observed=lambda frame: (
            f"lag grows by {frame['growth'].iat[0]:.1%} of the load in the window, "
            f"and is worth {frame['level_s'].iat[0]:.1f} s of it"
        ),
        expected=lambda evidence: (
            f"at most {MOST_GROWTH:.0%} and {_level_limit_s(evidence):g} s, "
            f"at {evidence.experiment.load.share:.0%} of the rate found"
        ),
        asks="lag in the window does not grow, and is worth at most twice a probe's limit",
        asked_of="`load.mode` `sustainable`, no faults",
        applies=lambda experiment: searches(experiment) and not has_faults(experiment),
    ),
)
