"""Makes values and messages safe to show: one line, short, without control characters."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sized
from collections.abc import Set as AbstractSet
from typing import TypeGuard

LONGEST_SHOWN = 200  # characters of a value
LONGEST_MESSAGE = 2000
MOST_SHOWN = 200  # values in a mapping or list that is shown whole
MOST_DIGITS = 9  # of figures that nearly agree
SMALLEST_PLAIN = 1e-6  # of a figure: smaller ones have an exponent
FRACTION = re.compile(r"\s*([0-9]{1,9})\s*/\s*([0-9]{1,9})\s*")
CONTAINERS = (Mapping, AbstractSet, list, tuple)


def on_one_line(text: str, most: int = LONGEST_MESSAGE) -> str:
    """The text with line ends, escape sequences, bidi marks, half characters and the like spelt out as in Python.

    A long text is cut to its beginning and end.
    """
    if not (text := elided(text, most)).isprintable():
        text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
    return elided(text, most)


def elided(text: str, most: int = LONGEST_SHOWN) -> str:
    """A text that fits a line: a long text is cut to its beginning and end."""
    half = most // 2
    return text if len(text) <= most else f"{text[:half]} ... {text[-half:]}"


def shown(value: object) -> str:
    """A value of any type as a message shows it. A large value is shown by its size only."""
    if is_large(value):
        return f"{'a mapping' if isinstance(value, Mapping) else 'a list'} of {len(value):,}"
    if isinstance(value, str):
        return repr(elided(value))
    try:
        return elided(repr(value))
    except (ValueError, RecursionError):  # a whole number that Python refuses to write out
        return f"a value of type {type(value).__name__} that is too long to show"


def is_large(value: object) -> TypeGuard[Sized]:
    """Whether a value holds more values than are shown, itself again, or lies too deep to tell."""
    if not isinstance(value, CONTAINERS):
        return False
    found, open_ones = 0, [value]
    while open_ones:
        container = open_ones.pop()
        found += len(container)
        if found > MOST_SHOWN:
            return True
        items = container.values() if isinstance(container, Mapping) else container
        open_ones.extend(item for item in items if isinstance(item, CONTAINERS))
    return False


def significant(value: float, digits: int = 3) -> str:
    """A figure to this many significant digits; a larger one to the last digit before the point.

    Only one below a millionth has an exponent.
    """
    rounded = float(f"{value:.{digits}g}")
    if abs(rounded) >= 10**digits:
        return f"{value:,.0f}"
    text = f"{rounded:,.{digits}g}"
    return f"{rounded:.{digits + 5}f}".rstrip("0") if "e-0" in text and abs(value) >= SMALLEST_PLAIN else text


def exact(value: float) -> str:
    """A figure with all of its digits, such as a bound: a value that looks like it must be the bound itself."""
    short = f"{value:g}"
    return short if float(short) == value else f"{value:,}"


def instead_of_fraction(text: str) -> str:
    """What to write instead of a fraction such as 1/60, for the end of a refusal; nothing of any other text."""
    found = FRACTION.fullmatch(text)
    if found is None or not int(found[2]):
        return ""
    return f": write {int(found[1]) / int(found[2]):.6g}"


def told_apart(value: float, *others: float) -> list[str]:
    """A figure and others that it is held against, to three significant digits, or to as many as tell it from them."""
    unequal = [other for other in others if other != value]
    for digits in range(3, MOST_DIGITS + 1):
        if significant(value, digits) not in [significant(other, digits) for other in unequal]:
            break
    return [significant(each, digits) for each in (value, *others)]


def counted(count: int, noun: str) -> str:
    """A number of things: 1 fault, 2 faults, 1,000 faults."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def percent(share: float) -> str:
    """A share as a percentage, to three significant digits."""
    return f"{significant(100 * share)} %"


def signed(change: float) -> str:
    """A change to three significant digits, with its sign."""
    return significant(change) if change < 0 else f"+{significant(change)}"
