"""When the results of an engine were due, and when they could be read from the topic."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass

import numpy as np
from confluent_kafka import Consumer, KafkaException, TopicPartition

from experiments.errors import EnvironmentFailure
from infra.broker import Broker

MOST = 10_000
READING = {"group.id": "side-by-side", "enable.auto.commit": False, "isolation.level": "read_committed"}


@dataclass(frozen=True)
class Timing:
    """Of the results that were due in a window: how many there are, their latency [s], and how it grew.

    behind   by how much of a second it grew in a second, from the first third of the window to the last: the share of
             the load that the engine did not keep up with, if that is small; nan if one of them has no result
    """

    results: int
    p50_s: float
    p99_s: float
    behind: float


class Results:
    """Takes results as a consumer brings them, and knows when each was due and out."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._due_ms: list[int] = []
        self._out_ms: list[float] = []
        self._known: set[tuple[int, str]] = set()
        self.doubled = 0

    @classmethod
    def of_topic(cls, broker: Broker, topic: str, partitions: int) -> Results:
        """The committed results of a topic, all of its partitions from the beginning."""
        consumer = Consumer({**broker.for_librdkafka(), **READING})
        consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        return cls(consumer)

    def __len__(self) -> int:
        return len(self._due_ms)

    def read(self, seconds: float) -> None:
        """Take results for `seconds`, at most `MOST`; raises `EnvironmentFailure` for a message that is no result."""
        found = self._consumer.consume(MOST, seconds)
        now_ms = time.time_ns() / 1e6
        for message in found:
            if message.error() is not None:
                raise KafkaException(message.error())
            place = f"topic {message.topic()}, partition {message.partition()}, offset {message.offset()}"
            self.take(message.value(), now_ms, place)

    def take(self, value: bytes | None, out_ms: float, place: str) -> None:
        """Note a result that could be read at `out_ms`; one that is there already is only counted as `doubled`."""
        try:
            body = json.loads(value or b"")
            start_ms, due_ms, key = int(body["start_ms"]), int(body["end_ms"]), str(body["key"])
        except (ValueError, TypeError, KeyError) as error:
            raise EnvironmentFailure(f"{place} is no result: {value!r:.200}", "look at the engine's output") from error
        if (start_ms, key) in self._known:
            self.doubled += 1
            return
        self._known.add((start_ms, key))
        self._due_ms.append(due_ms)
        self._out_ms.append(out_ms)

    def between(self, begin_ms: float, end_ms: float) -> Timing:
        """What is known of the results that were due in a window."""
        due_ms, out_ms = np.array(self._due_ms, float), np.array(self._out_ms, float)
        inside = (due_ms >= begin_ms) & (due_ms < end_ms)
        due_ms, latency_s = due_ms[inside], (out_ms - due_ms)[inside] / 1e3
        third_ms = (end_ms - begin_ms) / 3
        first, last = latency_s[due_ms < begin_ms + third_ms], latency_s[due_ms >= end_ms - third_ms]
        behind = float("nan")
        if first.size and last.size:
            behind = float(np.median(last) - np.median(first)) / (2 * third_ms / 1e3)
        p50_s, p99_s = np.quantile(latency_s, [0.5, 0.99]).tolist() if latency_s.size else [float("nan")] * 2
        return Timing(len(latency_s), p50_s, p99_s, behind)

    def close(self) -> None:
        """Nothing more is read."""
        self._consumer.close()
