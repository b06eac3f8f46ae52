"""Every check of a run, in the order of their verdicts.

The modules of `results.checks.subjects` are the only place that maps expectations of Great Expectations to the names of
checks.
"""

from __future__ import annotations

from experiments.spec import Experiment
from results.checks.check import Check
from results.checks.subjects import (
    copies,
    faults,
    ledger,
    output_log_targets,
    output_logs,
    quality,
    query_recoveries,
    recoveries,
    replay,
    restores,
    sustainable,
    tables,
    tentative,
    utilization,
)

SUBJECTS = (
    *(tables, recoveries, replay, ledger, faults, quality, tentative, utilization),
    *(restores, query_recoveries, output_logs, output_log_targets, copies, sustainable),
)
CHECKS: tuple[Check, ...] = tuple(check for subject in SUBJECTS for check in subject.CHECKS)


def checks_for(experiment: Experiment) -> list[Check]:
    """The checks that have a meaning for this experiment."""
    return [check for check in CHECKS if check.applies(experiment)]
