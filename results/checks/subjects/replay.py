"""The tables of a replay agree with faults, ledger and prediction of the run."""

from __future__ import annotations

import pandas as pd

from experiments.recovery_modes import RecoveryMode
from experiments.wording import significant
from results.checks.check import ASKED_OF, Check, is_replayed
from results.checks.evidence import Evidence
from results.checks.rules import NotEnough, Rule, between, in_set
from results.checks.subjects.tables import row_count, value_rules
from results.summary.findings import REPLAY_MODEL, took_effect
from results.tables.schema import LedgerClass

ROUNDING_S = 0.01  # of sums over a window
CLASSES = {
    "down_s": [LedgerClass.DETECT, LedgerClass.RESTART],
    "warm_up_s": [LedgerClass.WARM_UP],
    "lost_s": [LedgerClass.LOST],
}
CURVES = ("measured", "replayed")


def recoveries(evidence: Evidence) -> pd.DataFrame:
    """Return the table, with a row without values for each fault that lacks one, and these columns.

    struck       whether the fault took effect
    ledger_off_s how far the row is from what the ledger books under this fault, at most
    parts_off_s  how far `difference_s` is from what it is the difference of
    mean_off_s   how far detection, restart and warm-up of the outages by which R is known are from R, on average; R is
                 what the prediction says that it was
    """
    rows = evidence.rows("replayed_recoveries", _lack(evidence)).set_index("fault")
    booked, faults = _booked(evidence), took_effect(evidence.table("faults"))["fault"]
    rows = rows.reindex(rows.index.union(booked.index).union(_must_have_rows(evidence)))
    struck = rows.index.isin(faults)
    booked = booked.reindex(rows.index, fill_value=0.0)
    differences = [rows[name] - rows[f"replayed_{name}"] for name in CLASSES]
    extended_s = pd.Series({each.outage.fault: each.extended_s for each in evidence.process.recoveries}, dtype=float)
    recovery_s = (rows[["down_s", "warm_up_s"]].sum(axis=1) - extended_s).mean()
    return rows.assign(
        struck=struck,
        ledger_off_s=(rows[list(CLASSES)] - booked).abs().max(axis=1),
        parts_off_s=(sum(differences) - rows["difference_s"]).abs(),
        mean_off_s=abs(recovery_s - float(_prediction(evidence)["recovery_time_s"])),
    ).reset_index(names="fault")


RECOVERY_RULES: list[Rule] = [
    in_set("struck", True),
    *(between(name, 0, ROUNDING_S) for name in ("ledger_off_s", "parts_off_s", "mean_off_s")),
]


def useful_time(evidence: Evidence) -> pd.DataFrame:
    """Return the table with these columns, the last three of them for both curves.

    step_s   since the row before
    rest_s   from the last row until the window closes
    rise_s   since the row before
    ahead_s  how much faster than time the curve rises
    off_s    how far it is from where it must begin (0) and end (utilization times the window), on these two rows
    """
    rows = evidence.rows("useful_time", _lack(evidence))
    window_s, steps_s = float(evidence.the_run()["window_s"]), rows["second"].diff()
    rest_s = window_s - float(rows["second"].iat[-1])
    found = rows.assign(step_s=steps_s, rest_s=rest_s)
    for curve, ends_s in zip(CURVES, _ends(evidence), strict=True):
        useful_s = rows[f"{curve}_s"].astype(float)
        off_s = pd.Series(0.0, rows.index)
        off_s.iloc[-1] = max(useful_s.iat[-1] - ends_s, ends_s - rest_s - useful_s.iat[-1], 0.0)
        off_s.iloc[0] = max(abs(useful_s.iat[0]), float(rows["second"].iat[0]))
        found[f"{curve}_rise_s"], found[f"{curve}_off_s"] = useful_s.diff(), off_s
        found[f"{curve}_ahead_s"] = useful_s.diff() - steps_s
    return found


def useful_time_rules(evidence: Evidence) -> list[Rule]:
    """The curves never fall and are never faster than time, and they begin and end where they must.

    The replayed curve may fall a little: a batch that takes less time than the mean checkpoint is charged a whole one.
    """
    rows, process = evidence.rows("useful_time", _lack(evidence)), evidence.process
    fall_s = sum(process.costs_s) / max(1, len(process.costs_s))
    longest_s = max(1, int(rows["second"].diff().max() if len(rows) > 1 else 1))
    return [
        between("step_s", 1, None),
        between("rest_s", -ROUNDING_S, longest_s - ROUNDING_S),
        between("measured_rise_s", -ROUNDING_S, None),
        between("replayed_rise_s", -ROUNDING_S - fall_s, None),
        *(between(f"{curve}_ahead_s", None, ROUNDING_S) for curve in CURVES),
        *(between(f"{curve}_off_s", 0, ROUNDING_S) for curve in CURVES),
    ]


