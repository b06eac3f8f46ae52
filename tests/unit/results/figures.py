"""Looks for figures with more than three significant digits in what people read."""

from __future__ import annotations

import re

# A number with decimals, on its own: no part of a name, a clock, an address or a version.
DECIMAL = re.compile(r"(?<![\w.:,-])-?(\d[\d,]*\.\d+)(?![\w:]|\.\d)")


def too_precise(text: str) -> list[str]:
    """The figures of a text that have decimals beyond the third significant digit."""
    return [figure for figure in DECIMAL.findall(text) if len(re.sub(r"[.,]", "", figure).lstrip("0")) > 3]
