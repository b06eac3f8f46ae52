"""Reads the event logs of Spark's drivers, without trusting them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any, TextIO

from experiments.documents.plain_files import RefusedFile, open_below
from infra.services.spark import EVENT_LOG

LONGEST_LINE = 2**26  # characters of one event; those of a large query have some millions


def spark_events(raw: Path, kinds: Container[str]) -> Iterator[dict[str, Any]]:
    """The events of these kinds in a run's folder of raw logs, of every driver in turn.

    Each life of a driver numbers its stages from 0, and has a log of its own: mostly named by its start, on Kubernetes
    by chance. A driver's host may have put anything there: only regular files of the run's user are read. Files may
    have a second name, as they have while results are computed again; a host can make none that leads out of the folder
    it sees.
    """
    uid = raw.stat().st_uid
    for name in sorted(os.listdir(raw / EVENT_LOG)):
        try:
            log = open_below(raw, f"{EVENT_LOG}/{name}", uid, more_names=True)
        except RefusedFile as refusal:
            print(refusal, file=sys.stderr)
            continue
        with open(log, encoding="utf-8", errors="replace") as file:
            yield from (json.loads(line) for line in _lines(file, f"{EVENT_LOG}/{name}") if _event(line) in kinds)


def _lines(file: TextIO, name: str) -> Iterator[str]:
    """The lines of a log up to the first that is longer than any of Spark's, which would fill the memory.

    A line without an end is left out: its driver was killed while it wrote it.
    """
    while line := file.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            told = f"{name} has a line of more than {LONGEST_LINE:,} characters: it is not read, nor what follows"
            print(told, file=sys.stderr)
            return
        if line.endswith("\n"):
            yield line


def _event(line: str) -> str | None:
    """What a line of an event log tells of, which stands first in it: most lines are long, and not wanted."""
    return next(iter(line.split('"', 4)[3:4]), None)
