"""The page of the command line."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from aftershock.cli.program import parser
from aftershock.reference.markdown import code, page, table

Row = tuple[str, str, str]
TEXT = """The program is `.venv/bin/aftershock`. Every command but `serve` and `completion` also takes `--json`. It then
writes exactly one JSON document to standard output ([that of a run](run-document.md)); everything else goes to standard
error. Times are in seconds, rates per second. Options cannot be abbreviated."""
FEWEST_ALIKE = 3  # arguments that a command has in common with one before it, to be named only
EXITS = (
    ("0", "done, and every verdict passed; `results show` ends with 0 whatever the verdicts are"),
    (
        "1",
        "a verdict failed or is unknown. `results regress` and `compare --against`: something became worse."
        " `results compare` of runs: the check against eq. 10 failed",
    ),
    ("2", "bad input: one line names the field, its value and what is allowed"),
    ("3", "the environment failed"),
    ("130", "interrupted"),
    ("141", "the reader of the output closed it"),
)


def command_line() -> str:
    """The page as Markdown; a section is a command."""
    exits = "## Exit codes\n\n" + table(("code", "meaning"), EXITS)
    return page("Command line", "aftershock/cli/program.py", TEXT, exits, *_commands(parser(), {}))


def _commands(found: argparse.ArgumentParser, shown: dict[Row, str]) -> Iterator[str]:
    """A section for each command that does something, in the order of declaration; `shown` has what commands had."""
    groups = [each for each in found._actions if isinstance(each, argparse._SubParsersAction)]
    if not groups:
        yield _section(found, shown)
    for group in groups:
        for below in dict.fromkeys(group.choices.values()):
            yield from _commands(below, shown)


def _section(found: argparse.ArgumentParser, shown: dict[Row, str]) -> str:
    rows = [_option(each) for each in found._actions if not {"-h", "--json"} & set(each.option_strings)]
    about = [f"{found.description[0].upper()}{found.description[1:]}."] if found.description else []
    alike = {prog: [row for row in rows if shown.get(row) == prog] for prog in dict.fromkeys(shown.values())}
    as_of = {prog: same for prog, same in alike.items() if len(same) >= FEWEST_ALIKE}
    also = [f"Also, as `{prog}`: {', '.join(name for name, *_ in same)}." for prog, same in as_of.items()]
    rows_here = [row for row in rows if shown.get(row) not in as_of]
    shown |= dict.fromkeys(rows_here, found.prog)
    options = [table(("argument", "default", "meaning"), rows_here)] if rows_here else []
    return "\n\n".join([f"## {found.prog}", *about, *options, *also])


def _option(action: argparse.Action) -> Row:
    is_word = not action.option_strings
    required = action.nargs not in ("?", "*") if is_word else action.required
    default = _default(action)
    return (code(_name(action)), "required" if required else default, _help(action, default))


def _name(action: argparse.Action) -> str:
    value = f"{{{','.join(map(str, action.choices))}}}" if action.choices else action.metavar or action.dest.upper()
    more = " ..." if action.nargs == "+" else ""
    if not action.option_strings:
        return f"{action.metavar or action.dest}{more}"
    return action.option_strings[-1] + (f" {value}{more}" if action.nargs != 0 else "")


def _default(action: argparse.Action) -> str:
    """The default, where a call without the option has one that can be shown."""
    if action.default is None or action.default is False or action.default in ([], argparse.SUPPRESS):
        return ""  # a default of 0 equals False, and is shown
    return code(" ".join(map(str, action.default)) if isinstance(action.default, list | tuple) else action.default)


def _help(action: argparse.Action, default: str) -> str:
    """What the option means, without the default that has a place of its own."""
    told = (action.help or "") % {"default": action.default}
    return told.removesuffix(f"; default {default.strip('`')}") if default else told
