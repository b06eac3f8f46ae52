"""What the checks of a reproduction make of a table."""

from __future__ import annotations

import pandas as pd

from reproductions.catalogue import CATALOGUE
from reproductions.judging import judge
from reproductions.reproduction import Computed


def verdicts(id: str, table: pd.DataFrame) -> dict[str, str]:
    """The verdict of each check of this reproduction, by the check's name."""
    return {check.name: str(judge(check, Computed(id, table))["verdict"]) for check in CATALOGUE[id].checks}
