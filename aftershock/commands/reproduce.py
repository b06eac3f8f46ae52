"""`aftershock reproduce`: rebuild a table or figure of a paper; without an id, list them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aftershock.commands.declare import PASSED, command, show, verdict_code

if TYPE_CHECKING:
    from reproductions.reproduce import Reproduced
    from reproductions.reproduction import Reproduction

MARKS = {"pass": "✓", "fail": "✗", "unknown": "?"}


def add(commands: Any) -> None:
    declared = command(commands, "reproduce", "rebuild a table or figure of a paper, or list them", reproduce)
    declared.add_argument("id", nargs="?", help="such as utilization/fig-04; without it all are listed")
    declared.add_argument("--out", type=Path, metavar="DIR", help="where to write (default: below .aftershock)")
    declared.add_argument("--size", type=int, metavar="N", help="how large; the list says of what")


def reproduce(arguments: argparse.Namespace) -> int:
    from reproductions.catalogue import CATALOGUE
    from reproductions.reproduce import reproduce

    if arguments.id is None:
        listed = [_entry(found) for found in CATALOGUE.values()]
        show(arguments, {"reproductions": listed}, "\n".join(_line(entry) for entry in listed))
        return PASSED
    found = reproduce(arguments.id, arguments.out, arguments.size)
    show(arguments, found.document(), _text(found))
    return verdict_code([row["verdict"] for row in found.verdicts])


def _entry(reproduction: Reproduction) -> dict[str, Any]:
    size = reproduction.size and reproduction.size._asdict()
    return {"id": reproduction.id, "what": reproduction.what, "kind": reproduction.kind.value, "size": size}


def _line(entry: dict[str, Any]) -> str:
    size = entry["size"]
    note = f" [{size['default']} {size['counts']}; the paper: {size['paper']}]" if size else ""
    return f"{entry['id']:22} {entry['what']}{note}"


def _text(found: Reproduced) -> str:
    lines = [f"{found.reproduction.id}: {found.reproduction.what}", ""]
    for row in found.verdicts:
        compared = f"{row['observed'] or '-'}, expected {row['expected']}" if row["expected"] else row["detail"]
        lines.append(f"  {MARKS[row['verdict']]} {row['check']:32} {compared}")
    return "\n".join([*lines, "", *(f"  {kind:9} {path}" for kind, path in found.files.items())])
