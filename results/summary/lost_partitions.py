"""What became of the partitions that each fault took: how they came back, and how long that took."""

from __future__ import annotations

import pandas as pd

from results.tables.testbed import RecoveredHow

TAKEN = (RecoveredHow.RESTORED, RecoveredHow.PROMOTED, RecoveredHow.LOST)
NS = 1e9


def by_fault(recoveries: pd.DataFrame) -> pd.DataFrame:
    """A row for each fault of table `partition_recoveries` that took partitions, by its number; times in seconds.

    latency_s   from the notice until the last of them was as far as it was before; null if one was not seen to arrive
    promoted_s, restored_s   the same of those whose copies were promoted, and of the others; null if there are none
    ready_s     from the notice until the last of those others could go on
    age_s       of the oldest checkpoint that was restored
    lost, promoted   how many partitions the fault took, and of how many copies were promoted

    A partition may arrive in a later recovery of the same fault: if the loss of a second host is noticed while it is
    restored, it may be rolled back once more.
    """
    found = recoveries[recoveries["fault"].notna()].sort_values("epoch")
    rows = {number: _row(of_fault) for number, of_fault in found.groupby("fault")}
    return pd.DataFrame.from_dict({number: row for number, row in rows.items() if row["lost"]}, orient="index")


def _row(recovered: pd.DataFrame) -> dict[str, float]:
    taken = recovered[recovered["how"].isin(TAKEN)].drop_duplicates("partition").set_index("partition")
    last = recovered.drop_duplicates("partition", keep="last").set_index("partition").loc[taken.index]
    notice_ns = taken["notice_ns"].astype("Int64")
    took_s, ready_s = (
        (last[f"{step}_ns"].astype("Int64") - notice_ns).astype("Float64").astype(float) / NS
        for step in ("reached", "ready")
    )
    promoted = (taken["how"] == RecoveredHow.PROMOTED) & (last["how"] == RecoveredHow.PROMOTED)
    arrived = bool(took_s.notna().all())
    nothing = float("nan")
    return {
        "latency_s": took_s.max() if arrived else nothing,
        "promoted_s": took_s[promoted].max() if arrived else nothing,
        "restored_s": took_s[~promoted].max() if arrived else nothing,
        "ready_s": ready_s[~promoted].max() if arrived else nothing,
        "age_s": taken["checkpoint_age_s"].astype(float).max(),
        "lost": len(taken),
        "promoted": int(promoted.sum()),
    }
