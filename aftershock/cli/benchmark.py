"""`aftershock benchmark`: run an experiment through the benchmark DAG, and show its result."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from aftershock.cli.declare import command, show, verdict_code
from experiments.errors import EnvironmentFailure
from experiments.wording import on_one_line
from results.runs.state import RunState


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
    declared.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        dest="overrides",
        help="set a field, such as load.rate=5000; can be repeated",
    )


def benchmark(arguments: argparse.Namespace) -> int:
    """Run an experiment and show its result; a run that failed exits as its error says."""
    from aftershock.airflow import orchestrate
    from experiments import spec
    from results.views.document import document
    from results.views.terminal import summary

    run = orchestrate.run(spec.load(arguments.experiment, arguments.overrides))
    status = run.status()
    if status.state == RunState.FAILED:
        print(f"aftershock: {on_one_line(str(status.error))} (its logs: {run.raw})", file=sys.stderr)
        if arguments.json:
            print(json.dumps(status.to_json()))
        return status.exit_code or EnvironmentFailure.exit_code
    show(arguments, document(run), summary(run))
    print(f"report: {run.report}", file=sys.stderr)
    return verdict_code(list(run.table("verdicts")["verdict"]))
