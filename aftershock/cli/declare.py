"""Helpers with which commands declare arguments and show results."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from experiments.errors import BadInput
from experiments.wording import instead_of_fraction

PASSED, NOT_ALL_PASSED = 0, 1


class Parser(argparse.ArgumentParser):
    """Says what is wrong with the words of a call in one line; options are written out, so that none is guessed."""

    words: Any = None
    otherwise: str | None = None  # the word that is meant where none of `words` follows

    def __init__(self, *words: Any, **options: Any) -> None:
        super().__init__(*words, **(options | {"allow_abbrev": False}))

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """The arguments as argparse has them, with `otherwise` where no word of the group is given."""
        if self.otherwise and (not args or args[0] not in {*self.words.choices, "-h", "--help"}):
            args = [self.otherwise, *(args or [])]
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Raise `BadInput`; argparse would end the process."""
        raise BadInput("command line", message, f"see `{self.prog} --help`")


def group(commands: Any, name: str, text: str, otherwise: str | None = None) -> Any:
    """Declare a word that further words follow, such as `plan`; `otherwise` is meant where none of them does."""
    declared = commands.add_parser(name, help=text, description=text)
    declared.words = declared.add_subparsers(dest="what", required=True, metavar="WHAT", parser_class=Parser)
    declared.otherwise = otherwise
    return declared.words


def command(commands: Any, name: str, text: str, run: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
    """Declare a command; `run` carries it out and returns the exit code."""
    declared: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    declared.add_argument("--json", action="store_true", help="one JSON document on standard output")
    declared.set_defaults(run=run)
    return declared


def add_overrides(declared: argparse.ArgumentParser) -> None:
    """Give a command that takes an experiment the option `--set`, which can be repeated."""
    declared.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        dest="overrides",
        help="set a field of the experiment, such as load.rate=5000; can be repeated",
    )


def number(text: str) -> float:
    """The number that an option has; the refusal of a fraction such as 1/60 says what to write."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number{instead_of_fraction(text)}") from None


def add_seed(declared: argparse.ArgumentParser) -> None:
    """Give a command the option `--seed`, which it requires."""
    declared.add_argument("--seed", type=int, required=True, help="a whole number; the same seed gives the same result")


def require_seed(seed: int) -> None:
    """Raise `BadInput` for a seed below 0."""
    if seed < 0:
        raise BadInput("--seed", seed, "a whole number, not below 0")


def show(arguments: argparse.Namespace, found: dict[str, Any], text: str) -> None:
    """Print what was found: the document for a program, the text for a person.

    JSON has no number for what is infinite or was not computed: the document has null there.
    """
    print(_as_json(found) if arguments.json else text)


def _as_json(found: dict[str, Any]) -> str:
    try:
        return json.dumps(found, allow_nan=False)
    except ValueError:  # rare: only then is the document, which may be large, looked through
        return json.dumps(_finite(found), allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return list(map(_finite, value))
    return None if isinstance(value, float) and not math.isfinite(value) else value


def verdict_code(verdicts: Iterable[str]) -> int:
    """The exit code of a list of verdicts: an unknown one is no pass."""
    return PASSED if set(verdicts) == {"pass"} else NOT_ALL_PASSED
