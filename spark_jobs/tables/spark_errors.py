"""Says in one line why Spark gave up."""

from __future__ import annotations

import re

from workloads.topics import message_place

BAD_MESSAGE = re.compile(message_place(r"\S+", r"\d+", r"\d+") + r": [^\n]*")
STATE = re.compile(r" SQLSTATE: \w+$")  # Spark ends its own errors with this


def in_one_line(error: str) -> str:
    """What an error of Spark says of a message that can't be used, with its place; of any other the first line.

    Spark puts the error of a task among its own words, and those of Python among the lines of a traceback.
    """
    found = BAD_MESSAGE.search(error)
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    return STATE.sub("", found[0].rstrip() if found else next(iter(lines), "no reason given"))
