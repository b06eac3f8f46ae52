"""Messages of the input without a broker, and what reads them in place of a thread."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from confluent_kafka import TIMESTAMP_CREATE_TIME

from testbed.runtime.connectors.topic_polls import JsonPoll, Place, Poll

KINDS = ("bids", "auctions", "persons")
PLACE = Place("input", 1, 3, KINDS)


@dataclass(frozen=True)
class Message:
    at: int
    content: bytes | None
    due_ms: int
    kind: int = TIMESTAMP_CREATE_TIME

    def offset(self) -> int:
        return self.at

    def timestamp(self) -> tuple[int, int]:
        return self.kind, self.due_ms

    def value(self) -> bytes | None:
        return self.content


def event(offset: int) -> Message:
    """Every other message is a bid, the others are auctions."""
    kind = "bid" if offset % 2 else "auction"
    text = f'{{"kind":"{kind}","auction":{offset},"bidder":1,"price":7,"id":{offset},"seller":2,"extra":"x"}}'
    return Message(offset, text.encode(), 1000 + offset)


class Topic:
    """Stands in for `TopicReader`: polls of three messages from an offset on."""

    opened = closed = taken = 0
    length = 10_000

    def __init__(self, _broker: object, place: Place, offset: int, end: int | None, _records: int | None) -> None:
        Topic.opened += 1
        self._place, self._offsets = place, iter(range(offset, end or self.length))

    def take(self) -> Poll | None:
        messages = [event(offset) for offset in islice(self._offsets, 3)]
        Topic.taken += len(messages)
        return JsonPoll(self._place, messages[0].at, messages) if messages else None

    def close(self) -> None:
        Topic.closed += 1
