"""Lost partitions came back one step after the other, and in the time that passive replication should take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import pandas as pd

from experiments.errors import BadInput
from experiments.recovery_modes import RecoveryMode
from experiments.spec import Experiment
from experiments.wording import counted, percent, significant
from models.passive_restore import FEWEST, MeasuredRestore, predicted_s
from results.checks.check import Check, Parting, has_faults, is_dataflow, keeps_output_log
from results.checks.evidence import Evidence
from results.checks.rules import NotEnough, Rule, between, in_set
from results.checks.subjects.tables import row_count, value_rules
from results.tables.testbed import RecoveredHow

TOLERANCE = 0.2  # of the predicted time, on average over the restores
SHORTEST_S = 0.5  # below that, what the model leaves out prevails: the orders of the coordinator, a batch's length
LEAST_INTERVAL_S = 20.0  # between checkpoints; with fewer seconds hardly a restore takes so long


def restores(evidence: Evidence) -> pd.DataFrame:
    """Return one row per restore that the model describes: `death_ns`, `measured_s`, `predicted_s`, `apart`, by which
    share of the predicted time they differ, and `off`, the mean of that over all rows.

    It describes those that were seen to their end, that struck a dataflow that kept up with its load, and that should
    take long enough.
    """
    rows = evidence.rows("partition_recoveries", "no partition was lost")
    steady = list(_steady(rows[rows["how"] == RecoveredHow.RESTORED]))
    deaths_ns = [int(of_one["death_ns"].min()) for of_one in steady]
    found = zip(deaths_ns, map(_restore, steady), strict=True)
    seen = [(death_ns, each) for death_ns, each in found if each is not None]
    expected_s = _predicted([each for _, each in seen])
    long = [each for each, seconds in zip(seen, expected_s, strict=True) if seconds >= SHORTEST_S]
    table = pd.DataFrame([(death_ns, each.measured_s) for death_ns, each in long], columns=["death_ns", "measured_s"])
    table["predicted_s"] = _predicted([each for _, each in long])
    apart = (table["measured_s"] - table["predicted_s"]).abs() / table["predicted_s"]
    return table.assign(apart=apart, off=apart.mean())


def _predicted(described: Sequence[MeasuredRestore]) -> list[float]:
    try:
        return predicted_s(described)
    except BadInput:
        told = f"{counted(len(described), 'restore')} can be compared with the model, {FEWEST} are needed"
        needs = "the dataflow kept up with its load before the loss, the restore was observed to its end"
        raise NotEnough(f"{told}: {needs}, and it should take {SHORTEST_S:g} s or more") from None


def _steady(restored: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """The recoveries whose checkpoints were taken when what the one before had left undone was done.

    That is taken to last as long after its end as something was away. If partitions do not come back in a recovery,
    they are away until a later one brings them back, and no recovery counts before that.
    """
    caught_up_ns, away_since_ns, away = 0, None, set[str]()
    for _, rows in restored.groupby("epoch"):
        death_ns, ready_ns, reached_ns = (rows[f"{step}_ns"] for step in ("death", "ready", "reached"))
        taken_ns = death_ns - (rows["checkpoint_age_s"] * 1e9).fillna(0).astype("int64")
        if not away and taken_ns.min() >= caught_up_ns:
            yield rows
        away_since_ns = int(death_ns.min()) if away_since_ns is None else away_since_ns
        is_back = ready_ns.notna() & reached_ns.notna()
        away = (away | set(rows["partition"])) - set(rows.loc[is_back, "partition"])
        if away:
            continue
        caught_up_ns = int(reached_ns.max() + ready_ns.max() - away_since_ns)
        away_since_ns = None


def partition_recoveries(evidence: Evidence) -> pd.DataFrame:
    """Return the table with `ahead_s`: by how much a step of a recovery comes before the one that it follows, at most.

    If nothing was lost, the table has one row: `outages`, the number of recoveries of the run.
    """
    rows = evidence.table("partition_recoveries")
    if rows.empty:
        outages = len(evidence.table("recoveries"))
        if outages:
            raise NotEnough("the journal of this run does not say which partitions were lost")
        return pd.DataFrame({"outages": [outages]})
    steps = [rows[f"{step}_ns"].astype("Int64") for step in ("death", "notice", "ready", "reached")]
    ahead_ns = pd.concat([before - after for before, after in pairwise(steps)], axis=1).max(axis=1)
    return rows.assign(ahead_s=ahead_ns.astype(float) / 1e9)


def _restore(rows: pd.DataFrame) -> MeasuredRestore | None:
    """The partitions of one recovery together; None if not all of them arrived, or what they had done is not known.

    Sources only take part in the loading: they read far ahead of what is processed.
    """
    if rows[["ready_ns", "reached_ns", "checkpoint_age_s", "rate", "loaded_bytes", "load_s"]].isna().any(axis=None):
        return None
    working = rows[rows["replayed_bytes"] > 0]
    return MeasuredRestore(
        size_bytes=float(rows["loaded_bytes"].sum()),
        load_s=float(rows["load_s"].sum()),
        due_records=float((working["checkpoint_age_s"] * working["rate"]).sum()),
        replay_s=(int(rows["reached_ns"].max()) - int(rows["ready_ns"].min())) / 1e9,
        replayed=float(working["replayed_records"].sum()),
    )


def _rules(evidence: Evidence) -> list[Rule]:
    return [between("off", 0, TOLERANCE)]


def _observed(table: pd.DataFrame) -> str:
    seconds = ", ".join(f"{significant(row.measured_s)} ({significant(row.predicted_s)})" for row in table.itertuples())
    return f"{percent(table['off'].iat[0])} off: {seconds} s"


def _worst(restore: pd.Series) -> str:
    measured_s, predicted_s = significant(restore["measured_s"]), significant(restore["predicted_s"])
    return f"the restore took {measured_s} s instead of {predicted_s} s"


def is_described(experiment: Experiment) -> bool:
    """Whether lost partitions are restored alone, often enough, and from checkpoints that may be old enough.

    A slot works off some seconds of input in less time than the model is good for.
    """
    faults, engine = experiment.fault_spec, experiment.engine
    enough = has_faults(experiment) and faults.failure_rate * faults.duration_s >= FEWEST
    passive = engine.recovery_run is RecoveryMode.PASSIVE and not keeps_output_log(experiment)
    return enough and passive and engine.checkpoint_interval_s >= LEAST_INTERVAL_S


def _value_rules(evidence: Evidence) -> list[Rule]:
    if evidence.table("partition_recoveries").empty:
        return [in_set("outages", 0)]
    return [*value_rules("partition_recoveries"), between("ahead_s", None, 0)]


def _lost_and_back(table: pd.DataFrame) -> str:
    return "nothing was lost" if "outages" in table else row_count(table)


CHECKS: tuple[Check, ...] = (
    Check(
        name="partition_recoveries.values",
        table="partition_recoveries",
        subject=partition_recoveries,
        rules=_value_rules,
        observed=_lost_and_back,
        expected=lambda evidence: "no value missing or out of range; death, notice, ready, reached in this order",
        asks="no value is missing or out of range; death, notice, ready and reached are in this order",
        asked_of="the testbed, and faults",
        applies=lambda experiment: is_dataflow(experiment) and has_faults(experiment),
    ),
    Check(
        name="restores.as_modelled",
        table="partition_recoveries",
        subject=restores,
        rules=_rules,
        observed=_observed,
        expected=lambda evidence: f"measured (predicted) within {percent(TOLERANCE)} on average",
        asks="a restore takes as long as the model says: bytes / read rate + checkpoint age x rate / service rate,"
        " within 20 % on average; read rate and service rate are measured in the other restores",
        asked_of="`engine.recovery` `passive`, checkpoints 20 s apart or more, and at least 3 expected faults",
        applies=is_described,
        parting=Parting("apart", _worst),
    ),
)