def _ends(evidence: Evidence) -> tuple[float, float]:
    """Useful time in the window, measured and replayed [s].

    The replayed curve has the recoveries as long as they were; in the prediction they are as long as recoveries from
    other faults say. Where the hosts that are left go on, there is none to predict.
    """
    window_s, row = float(evidence.the_run()["window_s"]), _prediction(evidence)
    rows, process = evidence.table("replayed_recoveries").set_index("fault"), evidence.process
    predicted = [each.outage.fault for each in process.recoveries if process.stops_all(each.strikes[0])]
    rows = rows.loc[rows.index.intersection(predicted)]
    longer_s = sum((rows[f"replayed_{name}"] - rows[name]).sum() for name in ("down_s", "warm_up_s"))
    return float(evidence.the_run()["utilization"]) * window_s, float(row["predicted"]) * window_s + float(longer_s)


def _booked(evidence: Evidence) -> pd.DataFrame:
    """By fault, what the ledger books under it [s]; one column for each of `CLASSES`."""
    ledger = evidence.rows("ledger", "the ledger has no segments")
    caused = ledger[ledger["fault"].notna()].assign(fault=lambda rows: rows["fault"].astype("int64"))
    seconds = caused.pivot_table(index="fault", columns="class", values="seconds", aggfunc="sum", fill_value=0.0)
    return pd.DataFrame({name: seconds.reindex(columns=of, fill_value=0.0).sum(axis=1) for name, of in CLASSES.items()})


def _must_have_rows(evidence: Evidence) -> list[int]:
    """The faults that took effect, but for those that struck during the outage of another.

    In mode task a fault may cost nothing at all.
    """
    if evidence.experiment.engine.recovery_run is RecoveryMode.TASK:
        return []
    process, ledger = evidence.process, evidence.process.ledger
    amid = {strike.fault for each in ledger.outages for strike in ledger.strikes_in(each) if strike.fault != each.fault}
    return [strike.fault for strike in process.strikes if strike.fault not in amid]


def _prediction(evidence: Evidence) -> pd.Series:
    rows = evidence.rows("predictions", "table predictions has no row")
    found = rows[rows["model"] == REPLAY_MODEL]
    if found.empty or pd.isna(found["predicted"].iat[0]):
        raise NotEnough("no utilization was predicted by a replay, so there is nothing to compare the table with")
    return found.iloc[0]


def _lack(evidence: Evidence) -> str:
    """Why nothing was replayed."""
    rows = evidence.table("predictions")
    found = rows.loc[(rows["model"] == REPLAY_MODEL) & rows["why"].notna(), "why"]
    return "nothing was replayed" if found.empty else str(found.iat[0])


CHECKS: tuple[Check, ...] = (
    Check(
        name="replayed_recoveries.values",
        table="replayed_recoveries",
        subject=recoveries,
        rules=lambda evidence: value_rules("replayed_recoveries") + RECOVERY_RULES,
        observed=row_count,
        expected=lambda evidence: "a row for each outage, which agrees with the ledger; a mean R as in the prediction",
        asks="each outage has a row that agrees with the ledger; the mean R of these rows equals the prediction's R",
        asked_of=ASKED_OF[is_replayed],
        applies=is_replayed,
    ),
    Check(
        name="useful_time.values",
        table="useful_time",
        subject=useful_time,
        rules=lambda evidence: value_rules("useful_time") + useful_time_rules(evidence),
        observed=lambda frame: (
            f"{significant(frame['measured_s'].iat[-1])} s measured and "
            f"{significant(frame['replayed_s'].iat[-1])} s replayed, "
            f"{frame['second'].iat[-1]} s after the window opened"
        ),
        expected=lambda evidence: "both curves rise from 0 to what their utilization gives, and no faster than time",
        asks="both curves rise from 0 to the useful time that their utilization gives, never fall, and never rise"
        " faster than time",
        asked_of=ASKED_OF[is_replayed],
        applies=is_replayed,
    ),
)
