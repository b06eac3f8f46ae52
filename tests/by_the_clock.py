"""Checks whose verdict depends on how busy the machine is: no test holds a run to them, benchmarks do."""

from __future__ import annotations

from collections.abc import Mapping

CHECKS = {"faults.on_time"}  # benchmarks/injector/kill_lateness.py


def others(verdicts: Mapping[str, str]) -> dict[str, str]:
    """The verdicts of all other checks, by check."""
    return {check: verdict for check, verdict in verdicts.items() if check not in CHECKS}
