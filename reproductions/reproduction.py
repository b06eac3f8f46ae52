"""What a reproduction is, and the kinds of checks that judge its table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol

import pandas as pd
from matplotlib.figure import Figure

from reproductions.plants import Plant
from results.checks.rules import NotEnough, Rule, TableCheck, between, present

if TYPE_CHECKING:
    from experiments.spec import Experiment

Progress = Callable[[int, int], None]  # (points done, points in all)


class ReproductionKind(StrEnum):
    """How a reproduction comes about: from formulas and simulations, or from runs on a cluster or of an operator."""

    COMPUTED = "C"
    MEASURED = "M"


class Size(NamedTuple):
    """What the size of a reproduction counts, its default, the paper's own, and the least that makes sense."""

    counts: str
    default: int
    paper: int
    least: int = 1


class Measuring(Protocol):
    """Measures in this process, and keeps the measurements."""

    def measure_missing(self, size: int, tell: Progress) -> None:
        """Measure what a table of this size lacks."""


@dataclass(frozen=True)
class Computed:
    """The table of one reproduction, as the evidence that its checks look at; `lack` says why there is none.

    `is_stored` marks a table that was read from a file: another version of the code may have made it.
    """

    name: str
    table: pd.DataFrame | None
    lack: str = ""
    is_stored: bool = False

    def rows(self) -> pd.DataFrame:
        """The table; raises `NotEnough` when it could not be computed, or has no rows."""
        if self.table is None or self.table.empty:
            raise NotEnough(self.lack or "the table has no rows")
        return self.table


@dataclass(frozen=True)
class ReproductionCheck(TableCheck[Computed]):
    """A check, and how large an error it must notice.

    plant  the error that turns its verdict from pass to fail; of a check that fails as things are, from fail to pass
    fails  why it fails although nothing is wrong here, such as a slip of the paper; empty if it passes
    """

    _: KW_ONLY
    plant: Plant
    fails: str = ""


@dataclass(frozen=True)
class Reproduction:
    """One table or figure of a paper.

    compute   (size, progress) -> a tidy table; raises `NotEnough` if data that it needs does not exist
    plot      table -> figure
    checks    each of them can fail
    size      None where everything is computed in full in any case
    needs     size -> the experiments whose runs it is measured in; asked again once those have run, it may name more,
              which could not be told before; None where it needs none
    bench     what is measured in this process instead of in runs
    searched  columns that come from a search for a maximum, which is less exact than other arithmetic
    """

    id: str
    what: str
    compute: Callable[[int, Progress], pd.DataFrame]
    plot: Callable[[pd.DataFrame], Figure]
    checks: tuple[ReproductionCheck, ...]
    size: Size | None = None
    needs: Callable[[int], Sequence[Experiment]] | None = None
    bench: Measuring | None = None
    searched: frozenset[str] = frozenset()

    @property
    def kind(self) -> ReproductionKind:
        """Measured if it needs runs or a bench, else computed."""
        return ReproductionKind.MEASURED if self.needs or self.bench else ReproductionKind.COMPUTED

    @property
    def paper(self) -> str:
        """Short name of the paper: what stands before the slash of the id."""
        return self.id.split("/")[0]

    @property
    def name(self) -> str:
        """The id as the name of files."""
        return self.id.replace("/", "-")


def half_unit(printed: str) -> float:
    """Half a unit of the last digit of a printed number: what rounding may have hidden."""
    return float(Decimal(5).scaleb(int(Decimal(printed).as_tuple().exponent) - 1))


def as_printed(
    name: str, printed: str, unit: str, ours: Callable[[pd.DataFrame], float], plant: Plant, fails: str = ""
) -> ReproductionCheck:
    """Our figure, taken from the table, rounds to the one that the paper prints; `fails` says why not, where known."""

    def compare(table: pd.DataFrame) -> pd.DataFrame:
        found = float(ours(table))
        off = abs(found - float(printed)) / half_unit(printed)
        return pd.DataFrame({"ours": [found], "printed": [float(printed)], "off_by_half_units": [off]})

    return holds(
        name,
        compare,
        [between("off_by_half_units", 0, 1 + 1e-9)],
        lambda frame: f"{frame['ours'].iat[0]:.6g} {unit}".strip(),
        " ".join(filter(None, (printed, unit, "(printed)"))),
        plant,
        fails,
    )


def holds(
    name: str,
    subject: Callable[[pd.DataFrame], pd.DataFrame],
    rules: list[Rule],
    observed: Callable[[pd.DataFrame], str],
    expected: str,
    plant: Plant,
    fails: str = "",
) -> ReproductionCheck:
    """Rules that a frame derived from the table must meet; what is expected tells why it fails, where that is known."""
    told = f"{expected}; fails, as known: {fails}" if fails else expected
    return ReproductionCheck(
        name=name,
        table="computed",
        subject=lambda evidence: _some_rows(subject(evidence.rows())),
        rules=lambda evidence: _of_present_values(rules),
        observed=observed,
        expected=lambda evidence: told,
        plant=plant,
        fails=fails,
    )


def _some_rows(frame: pd.DataFrame) -> pd.DataFrame:
    if frame.empty:
        raise NotEnough("there is nothing to compare")
    return frame


def _of_present_values(rules: list[Rule]) -> list[Rule]:
    """The rules, and that no value they look at is missing: Great Expectations leaves out what is not a number."""
    columns = [
        rule.arguments[key] for rule in rules for key in ("column", "column_A", "column_B") if key in rule.arguments
    ]
    return [*(present(column) for column in dict.fromkeys(columns)), *rules]
