"""Judges published tables again by the checks of today: `aftershock results publish --judge-again`.

The runs of a measured table may be gone while its checks have changed. Table and plot stay as they were published, and
so does what is known of how they were made.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from reproductions.reproduce import find, verdicts_of_stored
from results.publication import Published, publish_verdicts, published_table
from results.verdict import worst


def judge_again(ids: Iterable[str]) -> Published:
    """Judge the published tables of these ids, and publish what the checks come to now.

    Raises `BadInput` for an id without a published table, and `Damaged` for a table that cannot be read, before
    anything is changed.
    """
    return publish_verdicts({id: _judged(id) for id in ids})


def _judged(id: str) -> dict[str, Any]:
    """What a document of verdicts says that follows from the checks and the catalogue."""
    reproduction = find(id)
    verdicts = verdicts_of_stored(reproduction, published_table(id))
    about = {"what": reproduction.what, "kind": reproduction.kind.value}
    return about | {"verdict": worst(str(row["verdict"]) for row in verdicts).value, "verdicts": verdicts}
