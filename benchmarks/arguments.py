"""Types of options: a value that cannot be used is told in one line, before anything is measured."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path


def at_least(least: int) -> Callable[[str], int]:
    """The type of whole numbers from this one on, which is not negative."""

    def parsed(text: str) -> int:
        if text.isascii() and text.isdecimal() and int(text) >= least:
            return int(text)
        raise argparse.ArgumentTypeError(f"{text!r} is not usable; allowed: a whole number, at least {least}")

    return parsed


at_least_one = at_least(1)


def above_zero(text: str) -> float:
    """A finite number above 0."""
    if 0 < (number := _number(text)) < math.inf:
        return number
    raise argparse.ArgumentTypeError(f"{text!r} is not usable; allowed: a number above 0")


def from_0_to_1(text: str) -> float:
    """A number from 0 to 1."""
    if 0 <= (number := _number(text)) <= 1:
        return number
    raise argparse.ArgumentTypeError(f"{text!r} is not usable; allowed: a number from 0 to 1")


def _number(text: str) -> float:
    """What a text stands for; nan if it is no number."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def new_file(text: str) -> Path:
    """A file that can be written: in a folder that exists."""
    path = Path(text)
    if path.parent.is_dir() and not path.is_dir():
        return path
    raise argparse.ArgumentTypeError(f"{text!r} is not usable; allowed: a file in a folder that exists")
