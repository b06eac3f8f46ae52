"""Reproductions that are measured in this process, with one operator instead of a cluster; what was found is kept.

A row counts only where and as it was measured: on such a machine, with these versions and these constants of its bench.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from experiments.errors import EnvironmentFailure
from experiments.locks import locked
from reproductions.reproduction import Progress, Reproduction, ReproductionCheck, Size
from results.checks.rules import NotEnough, Rule, between
from results.damage import Damaged
from results.runs.machine import DIGEST_DIGITS, machine_class
from results.runs.store import home
from results.runs.versions import versions
from results.tables.reading import read_arrow

Row = dict[str, Any]
KEY = ["setting", "replicate"]
MADE_BY = ["machine", "versions", "constants"]
ANYTHING = 1e-9  # less is no change
REPLICATES = Size("measurements of each setting", default=1, paper=1)


@dataclass(frozen=True)
class Bench:
    """What can be measured in this process.

    name       of the file of what was measured
    settings   of what is measured, in the order of a figure
    measure    (setting, replicate) -> a row of what was found; takes seconds to minutes
    constants  by name what `measure` uses beside the setting: where one differs, another thing is measured
    """

    name: str
    settings: tuple[str, ...]
    measure: Callable[[str, int], Row]
    constants: Mapping[str, float]

    @property
    def path(self) -> Path:
        """The file with all measurements; if it is removed, everything is measured again."""
        return home() / "measured" / f"{self.name}.parquet"

    @property
    def made_by(self) -> dict[str, str]:
        """What makes a row here and now: the class of the machine, the versions, and a digest of the constants."""
        constants = json.dumps(dict(self.constants), sort_keys=True)
        digest = hashlib.sha256(constants.encode()).hexdigest()[:DIGEST_DIGITS]
        return dict(zip(MADE_BY, (machine_class(), json.dumps(versions(), sort_keys=True), digest), strict=True))

    def kept(self) -> pd.DataFrame:
        """What was made as rows are made here and now: `setting`, `replicate`, `measured_at`, and what was found.

        Raises `EnvironmentFailure` if the file is damaged.
        """
        rows = self._all()
        made_here = (rows[MADE_BY] == pd.Series(self.made_by)).all(axis=1)
        return rows[made_here].drop(columns=MADE_BY).reset_index(drop=True)

    def missing(self, size: int) -> list[tuple[str, int]]:
        """Settings and replicates that were not measured so, replicate by replicate; raises as `kept` does."""
        kept = {(row.setting, row.replicate) for row in self.kept().itertuples()}
        wanted = ((setting, number) for number, setting in product(range(1, size + 1), self.settings))
        return [each for each in wanted if each not in kept]

    def measure_missing(self, size: int, tell: Progress) -> None:
        """Measure it. Each row is kept at once, so that an interrupted call goes on where it stopped.

        Only one process measures at a time, also of different benches: two would slow each other down. Raises as `kept`
        does, and `EnvironmentFailure` if another process takes too long for a row.
        """
        total = len(self.missing(size))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        for done in range(1, total + 1):
            with locked(self.path.with_name("lock"), "a measurement"):
                lacking = self.missing(size)  # another process may have measured some of it meanwhile
                if not lacking:
                    return
                self._keep(self._measured(*lacking[0]))
            tell(done, total)

    def _measured(self, setting: str, replicate: int) -> Row:
        at = pd.Timestamp.now(tz="UTC").isoformat(timespec="seconds")
        about = {"setting": setting, "replicate": replicate, "measured_at": at} | self.made_by
        return about | self.measure(setting, replicate)

    def _keep(self, row: Row) -> None:
        """Write all rows so that a reader sees the old file or the new one, never a part."""
        scratch = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            pd.concat([self._all(), pd.DataFrame([row])]).to_parquet(scratch, index=False)
            scratch.replace(self.path)
        finally:
            scratch.unlink(missing_ok=True)

    def _all(self) -> pd.DataFrame:
        columns = [*KEY, *MADE_BY, "measured_at"]
        try:
            rows: pd.DataFrame = read_arrow(self.path).to_pandas()
        except FileNotFoundError:
            return pd.DataFrame(columns=columns)
        except Damaged as error:
            raise EnvironmentFailure(
                f"{self.path} is damaged ({error.why})", "remove it: its rows are then measured again"
            ) from None
        # Rows of before `versions` and `constants` were kept have neither, and count nowhere.
        return rows.reindex(columns=[*dict.fromkeys([*columns, *rows.columns])])


def benched(
    id: str,
    what: str,
    bench: Bench,
    about: Callable[[str], Row],
    plot: Callable[[pd.DataFrame], Figure],
    checks: tuple[ReproductionCheck, ...],
) -> Reproduction:
    """A reproduction whose table has a row for each setting and replicate: what `about` knows of the setting, such as
    what the paper prints, and what was measured, which is empty if it was not."""

    def compute(size: int, tell: Progress) -> pd.DataFrame:
        kept = bench.kept()
        if kept.empty:
            raise NotEnough(f"not measured on this machine with these versions; `aftershock reproduce {id}` does it")
        wanted = product(bench.settings, range(1, size + 1))
        rows = pd.DataFrame([{"setting": setting, "replicate": number} | about(setting) for setting, number in wanted])
        return rows.merge(kept, on=KEY, how="left")

    return Reproduction(id, what, compute=compute, plot=plot, checks=checks, size=REPLICATES, bench=bench)


def by_setting(table: pd.DataFrame, column: str) -> pd.Series:
    """The median of a column over the replicates of each setting, in order; raises `NotEnough` if some are missing."""
    if column not in table:
        raise NotEnough(f"{column} was not measured")
    lacking = table[table[column].isna()]
    if len(lacking):
        names = ", ".join(f"{row.setting} #{row.replicate}" for row in lacking.itertuples())
        raise NotEnough(f"{column} was not measured with {names}")
    return table.groupby("setting", sort=False)[column].median()


def steps(table: pd.DataFrame, column: str, settings: Sequence[str] | None = None) -> pd.DataFrame:
    """By how much the median of a column rises from each setting to the next, `step`, and from first to last, `total`.

    Steps alone would allow a column that never changes.
    """
    medians = by_setting(table, column)
    medians = medians if settings is None else medians[list(settings)]
    return pd.DataFrame({"step": medians.diff().iloc[1:]}).assign(total=medians.iloc[-1] - medians.iloc[0])


def falling() -> list[Rule]:
    """The rules of `steps` whose column rises nowhere, and is lower at the end."""
    return [between("step", None, 0.0), between("total", None, -ANYTHING)]


def rising() -> list[Rule]:
    """The rules of `steps` whose column falls nowhere, and is higher at the end."""
    return [between("step", 0.0, None), between("total", ANYTHING, None)]
