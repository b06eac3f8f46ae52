"""The list of runs for pages, which never waits until all runs have been read."""

from __future__ import annotations

import threading

from results.runs.state import RunState
from results.summary import index

READING_S = 0.3  # how long a page waits for runs that were never listed before
READER = "aftershock-index"  # the thread that reads what a page did not wait for


def known_runs(*, with_published: bool = False) -> list[index.IndexRow]:
    """The row of every finished run, newest first; those that are not read yet are read by a thread meanwhile.

    Published ones only if asked for: they are to look at, and no part of this installation's history.
    """
    every = index.rows(READING_S, with_published=with_published)
    if unread_in(every):
        threading.Thread(target=index.complete, name=READER, daemon=True).start()
    return every


def unread_in(rows: list[index.IndexRow]) -> int:
    """How many of these runs are not read yet."""
    return sum(row.state == RunState.UNREAD for row in rows)
