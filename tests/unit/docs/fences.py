"""What a page shows between fences."""

from __future__ import annotations

import re


def fenced(page: str, language: str) -> list[list[str]]:
    """The lines of each block of a page that is fenced as this language, in order."""
    return [block.splitlines() for block in re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)]
