"""Markdown helpers for the generated pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def page(title: str, source: str, *parts: str) -> str:
    """A page with a note about where it comes from; `source` is a path from the root of the repository."""
    note = f"`make docs` generates this page from [{source}](../../{source})."
    return "\n\n".join((f"# {title}", note, *(part for part in parts if part))) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; a bar within a cell is escaped."""
    lines = [_row(head), "|" + "---|" * len(head)]
    return "\n".join([*lines, *(_row([cell.replace("|", "\\|") for cell in row]) for row in rows)])


def code(value: object) -> str:
    """The value as it is, in the font of code."""
    return f"`{value}`"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
