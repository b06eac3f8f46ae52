"""`aftershock doctor`: what this machine can and cannot do, driver by driver, with remedies."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from aftershock.cli.declare import PASSED, command, show
from experiments.errors import EnvironmentFailure

if TYPE_CHECKING:
    from aftershock.run.doctor import Diagnosis, Finding

MARKS = {"yes": "+", "no": "-", "unknown": "?"}


def add(commands: Any) -> None:
    """Declare `aftershock doctor`."""
    declared = command(commands, "doctor", "say what this machine can and cannot do, by driver, with remedies", doctor)
    text = "also check this: JSON file of machines (driver ssh) or of a cluster (driver external)"
    declared.add_argument("--inventory", metavar="FILE", help=text)


def doctor(arguments: argparse.Namespace) -> int:
    """Show what was found; the exit code is that of a failed environment if no experiment could run here.

    Raises `BadInput` for a mistake in the file of machines or of a cluster.
    """
    from aftershock.run.doctor import examine

    found = examine(arguments.inventory)
    document = {"ready": found.ready, "findings": [asdict(finding) for finding in found.findings]}
    show(arguments, document, "\n".join([*map(_line, found.findings), _last_line(found)]))
    return PASSED if found.ready else EnvironmentFailure.exit_code


def _last_line(found: Diagnosis) -> str:
    marked = "see what is marked with -"
    if not found.ready:
        return f"not ready: {marked}"
    if found.short:
        return f"a run can start, but there is too little {' and '.join(found.short)}: {marked}"
    if found.unusable:
        return f"ready for `aftershock benchmark`, but not with {' and '.join(found.unusable)}: {marked}"
    return "ready for `aftershock benchmark`"


def _line(finding: Finding) -> str:
    line = f"{MARKS[finding.can]} {finding.subject}: {finding.found}"
    return f"{line}\n    {finding.remedy}" if finding.remedy else line
