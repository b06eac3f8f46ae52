"""`aftershock completion`: shell completion of commands, options, experiments, runs, workloads and reproductions.

The shell calls the program with what was typed in a variable. Then `offer` answers instead of the command.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from aftershock.cli.declare import PASSED

ASKED = "_ARGCOMPLETE"  # set by the shell that asks
SHELLS = ("bash", "zsh", "fish")
PROGRAM = "aftershock"


def add(commands: Any) -> None:
    """Declare `aftershock completion`."""
    line = 'eval "$(CHECKOUT/.venv/bin/aftershock completion bash)"'
    text = f"print shell code that completes `aftershock`; add `{line}` to ~/.bashrc"
    declared = commands.add_parser("completion", help="print shell code that completes `aftershock`", description=text)
    declared.add_argument("shell", choices=SHELLS, help="your shell")
    declared.set_defaults(run=completion)


def completion(arguments: argparse.Namespace) -> int:
    """Print the shell's code."""
    from argcomplete.shell_integration import shellcode

    print(shellcode([PROGRAM], shell=arguments.shell))
    return PASSED


def offer(parser: argparse.ArgumentParser) -> None:
    """Answer a shell that asks what could come next, and end the process; does nothing if no shell asks."""
    if ASKED not in os.environ:
        return
    import argcomplete

    for command, action in _actions(parser):
        completer = VALUES.get(f"{command} {action.dest}") or VALUES.get(action.dest)
        if completer:
            action.completer = completer  # type: ignore[attr-defined]
    argcomplete.autocomplete(parser)


def _experiments(prefix: str, **_: Any) -> list[str]:
    """The names of the examples, and what lies in the folder."""
    from argcomplete.completers import FilesCompleter

    from experiments import spec

    return [*spec.available(), *FilesCompleter(allowednames=("yaml", "yml"))(prefix)]


def _runs(prefix: str, **_: Any) -> list[str]:
    """The ids of runs, live ones too, by their folders: reading them would keep the shell waiting."""
    from results.runs.home import home

    return [path.name for folder in ("runs", "live") for path in _folders(home() / folder)]


def _readable_runs(prefix: str, **_: Any) -> list[str]:
    """The ids of runs that can be read: finished and published ones."""
    from results.runs.home import home, published_folder

    return [path.name for folder in (home(), published_folder()) for path in _folders(folder / "runs")]


def _folders(folder: Path) -> list[Path]:
    return [path for path in folder.glob("[a-z0-9]*") if path.is_dir()]


def _reproductions(prefix: str, **_: Any) -> list[str]:
    """The ids of the papers' tables and figures, and the word that means all of them."""
    from reproductions.ids import IDS

    return ["all", *IDS]


def _publishable(prefix: str, **_: Any) -> list[str]:
    """What may have a result here: runs, and the papers' tables and figures."""
    from reproductions.ids import IDS

    return [*_runs(prefix), *IDS]


def _workloads(prefix: str, **_: Any) -> list[str]:
    """The first words of workloads; to find those with finished runs would keep the shell waiting."""
    from experiments.workloads.base import WorkloadName

    return [name.value for name in WorkloadName]


# By what an option or argument is called, after its command if several commands have one of that name.
VALUES = {
    "experiment": _experiments,
    "faults faults": _experiments,
    "run_id": _runs,
    "show run_id": _readable_runs,
    "recommend run_id": _readable_runs,
    "compare run_id": _readable_runs,
    "against": _readable_runs,
    "run_ids": _readable_runs,
    "matrix": _workloads,
    "reproduce ids": _reproductions,
    "publish ids": _publishable,
}


def _actions(parser: argparse.ArgumentParser) -> list[tuple[str, argparse.Action]]:
    """The options and arguments of the parser and of all parsers below it, each with the word of its command."""
    found = []
    for action in parser._actions:
        found.append((parser.prog.split()[-1], action))
        if isinstance(action, argparse._SubParsersAction):
            found += [each for below in action.choices.values() for each in _actions(below)]
    return found
