"""The command line: a thin face over the packages.

With --json exactly one JSON document goes to standard output and everything else to standard error. Exit 0: done and
every verdict passed; 1: a verdict failed or is unknown; 2: bad input; 3: the environment failed.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from contextlib import suppress

from aftershock.cli import (
    abort,
    benchmark,
    clean,
    completion,
    doctor,
    faults,
    fidelity,
    protocols,
    recommend,
    recovery,
    replication,
    reproduce,
    results,
    serve,
    utilization,
)
from aftershock.cli.declare import Parser, group
from experiments.errors import AftershockError, EnvironmentFailure

INTERRUPTED, NOT_READ_TO_THE_END = 130, 141  # as a shell says of SIGINT and SIGPIPE
END_WHAT_OTHERS_BEGAN = frozenset({"abort", "clean"})  # commands that may be interrupted before that has ended


def parser() -> argparse.ArgumentParser:
    """The parser of the whole command line; the generated reference page is made of it, too."""
    top = Parser(prog="aftershock", description="What do failures cost a streaming job, and what should be changed?")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)
    benchmark.add(commands)
    predictions = group(commands, "predict", "ask a model: utilization, or quality of output")
    utilization.add_prediction(predictions)
    fidelity.add(predictions)
    simulations = group(commands, "simulate", "simulate utilization, or the testbed's protocols on many workers")
    utilization.add_simulation(simulations)
    protocols.add_simulation(simulations)
    plans = group(commands, "plan", "make a plan: of replicas, of a recovery, or of faults")
    replication.add(plans)
    recovery.add(plans)
    faults.add(plans)
    reproduce.add(commands)
    results.add(commands)
    recommend.add(commands)
    abort.add(commands)
    clean.add(commands)
    serve.add(commands)
    doctor.add(commands)
    completion.add(commands)
    return top


def main(words: list[str] | None = None) -> int:
    """Run one call; returns its exit code."""
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    _print_anything()
    arguments = argparse.Namespace(command=None)
    try:
        declared = parser()
        completion.offer(declared)
        arguments = declared.parse_args(words)
        code: int = arguments.run(arguments)
        sys.stdout.flush()
        return code
    except AftershockError as error:
        print(f"aftershock: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        some_is_left = arguments.command in END_WHAT_OTHERS_BEGAN
        left = "what it was to end may still run: call it again" if some_is_left else "nothing of it is left running"
        with suppress(OSError):  # the terminal may be closed, and a reader of the output may have died
            print(f"aftershock: interrupted; {left}", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # who read the output wants no more of it, which is no failure; the exit of Python would complain about the rest
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            os.dup2(nowhere, stream.fileno())
        return NOT_READ_TO_THE_END
    except (OSError, MemoryError) as error:
        failure = EnvironmentFailure(_cause(error), "mend that and try again")
        print(f"aftershock: {failure}", file=sys.stderr)
        return failure.exit_code


def _cause(error: OSError | MemoryError) -> str:
    """What failed and why; code of ours, unlike the kernel, may name a missing file and nothing else."""
    if isinstance(error, MemoryError):
        return "the memory of this machine does not suffice"
    if error.strerror:
        return f"{error.filename or 'the system'}: {error.strerror}"
    return f"{error} is missing" if isinstance(error, FileNotFoundError) else f"the system: {error}"


def _print_anything() -> None:
    """A character that the terminal's encoding does not have is spelt out, rather than be a failure."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    sys.exit(main())
