"""Relative links of a Markdown page, and the anchors that links can name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def prose(page: Path) -> str:
    """The text of a page without its code."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"\n\n(?: {4}.*\n|\n(?= {4}))+", "\n\n", text)
    return re.sub(r"`[^`\n]*`", lambda found: found[0].strip("`").replace("](", ""), text)


def links(page: Path) -> Iterator[str]:
    """Every link to something in the repository, as it stands there."""
    return (link for link in LINK.findall(prose(page)) if not re.match(r"[a-z]+:", link))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub names them: the second of one name has a number."""
    seen: Counter[str] = Counter()
    found = set()
    for heading in HEADING.findall(prose(page)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", plain).strip().replace(" ", "-")
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return found


def broken(page: Path) -> list[str]:
    """The links of a page whose file or anchor is not there."""
    return [link for link in links(page) if not _is_there(page, *link.partition("#")[::2])]


def within(start: Path, clicks: int) -> set[Path]:
    """The pages to which at most so many links lead from a page, one after the other."""
    found = newest = {start.resolve()}
    for _ in range(clicks):
        targets = {(page.parent / link.partition("#")[0]).resolve() for page in newest for link in links(page)}
        newest = {page for page in targets - found if page.suffix == ".md" and page.is_file()}
        found = found | newest
    return found


def _is_there(page: Path, path: str, anchor: str) -> bool:
    target = (page.parent / path).resolve() if path else page
    if not target.exists():
        return False
    return not anchor or (target.suffix == ".md" and anchor in anchors(target))
