"""`aftershock reproduce`: rebuild tables or figures of a paper; without an id, list them."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aftershock.cli.declare import PASSED, command, show, verdict_code
from experiments.errors import BadInput
from results.verdict import Verdict

if TYPE_CHECKING:
    from reproductions.reproduce import Reproduced
    from reproductions.reproduction import Reproduction

ALL = "all"
KEPT = "nothing is written: there is no new table, and the earlier one stays with its verdicts"
JUDGED_AGAIN = "there is no new table; the earlier one had lost its verdicts, and is judged again"
MARKS = {"pass": "✓", "fail": "✗", "unknown": "?"}


def add(commands: Any) -> None:
    """Declare `aftershock reproduce`."""
    declared = command(commands, "reproduce", "rebuild tables or figures of a paper, or list them", reproduce)
    declared.add_argument(
        "ids", nargs="*", metavar="id", help="an id such as utilization/fig-04, or the word all; default: list the ids"
    )
    declared.add_argument("--out", type=Path, metavar="DIR", help="where to write (default: below .aftershock)")
    declared.add_argument("--size", type=int, metavar="N", help="size of the computation; the list says what it counts")
    declared.add_argument("--no-run", action="store_true", help="use earlier measurements; measure and run nothing")


def reproduce(arguments: argparse.Namespace) -> int:
    """List the reproductions, or rebuild some or all; raises `BadInput` for an id or option that is not usable."""
    if not arguments.ids:
        for option, given in (("out", arguments.out), ("size", arguments.size), ("no-run", arguments.no_run or None)):
            if given is not None:
                raise BadInput(f"--{option}", given, "an id, or all, with it")
        from reproductions.catalogue import CATALOGUE

        listed = [_entry(found) for found in CATALOGUE.values()]
        show(arguments, {"reproductions": listed}, "\n".join(_line(entry) for entry in listed))
        return PASSED
    if arguments.ids == [ALL]:
        return _reproduce_all(arguments)
    return _reproduce_some(arguments)


def _reproduce_some(arguments: argparse.Namespace) -> int:
    """Rebuild those that are named, one after the other, with the runs that they lack."""
    from reproductions.reproduce import find, reproduce

    ids = list(dict.fromkeys(arguments.ids))
    for id in ids:  # all of them before the first is run, which may take an hour
        find(id)
    if arguments.size is not None and len(ids) > 1:
        raise BadInput("--size", arguments.size, "none with several ids: each has a size of its own")

    def rebuilt(id: str) -> Reproduced:
        if not arguments.no_run:
            _measure(id, arguments)
        return reproduce(id, arguments.out, arguments.size)

    if len(ids) == 1:
        found = rebuilt(ids[0])
        show(arguments, found.document(), _text(found))
        return verdict_code([found.verdict])
    return _each(arguments, map(rebuilt, ids))


def _measure(id: str, arguments: argparse.Namespace) -> None:
    from reproductions.reproduce import find, measure_missing

    if find(id).needs:
        from aftershock.airflow.missing_runs import run_missing  # brings Airflow, which what is computed does without

        run_missing(id, arguments.size, arguments.out)
    measure_missing(id, arguments.size, arguments.out)


def _reproduce_all(arguments: argparse.Namespace) -> int:
    """Rebuild everything at its default size; nothing is run for it."""
    from reproductions.catalogue import CATALOGUE
    from reproductions.reproduce import reproduce

    if arguments.size is not None:
        raise BadInput("--size", arguments.size, "none with all: each has a size of its own")
    return _each(arguments, (reproduce(id, arguments.out) for id in CATALOGUE))


def _each(arguments: argparse.Namespace, rebuilt: Iterable[Reproduced]) -> int:
    """Show each result as soon as it is there, and how many there are of each verdict."""
    results = []
    for found in rebuilt:
        results.append(found)
        if not arguments.json:
            print(_text(found), end="\n\n", flush=True)
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
    if found.published_runs:
        lines.append(f"  of its runs, {found.published_runs} published ones are counted, made in another installation")
    if found.is_judged_again:
        lines.append(f"  {JUDGED_AGAIN}")
    files = [f"  {kind:9} {path}" for kind, path in found.files.items()]
    return "\n".join([*lines, "", *(files or [f"  {KEPT}"])])
