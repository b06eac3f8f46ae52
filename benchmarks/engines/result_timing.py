"""When the results of an engine were due, and when they could be read from the topic."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TypeAlias, cast

import numpy as np
from confluent_kafka import Consumer, KafkaException, TopicPartition

from experiments.errors import EnvironmentFailure
from infra.broker import Broker
from workloads.topics import message_place

MOST, LATE_S = 10_000, 0.1
READING = {"group.id": "side-by-side", "enable.auto.commit": False, "isolation.level": "read_committed"}


Place: TypeAlias = tuple[str, int, int]  # topic, partition and offset
Taken: TypeAlias = tuple[bytes | None, float, Place, bool]
"""A message: its value, when it could be read [ms], its place, and whether it may have been there for
longer than `LATE_S`."""


@dataclass(frozen=True)
class Timing:
    """Of the results that were due in a window: how many there are, their latency [s], and how it grew.

    p50_s, p99_s  of all that were due: the latency of one that never came is infinite; nan if there is none
    behind        by how much of a second it grew in a second, from the first third of the window to the last: the share
                  of the load that the engine did not keep up with, if that is small; nan if one of them has no result
    missing       how many never came; None if nobody knows how many were due
    read_late     share of the results that the driver took more than `LATE_S` after its last look, when more may have
                  been there
    """

    results: int
    p50_s: float
    p99_s: float
    behind: float
    missing: int | None = None
    read_late: float = 0.0


class Results:
    """Takes results as a consumer brings them, and knows when each was due and out.

    They are parsed only when they are asked about: the same thread sends the load, which must not wait for that.
    """

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._due_ms: list[int] = []
        self._out_ms: list[float] = []
        self._read_late: list[bool] = []
        self._caught_up_ms = time.time_ns() / 1e6
        self._taken: list[Taken] = []
        self._known: set[tuple[int, str]] = set()
        self._doubled = 0

    @classmethod
    def of_topic(cls, broker: Broker, topic: str, partitions: int) -> Results:
        """The committed results of a topic, all of its partitions from the beginning."""
        consumer = Consumer({**broker.for_librdkafka(), **READING})
        consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        return cls(consumer)

    def __len__(self) -> int:
        self._parse()
        return len(self._known)

    @property
    def doubled(self) -> int:
        """Results that came once more; raises as `between` does."""
        self._parse()
        return self._doubled

    def read(self, seconds: float) -> None:
        """Take results for `seconds`, at most `MOST`."""
        found = self._consumer.consume(MOST, seconds)
        now_ms = time.time_ns() / 1e6
        late = now_ms - self._caught_up_ms > LATE_S * 1e3
        if len(found) < MOST:  # else more may wait
            self._caught_up_ms = now_ms
        for message in found:
            if message.error() is not None:
                raise KafkaException(message.error())
            # Only a message with an error lacks one of these.
            place = cast(Place, (message.topic(), message.partition(), message.offset()))
            self.take((message.value(), now_ms, place, late))

    def take(self, message: Taken) -> None:
        """Keep a message, to look into it later."""
        self._taken.append(message)

    def _parse(self) -> None:
        for value, out_ms, place, late in self._taken:
            try:
                body = json.loads(value or b"")
                start_ms, due_ms, key = int(body["start_ms"]), int(body["end_ms"]), str(body["key"])
            except (ValueError, TypeError, KeyError) as error:
                cause = f"{message_place(*place)} is no result: {value!r:.200}"
                raise EnvironmentFailure(cause, "look at the engine's output") from error
            if (start_ms, key) in self._known:
                self._doubled += 1
                continue
            self._known.add((start_ms, key))
            self._due_ms.append(due_ms)
            self._out_ms.append(out_ms)
            self._read_late.append(late)
        self._taken.clear()

    def between(self, begin_ms: float, end_ms: float, expected: int | None = None) -> Timing:
        """What is known of the results that were due in a window; `expected`: how many these are, if that is known.

        Raises `EnvironmentFailure` for a message that is no result.
        """
        self._parse()
        due_ms, out_ms = np.array(self._due_ms, float), np.array(self._out_ms, float)
        inside = (due_ms >= begin_ms) & (due_ms < end_ms)
        due_ms, latency_s = due_ms[inside], (out_ms - due_ms)[inside] / 1e3
        third_ms = (end_ms - begin_ms) / 3
        first, last = latency_s[due_ms < begin_ms + third_ms], latency_s[due_ms >= end_ms - third_ms]
        behind = float("nan")
        if first.size and last.size:
            behind = float(np.median(last) - np.median(first)) / (2 * third_ms / 1e3)
        missing = None if expected is None else max(0, expected - len(latency_s))
        all_s = np.append(latency_s, np.full(missing or 0, np.inf))
        # A quantile between two results would be nan beside an infinite one: take the later.
        p50_s, p99_s = np.quantile(all_s, [0.5, 0.99], method="higher").tolist() if all_s.size else [float("nan")] * 2
        read_late = float(np.mean(np.array(self._read_late)[inside])) if latency_s.size else 0.0
        return Timing(len(latency_s), p50_s, p99_s, behind, missing, read_late)

    def close(self) -> None:
        """Nothing more is read."""
        self._consumer.close()
