"""`aftershock benchmark`: run an experiment through the benchmark DAG, and show its result."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from aftershock.cli.declare import PASSED, add_overrides, command, show, verdict_code
from experiments.errors import EnvironmentFailure
from experiments.wording import counted, exact, on_one_line
from results.runs.state import RunState

if TYPE_CHECKING:
    from experiments.spec import Experiment


def add(commands: Any) -> None:
    """Declare `aftershock benchmark`."""
    declared = command(
        commands, "benchmark", "run an experiment: start a cluster, inject faults, measure, report", benchmark
    )
    declared.add_argument(
        "experiment",
        nargs="?",
        default="wordcount",
        help="a YAML file, or a name in experiments/examples/; default wordcount",
    )
    add_overrides(declared)
    declared.add_argument(
        "--check",
        action="store_true",
        help="start nothing; only say whether the experiment can run here, and how long it takes",
    )


def benchmark(arguments: argparse.Namespace) -> int:
    """Run an experiment and show its result; a run that failed exits as its error says."""
    from experiments import spec

    experiment = spec.load(arguments.experiment, arguments.overrides)
    if arguments.check:
        return _check(arguments, experiment)

    from aftershock.airflow import orchestrate
    from results.views.document import document
    from results.views.terminal import summary

    run = orchestrate.run(experiment)
    status = run.status()
    if status.state == RunState.FAILED:
        print(f"aftershock: {on_one_line(str(status.error))} (its logs: {run.raw})", file=sys.stderr)
        if arguments.json:
            print(json.dumps(status.to_json()))
        return status.exit_code or EnvironmentFailure.exit_code
    show(arguments, document(run), summary(run))
    print(f"report: {run.report}", file=sys.stderr)
    return verdict_code(list(run.table("verdicts")["verdict"]))


def _check(arguments: argparse.Namespace, experiment: Experiment) -> int:
    """Say that an experiment can run on this machine, and what to expect; raises the error that refuses its run."""
    from aftershock.run import admission, room
    from chaos.implications import drawn
    from chaos.plan import faults_of
    from results.runs.step_times import in_words, whole_s

    experiment = admission.as_it_runs(experiment)
    events = list(faults_of(experiment))
    takes_s, window_s = whole_s(experiment), experiment.window_s
    late, warnings = drawn(experiment.fault_spec, events).late_heals, room.warnings(experiment.cluster)
    found = {
        "experiment": experiment.name,
        "takes": takes_s,
        "window": window_s,
        "faults": len(events),
        "late_heals": late,
        "warnings": warnings,
    }
    lines = [
        f"{experiment.name} can run here; it takes {in_words(takes_s)}, of which {exact(window_s)} s are measured",
        counted(len(events), "planned fault") + (f"; heals after the end: {late:,}" if late else ""),
        *(f"warning: {each}" for each in warnings),
    ]
    show(arguments, found, "\n".join(lines))
    return PASSED
