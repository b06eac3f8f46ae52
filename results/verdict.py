"""The three outcomes of a check."""

from collections.abc import Iterable
from enum import StrEnum


class Verdict(StrEnum):
    """What a check came to."""

    PASS = "pass"
    FAIL = "fail"
    UNKNOWN = "unknown"  # the check could not be evaluated, which is never a pass


WORST_FIRST = (Verdict.FAIL, Verdict.UNKNOWN, Verdict.PASS)


def worst(verdicts: Iterable[str]) -> Verdict:
    """What several verdicts come to: the worst of them, and unknown if there is none."""
    found = set(verdicts)
    return next((verdict for verdict in WORST_FIRST if verdict in found), Verdict.UNKNOWN)
