"""How a metric of an experiment changed."""

from __future__ import annotations

from enum import StrEnum


class Change(StrEnum):
    """From the baseline to the candidates, the worst first."""

    WORSE = "worse"
    UNKNOWN = "unknown"
    BETTER = "better"
    SAME = "same"
