"""How long the checkpoints of the testbed's partitions took, by the table `partition_checkpoints` of a run."""

from __future__ import annotations

from functools import cached_property

import pandas as pd

from results.summary.findings import mean

ROUND = "round"  # stands for all partitions in the table of their checkpoints


class PartitionCheckpoints:
    """The checkpoints of the partitions of one run; seconds from the start of its window."""

    def __init__(self, rows: pd.DataFrame, start_ns: int) -> None:
        """`rows`: the table; `start_ns`: the start of the window."""
        self._rows, self._start_ns = rows, start_ns

    @property
    def store_s(self) -> float | None:
        """From when a partition takes a checkpoint until it is stored; None without any."""
        return mean(self._rows["seconds"])

    @property
    def border_lag_s(self) -> float | None:
        """From when the first partition comes to a border until the last has stored its checkpoint.

        None if the window has no border of which every partition has stored one.
        """
        rows = self._rows[self._rows["in_window"] & ~self._rows["invalid"]]
        stored_s = (rows["completed_ns"].astype("int64") - self._start_ns) / 1e9
        taken_s = stored_s - rows["seconds"].astype(float)
        numbers = rows.assign(stored_s=stored_s, taken_s=taken_s).groupby("number")
        is_whole = numbers["partition"].nunique() == rows["partition"].nunique()
        return mean((numbers["stored_s"].max() - numbers["taken_s"].min())[is_whole])

    @cached_property
    def rounds(self) -> pd.DataFrame:
        """Coordinated checkpoints: when each round was taken, and when it was complete [s]."""
        rows = self._rows[self._rows["partition"] == ROUND].sort_values("completed_ns")
        complete_s = (rows["completed_ns"].astype("int64") - self._start_ns) / 1e9
        return pd.DataFrame({"taken_s": complete_s - rows["seconds"].astype(float), "complete_s": complete_s})
