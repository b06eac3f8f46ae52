"""`aftershock reproduce`: rebuild a table or figure of a paper; without an id, list them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aftershock.cli.declare import PASSED, command, show, verdict_code
from experiments.errors import BadInput
from results.verdict import Verdict

if TYPE_CHECKING:
    from reproductions.reproduce import Reproduced
    from reproductions.reproduction import Reproduction

MARKS = {"pass": "✓", "fail": "✗", "unknown": "?"}


def add(commands: Any) -> None:
    """Declare `aftershock reproduce`."""
    declared = command(commands, "reproduce", "rebuild a table or figure of a paper, or list them", reproduce)
    declared.add_argument("id", nargs="?", help="such as utilization/fig-04, or all; without it they are listed")
    declared.add_argument("--out", type=Path, metavar="DIR", help="where to write (default: below .aftershock)")
    declared.add_argument("--size", type=int, metavar="N", help="size of the computation; the list says what it counts")
    declared.add_argument(
        "--no-run", action="store_true", help="take what was measured before; measure and run nothing"
    )


def reproduce(arguments: argparse.Namespace) -> int:
    """List the reproductions, or rebuild one or all; raises `BadInput` for an option that needs an id."""
    if arguments.id is None:
        for option, given in (("out", arguments.out), ("size", arguments.size), ("no-run", arguments.no_run or None)):
            if given is not None:
                raise BadInput(f"--{option}", given, "an id, or all, with it")
        from reproductions.catalogue import CATALOGUE

        listed = [_entry(found) for found in CATALOGUE.values()]
        show(arguments, {"reproductions": listed}, "\n".join(_line(entry) for entry in listed))
        return PASSED
    if arguments.id == "all":
        return _reproduce_all(arguments)
    from reproductions.reproduce import find, measure_missing, reproduce

    if find(arguments.id).needs and not arguments.no_run:
        from aftershock.airflow.missing_runs import run_missing  # brings Airflow, which what is computed does without

        run_missing(arguments.id, arguments.size, arguments.out)
    if not arguments.no_run:
        measure_missing(arguments.id, arguments.size, arguments.out)
    found = reproduce(arguments.id, arguments.out, arguments.size)
    show(arguments, found.document(), _text(found))
    return verdict_code([found.verdict])


def _reproduce_all(arguments: argparse.Namespace) -> int:
    """Rebuild everything at its default size, each one's result shown as soon as it is there; nothing is run for it."""
    from reproductions.catalogue import CATALOGUE
    from reproductions.reproduce import reproduce

    if arguments.size is not None:
        raise BadInput("--size", arguments.size, "none with all: each has a size of its own")
    results = []
    for id in CATALOGUE:
        results.append(reproduce(id, arguments.out))
        if not arguments.json:
            print(_text(results[-1]), end="\n\n", flush=True)
    verdicts = [found.verdict for found in results]
    counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in Verdict)
    show(arguments, {"reproductions": [found.document() for found in results]}, f"{len(results)} in all: {counts}")
    return verdict_code(verdicts)


def _entry(reproduction: Reproduction) -> dict[str, Any]:
    size = reproduction.size and reproduction.size._asdict()
    return {"id": reproduction.id, "what": reproduction.what, "kind": reproduction.kind.value, "size": size}


def _line(entry: dict[str, Any]) -> str:
    size = entry["size"]
    note = f" [{size['default']} {size['counts']}; the paper: {size['paper']}]" if size else ""
    return f"{entry['id']:22} {entry['kind']}  {entry['what']}{note}"


def _compared(row: dict[str, Any]) -> str:
    """Observed beside expected; of an unknown verdict also the reason."""
    if not row["expected"]:
        return str(row["detail"])
    compared = f"{row['observed'] or '-'}, expected {row['expected']}"
    return f"{compared}: {row['detail']}" if row["verdict"] == Verdict.UNKNOWN and row["detail"] else compared


def _text(found: Reproduced) -> str:
    lines = [f"{found.reproduction.id}: {found.reproduction.what}", ""]
    for row in found.verdicts:
        lines.append(f"  {MARKS[str(row['verdict'])]} {row['check']:32} {_compared(row)}")
    if (beside := found.published) is not None:
        lines.append(f"  {MARKS[str(beside['verdict'])]} {'beside the published one':32} {_compared(beside)}")
    return "\n".join([*lines, "", *(f"  {kind:9} {path}" for kind, path in found.files.items())])
