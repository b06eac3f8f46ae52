"""The command line: a thin face over the packages.

With --json exactly one JSON document goes to standard output and everything else to standard error. Exit 0: done and
every verdict passed; 1: a verdict failed or is unknown; 2: bad input; 3: the environment failed.
"""

from __future__ import annotations

import argparse
import os
import sys

from aftershock.commands import (
    benchmark,
    faults,
    fidelity,
    recovery,
    replication,
    reproduce,
    results,
    serve,
    utilization,
)
from aftershock.commands.declare import Parser, group
from experiments.errors import AftershockError, EnvironmentFailure

INTERRUPTED = 130


def parser() -> argparse.ArgumentParser:
    top = Parser(prog="aftershock", description="What do failures cost a streaming job, and what should be changed?")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)
    benchmark.add(commands)
    predictions = group(commands, "predict", "what a model predicts")
    utilization.add_prediction(predictions)
    fidelity.add(predictions)
    utilization.add_simulation(group(commands, "simulate", "what a model predicts, by simulation"))
    plans = group(commands, "plan", "plans, drawn but not carried out")
    replication.add(plans)
    recovery.add(plans)
    faults.add(plans)
    reproduce.add(commands)
    results.add(commands)
    serve.add(commands)
    return top


def main(words: list[str] | None = None) -> int:
    """Run one call; returns its exit code."""
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    try:
        arguments = parser().parse_args(words)
        return arguments.run(arguments)
    except AftershockError as error:
        print(f"aftershock: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("aftershock: interrupted; nothing of the run is left running", file=sys.stderr)
        return INTERRUPTED
    except OSError as error:
        failure = EnvironmentFailure(f"{error.filename or 'the system'}: {error.strerror}", "mend that and try again")
        print(f"aftershock: {failure}", file=sys.stderr)
        return failure.exit_code


if __name__ == "__main__":
    sys.exit(main())
