"""What the checks of a reproduction make of a table, and one check of ratios of what they are."""

from __future__ import annotations

import pandas as pd

from reproductions.catalogue import CATALOGUE
from reproductions.claims import Ratio, at_least
from reproductions.judging import judge
from reproductions.plants import InRows
from reproductions.reproduction import Computed

NOTHING = InRows("nothing", lambda rows: rows)  # a plant that changes nothing


def verdicts(id: str, table: pd.DataFrame) -> dict[str, str]:
    """The verdict of each check of this reproduction, by the check's name."""
    return {check.name: str(judge(check, Computed(id, table))["verdict"]) for check in CATALOGUE[id].checks}


def claimed(found: list[Ratio], limit: float) -> dict[str, str | None]:
    """What is said of the claim that all of these ratios are at least the limit."""
    check = at_least("it", lambda table: found, limit, "so many times", NOTHING)
    return judge(check, Computed("it", pd.DataFrame({"any": [1]})))
