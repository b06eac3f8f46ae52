"""The data that checks use: the tables of a run, and its process of checkpoints and restarts.

What cannot be had raises `NotEnough`, so that the verdict is unknown and never pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pandas as pd
import pyarrow as pa

from experiments.errors import EnvironmentFailure
from experiments.spec import Experiment
from results.checks.rules import NotEnough
from results.predictions.process import MeasuredProcess
from results.runs.store import Run
from results.tables.schema import TABLES

PYTHON_TYPES = {pa.string(): "str", pa.int64(): "int", pa.float64(): "float", pa.bool_(): "bool"}


@dataclass(frozen=True)
class Evidence:
    """A run together with the experiment that it is judged against."""

    run: Run
    experiment: Experiment

    @property
    def name(self) -> str:
        """The id of the run."""
        return self.run.run_id

    def raw_table(self, name: str) -> pd.DataFrame:
        """Read a table as it is; raises `NotEnough` when it is missing or cannot be read."""
        try:
            return self.run.table_as_it_is(name)
        except FileNotFoundError:
            raise NotEnough(f"table {name} is missing") from None
        except EnvironmentFailure as error:
            raise NotEnough(f"table {name} cannot be read: {error}") from None

    def table(self, name: str) -> pd.DataFrame:
        """Read a table whose columns have the names and types of its schema; else raises `NotEnough`."""
        frame = self.raw_table(name)
        for field in TABLES[name]:
            if field.name not in frame:
                raise NotEnough(f"table {name} has no column {field.name}")
            if frame[field.name].dtype.type.__name__ != PYTHON_TYPES[field.type]:
                raise NotEnough(f"{name}.{field.name} is {frame[field.name].dtype}, not {field.type}")
        return frame

    def rows(self, name: str, lack: str) -> pd.DataFrame:
        """Read a table that must have rows; `lack` says what it means when there are none."""
        frame = self.table(name)
        if frame.empty:
            raise NotEnough(lack)
        return frame

    def the_run(self) -> pd.Series:
        """The one row of the table `runs`."""
        return self.rows("runs", "table runs has no row").iloc[0]

    @cached_property
    def process(self) -> MeasuredProcess:
        """What the tables say of the run's process, for every check the same; raises `NotEnough` if one has no row."""
        for name in ("runs", "faults", "ledger", "checkpoints"):
            self.rows(name, f"table {name} has no row")
        return MeasuredProcess(self.run, self.experiment)
