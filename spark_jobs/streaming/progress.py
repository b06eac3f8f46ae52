"""Reads progress reports of Structured Streaming."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from datetime import datetime
from typing import Any, TypeAlias

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from journal.event import Event
from journal.events.query import BatchCommitted

Place: TypeAlias = tuple[str, str]  # a topic and the number of a partition of it, as text


class _SparkReport(BaseModel):
    """Base of what Spark reports, under Spark's own names in JSON; fields that are not stated here are left out."""

    model_config = ConfigDict(frozen=True, strict=True, alias_generator=to_camel)


class StateOperator(_SparkReport):
    """A stateful operator in one micro-batch: time of its commits over all tasks [ms], and the state that it has."""

    commit_time_ms: int
    num_rows_total: int
    memory_used_bytes: int


class SourceProgress(_SparkReport):
    """A source in one micro-batch: from where to where it read, in a form that depends on the source."""

    start_offset: Any = None
    end_offset: Any = None


class MicroBatch(_SparkReport):
    """One micro-batch, as Spark reports it after its commit.

    id                         of the query
    timestamp                  when the trigger fired (ISO 8601, UTC)
    num_input_rows             rows read; a join that scans a source twice counts them twice
    processed_rows_per_second  missing where Spark cannot tell
    duration_ms                by what the time went to [ms]; a trigger that ran no batch lacks `triggerExecution`
    event_time                 has the `watermark` (ISO 8601), if the query has one
    made_up                    whether the report died with its driver, and the next one made it up
    """

    id: str
    batch_id: int
    timestamp: str
    num_input_rows: int
    processed_rows_per_second: float | None = None
    duration_ms: dict[str, int]
    event_time: dict[str, str] = {}
    state_operators: list[StateOperator]
    sources: list[SourceProgress]
    made_up: bool = False

    @classmethod
    def of(cls, event: BatchCommitted) -> MicroBatch:
        """The micro-batch that an event of the journal is about; raises `ValueError` if its report is none."""
        return cls.model_validate(event.progress)

    @property
    def has_run(self) -> bool:
        """Whether the trigger ran a batch."""
        return "triggerExecution" in self.duration_ms

    @property
    def total_ms(self) -> int:
        """How long it took [ms]."""
        return self.duration_ms["triggerExecution"]

    @property
    def watermark_ms(self) -> int | None:
        """The query's watermark [ms since the epoch]; None if it has none."""
        mark = self.event_time.get("watermark")
        return round(datetime.fromisoformat(mark).timestamp() * 1000) if mark else None

    def state_commit_ms(self, side_by_side: int) -> float:
        """Time of the state stores' commits [ms]: summed over tasks, over the cores that ran them side by side."""
        return sum(operator.commit_time_ms for operator in self.state_operators) / side_by_side

    def checkpoint_ms(self, side_by_side: int) -> float:
        """The checkpoint, c of the utilization model: all that a micro-batch pays once per interval [ms].

        Reading the offsets, planning, offset log and commit log (time of the trigger outside `addBatch`), and the
        commits of the state stores.
        """
        outside_ms = self.total_ms - self.duration_ms.get("addBatch", 0)
        return min(outside_ms + self.state_commit_ms(side_by_side), self.total_ms)

    @property
    def offsets(self) -> dict[Place, tuple[int, int]]:
        """By partition of each topic that is read, from which offset to before which the micro-batch read.

        Only Kafka's sources have offsets by topic. If several sources read the same topic, as in a self-join, the first
        one counts.
        """
        found: dict[Place, tuple[int, int]] = {}
        for source in self.sources:
            for topic, ends in _by_topic(source.end_offset).items():
                starts = _by_topic(source.start_offset).get(topic, {})
                for partition, end in ends.items():
                    found.setdefault((topic, partition), (starts.get(partition, 0), end))
        return found

    def offsets_of(self, topics: Container[str]) -> dict[Place, tuple[int, int]]:
        """As `offsets`, of these topics only: an own job may read others beside its input."""
        return {place: span for place, span in self.offsets.items() if place[0] in topics}

    @property
    def records_read(self) -> int:
        """Records of all topics that the query reads in the micro-batch."""
        return sum(end - start for start, end in self.offsets.values())


def micro_batches(journal: Iterable[Event]) -> Iterator[MicroBatch]:
    """The micro-batches that the events of a query's journal are about."""
    return (MicroBatch.of(event) for event in journal if isinstance(event, BatchCommitted))


def _by_topic(offset: Any) -> dict[str, dict[str, int]]:
    return {topic: ends for topic, ends in offset.items() if isinstance(ends, dict)} if isinstance(offset, dict) else {}
