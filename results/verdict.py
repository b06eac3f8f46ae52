"""The three outcomes of a check."""

from enum import StrEnum


class Verdict(StrEnum):
    PASS = "pass"
    FAIL = "fail"
    UNKNOWN = "unknown"  # the check could not be evaluated, which is never a pass
