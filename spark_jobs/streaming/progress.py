"""What a progress event of Structured Streaming tells about the cost of its micro-batch."""

from __future__ import annotations

from typing import Any


def state_commit_ms(progress: dict[str, Any], side_by_side: int) -> float:
    """Time of the state stores' commits: summed over tasks, divided by the cores that ran them side by side [ms]."""
    return sum(operator["commitTimeMs"] for operator in progress["stateOperators"]) / side_by_side


def checkpoint_ms(progress: dict[str, Any], side_by_side: int) -> float:
    """The checkpoint, c of the utilization model: all that a micro-batch pays once per interval [ms].

    Reading the offsets, planning, offset log and commit log (time of the trigger outside `addBatch`), and the commits
    of the state stores.
    """
    durations = progress["durationMs"]
    outside_ms = durations["triggerExecution"] - durations.get("addBatch", 0)
    return min(outside_ms + state_commit_ms(progress, side_by_side), durations["triggerExecution"])


def offsets(progress: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """By partition of the input topic, from which offset to before which the micro-batch read."""
    source = progress["sources"][0]
    starts, ends = ((next(iter(source[end].values())) if source[end] else {}) for end in ("startOffset", "endOffset"))
    return {partition: (starts.get(partition, 0), end) for partition, end in ends.items()}


def records_read(progress: dict[str, Any]) -> int:
    """Records of the input topic in the micro-batch; `numInputRows` counts those twice that a join scans twice."""
    return sum(end - start for start, end in offsets(progress).values())
