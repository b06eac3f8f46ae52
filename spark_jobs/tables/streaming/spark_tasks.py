"""The tasks of a query's batches, from Spark's event log: the host of each, and whether it finished."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from results.tables.columns import Row
from spark_jobs.tables.streaming.batches import MS
from spark_jobs.tables.streaming.query_events import TASK_ENDED, Attempt, of_query

OUTPUT_LOST = "Resubmitted"  # told of a task that had ended, when its host was lost: it will be run again


def spark_tasks(events: Iterable[dict[str, Any]], query_id: str, names: Mapping[str, str]) -> list[Row]:
    """One row for each task that was run, in the order in which they ended; `names` has the hosts by their addresses.

    Stages are numbered within their batch, from 0, in the order in which Spark made them.
    """
    ended = [
        (attempt, event)
        for attempt, event in of_query(events, query_id)
        if event["Event"] == TASK_ENDED and event["Task End Reason"]["Reason"] != OUTPUT_LOST
    ]
    numbers = _numbers((attempt, event["Stage ID"]) for attempt, event in ended)
    return [_row(event, attempt.batch, numbers[attempt, event["Stage ID"]], names) for attempt, event in ended]


def _numbers(stages: Iterable[tuple[Attempt, int]]) -> dict[tuple[Attempt, int], int]:
    """Which of its attempt's stages each is."""
    seen = Counter[Attempt]()
    numbers = {}
    for attempt, stage in sorted(set(stages)):
        numbers[attempt, stage] = seen[attempt]
        seen[attempt] += 1
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
