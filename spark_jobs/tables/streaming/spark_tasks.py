"""The tasks of a query's batches, from Spark's event log: the host of each, and whether it finished."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from results.tables.columns import Row
from spark_jobs.tables.streaming.batches import MS

STARTED, ENDED = "SparkListenerJobStart", "SparkListenerTaskEnd"
OUTPUT_LOST = "Resubmitted"  # told of a task that had ended, when its host was lost: it will be run again


def spark_tasks(events: Iterable[dict[str, Any]], query_id: str, names: Mapping[str, str]) -> list[Row]:
    """One row for each task that was run, in the order in which they ended; `names` has the hosts by their addresses.

    Stages are numbered within their batch, from 0, in the order in which Spark made them.
    """
    batch_of: dict[int, tuple[int, str]] = {}
    ended = []
    for event in events:
        if event["Event"] == STARTED:
            batch_of |= dict(_stages(event, query_id))
        elif event["Stage ID"] in batch_of and event["Task End Reason"]["Reason"] != OUTPUT_LOST:
            ended.append(event)
    numbers = _numbers({event["Stage ID"] for event in ended}, batch_of)
    return [_row(each, batch_of[each["Stage ID"]][0], numbers[each["Stage ID"]], names) for each in ended]


def _stages(event: dict[str, Any], query_id: str) -> Iterator[tuple[int, tuple[int, str]]]:
    """The stages of a job, with the batch and the life of the query that they belong to."""
    properties = event.get("Properties") or {}
    if properties.get("sql.streaming.queryId") == query_id:
        batch = int(properties["streaming.sql.batchId"]), properties["spark.jobGroup.id"]
        yield from ((stage["Stage ID"], batch) for stage in event["Stage Infos"])


def _numbers(stages: set[int], batch_of: Mapping[int, tuple[int, str]]) -> dict[int, int]:
    """Which of its batch's stages each is."""
    seen: dict[tuple[int, str], int] = {}
    numbers = {}
    for stage in sorted(stages):
        numbers[stage] = seen[batch_of[stage]] = seen.get(batch_of[stage], -1) + 1
    return numbers


def _row(event: dict[str, Any], batch: int, stage: int, names: Mapping[str, str]) -> Row:
    told = event["Task Info"]
    return {
        "batch": batch,
        "stage": stage,
        "task": told["Index"],
        "host": names.get(told["Host"], told["Host"]),
        "executor": told["Executor ID"],
        "launched_ns": told["Launch Time"] * MS,
        "ended_ns": told["Finish Time"] * MS,
        "succeeded": event["Task End Reason"]["Reason"] == "Success",
    }
