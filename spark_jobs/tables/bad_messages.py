"""Finds in an error of Spark what a task said of a message that can't be used."""

from __future__ import annotations

import re

from workloads.topics import message_place

BAD_MESSAGE = re.compile(message_place(r"\S+", r"\d+", r"\d+") + r": [^\n]*")
STATE = re.compile(r" SQLSTATE: \w+$")  # Spark ends its own errors with this


def bad_message(error: str) -> str | None:
    """The line that names the message with its place; None of an error that is about something else.

    Spark puts the error of a task among its own words, and the error of a Python worker among the lines of a traceback.
    """
    found = BAD_MESSAGE.search(error)
    return STATE.sub("", found[0].rstrip()) if found else None
