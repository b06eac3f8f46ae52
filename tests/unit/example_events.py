"""Events of journals for tests, which state of an event only what they are about."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from experiments.fault_kinds import FaultKind
from journal.codec import Vocabulary
from journal.event import Event
from journal.events.query import BatchCommitted
from journal.events.testbed import Report, RunPhase
from spark_jobs.streaming.progress import MicroBatch

EMPTY = {
    "int": 0,
    "float": 0.0,
    "str": "",
    "bool": False,
    "FaultKind": FaultKind.KILL,
    "RunPhase": RunPhase.RUNNING,
    "tuple[str, ...]": (),
    "tuple[int, ...]": (),
    "tuple[BatchTiming, ...]": (),
    "dict[str, Any]": {},
    "Mapping[str, int]": {},
    "Mapping[str, str]": {},
    "Mapping[str, float]": {},
    "Mapping[str, Mapping[str, float]]": {},
    "Mapping[str, Mapping[str, int]]": {},
    "Mapping[str, PartitionCost]": {},
    "Positions": {},
}  # by the type of a field


def example(kind: type[Event], at_ns: int = 0, /, **given: Any) -> Any:
    """An event of a kind, whose fields that are not given are empty."""
    empty = {field.name: EMPTY.get(str(field.type)) for field in fields(kind) if field.name != "at_ns"}
    return kind(at_ns=at_ns, **{**empty, **given})


def named(vocabulary: Vocabulary[Any], name: str, at_ns: int = 0, /, **given: Any) -> Any:
    """The same for the kind that has this name in a vocabulary."""
    return example(vocabulary.kinds[name], at_ns, **given)


def spark_report(**given: Any) -> dict[str, Any]:
    """What Spark reports of a micro-batch without input, with the given fields in place of its own."""
    empty = {"id": "a-query", "batchId": 0, "timestamp": "2026-11-20T11:23:19.675Z", "numInputRows": 0}
    return {**empty, "durationMs": {}, "stateOperators": [], "sources": [], **given}


def batch_committed(at_ns: int = 0, **given: Any) -> BatchCommitted:
    """The event of a committed micro-batch, by the fields of Spark's report."""
    return BatchCommitted(spark_report(**given), at_ns=at_ns)


def micro_batch(**given: Any) -> MicroBatch:
    """A micro-batch, by the fields of Spark's report."""
    return MicroBatch.model_validate(spark_report(**given))


def report(at_ns: int = 0, **given: Any) -> Report:
    """A report of the testbed's slots."""
    return example(Report, at_ns, **given)
