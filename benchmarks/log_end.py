"""The end of a log, for errors: the log itself is removed with what was made for the benchmark."""

from __future__ import annotations

from pathlib import Path

LENGTH = 600  # characters


def end_of(log: Path) -> str:
    """The last words of a log; says so if there are none."""
    text = log.read_text(encoding="utf-8", errors="replace").strip() if log.exists() else ""
    return text[-LENGTH:] or "without a word"
