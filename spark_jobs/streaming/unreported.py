"""Makes up the reports of micro-batches that Spark has committed, but whose reports died with their driver.

Spark first writes a batch into the commit log of the checkpoint, and tells its listeners later. A driver that is killed
between the two leaves no entry in the journal, and the next driver goes on with the batch after. Without an entry the
batch would count as lost work, and its records as lag.

The checkpoint has the offsets of the batch and when it began. The file in the commit log has the time of the commit.
What else Spark would report is taken from the last report of the query: the time that the batch spent outside of
`addBatch`, and its state.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from journal.event import Event
from journal.events.common import DriverStarted
from journal.events.query import QUERY, BatchCommitted, QueryReady
from journal.reader import events
from journal.writer import Journal
from spark_jobs.streaming.progress import MicroBatch

MS = 1_000_000  # nanoseconds
KNOWN_VERSION = "v1"  # of a file in the log of offsets
NO_OFFSET = "-"
Report: TypeAlias = dict[str, Any]


def record_unreported(checkpoint: Path, path: Path, journal: Journal) -> None:
    """Journal what the driver before this one did not; `path` is that of the journal.

    A checkpoint that cannot be read ends nothing: standard error says why. Nothing is made up before the first report
    of a query, and if the checkpoint is in no folder of this machine.
    """
    try:
        for report in unreported(checkpoint, events(path, QUERY)):
            journal.record(BatchCommitted(report))
    except (OSError, ValueError, LookupError) as error:
        print(f"no report of a batch that was committed: {type(error).__name__}: {error}", file=sys.stderr)


def unreported(checkpoint: Path, journal: Iterable[Event]) -> Iterator[Report]:
    """The reports of the batches that are in the commit log and not in the journal, in order, each `madeUp`."""
    last: Report | None = None
    starts: list[DriverStarted | QueryReady] = []
    for event in journal:
        if isinstance(event, BatchCommitted):
            last = event.progress if MicroBatch.of(event).has_run else last
        elif isinstance(event, DriverStarted | QueryReady):
            starts.append(event)
    if starts and isinstance(starts[-1], DriverStarted):
        starts.pop()  # of the driver that asks, which has run no batch yet
    commits = checkpoint / "commits"
    if last is None or not commits.is_dir() or _id(checkpoint) != last["id"]:
        return
    latest = max((int(each.name) for each in commits.iterdir() if each.name.isdigit()), default=-1)
    for number in range(last["batchId"] + 1, latest + 1):
        last = _report(checkpoint, number, last, [each.at_ns // MS for each in starts])
        yield last


def _id(checkpoint: Path) -> str:
    return str(json.loads((checkpoint / "metadata").read_text(encoding="utf-8"))["id"])


def _report(checkpoint: Path, number: int, before: Report, starts_ms: list[int]) -> Report:
    """A batch that was cut off once and run again has the time of the first attempt in the log of offsets.

    It began when the query did that has committed it. A driver that died before it said that its query was ready had
    at least been started.
    """
    metadata, ends = _offsets(checkpoint, number)
    _, starts = _offsets(checkpoint, number - 1)
    ended_ms = (checkpoint / "commits" / str(number)).stat().st_mtime_ns // MS
    began_ms = max([int(metadata["batchTimestampMs"]), *(each for each in starts_ms if each <= ended_ms)])
    total_ms, usual = max(1, ended_ms - began_ms), before["durationMs"]
    outside_ms = usual["triggerExecution"] - usual.get("addBatch", 0)
    report = before | {
        "batchId": number,
        "timestamp": _iso(began_ms),
        "durationMs": {"triggerExecution": total_ms, "addBatch": max(0, total_ms - outside_ms)},
        "sources": [{"startOffset": start, "endOffset": end} for start, end in zip(starts, ends, strict=True)],
        "madeUp": True,
    }
    if "watermark" in before.get("eventTime", {}):
        report["eventTime"] = {"watermark": _iso(int(metadata["batchWatermarkMs"]))}
    records = MicroBatch.model_validate(report).records_read
    return report | {"numInputRows": records, "processedRowsPerSecond": records / total_ms * 1000}


def _offsets(checkpoint: Path, number: int) -> tuple[dict[str, Any], list[Any]]:
    """What the log of offsets says of a batch: about it, and where each source ended."""
    version, metadata, *ends = (checkpoint / "offsets" / str(number)).read_text(encoding="utf-8").splitlines()
    if version != KNOWN_VERSION:
        raise ValueError(f"offsets of batch {number} have version {version}, and only {KNOWN_VERSION} is known")
    return json.loads(metadata), [None if end == NO_OFFSET else json.loads(end) for end in ends]


def _iso(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
