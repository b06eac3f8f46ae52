"""Which events of Spark's log belong to which batch of a query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

STARTED, STAGE_ENDED, TASK_ENDED = "SparkListenerJobStart", "SparkListenerStageCompleted", "SparkListenerTaskEnd"


class Attempt(NamedTuple):
    """A batch in one life of its query: a batch that a fault cut off is run again in the next one."""

    batch: int
    life: str


def of_query(events: Iterable[dict[str, Any]], query_id: str) -> Iterator[tuple[Attempt, dict[str, Any]]]:
    """The starts of a query's jobs and the ends of their stages and tasks, in their order, each with its attempt.

    A driver that was started again numbers its stages from 0: a stage belongs to the job that named it last.
    """
    attempt_of: dict[int, Attempt | None] = {}
    for event in events:
        if event["Event"] == STARTED:
            attempt = _attempt(event, query_id)
            attempt_of |= {stage["Stage ID"]: attempt for stage in event.get("Stage Infos", ())}
        else:
            attempt = attempt_of.get(_stage(event))
        if attempt is not None:
            yield attempt, event


def _attempt(job: dict[str, Any], query_id: str) -> Attempt | None:
    properties = job.get("Properties") or {}
    if properties.get("sql.streaming.queryId") != query_id:
        return None
    return Attempt(int(properties["streaming.sql.batchId"]), properties["spark.jobGroup.id"])


def _stage(ended: dict[str, Any]) -> int:
    return int(ended["Stage ID"] if ended["Event"] == TASK_ENDED else ended["Stage Info"]["Stage ID"])
