"""What a progress event of Structured Streaming tells about the cost of its micro-batch."""

from __future__ import annotations

from typing import Any, TypeAlias


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


Place: TypeAlias = tuple[str, str]  # a topic and the number of a partition of it, as text


def offsets(progress: dict[str, Any]) -> dict[Place, tuple[int, int]]:
    """By partition of each topic that is read, from which offset to before which the micro-batch read.

    Only Kafka's sources have offsets by topic. Of several that read the same topic, as of a join with itself, the
    first counts.
    """
    found: dict[Place, tuple[int, int]] = {}
    for source in progress["sources"]:
        for topic, ends in _by_topic(source["endOffset"]).items():
            starts = _by_topic(source["startOffset"]).get(topic, {})
            for partition, end in ends.items():
                found.setdefault((topic, partition), (starts.get(partition, 0), end))
    return found


def _by_topic(offset: Any) -> dict[str, dict[str, int]]:
    return {topic: ends for topic, ends in offset.items() if isinstance(ends, dict)} if isinstance(offset, dict) else {}


def records_read(progress: dict[str, Any]) -> int:
    """Records of the input topics in the micro-batch; `numInputRows` counts those twice that a join scans twice."""
    return sum(end - start for start, end in offsets(progress).values())
