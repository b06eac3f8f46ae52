"""Ranges of messages: consecutive messages of one record each travel and are processed as one batch.

The protocols see no difference. All messages of a range have one piggyback and one watermark, and their numbers follow
each other. A frame that carries a range is cut wherever single messages would be treated differently.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import cast

import pyarrow as pa

from testbed.core.frames import Frame, data_bytes


def cut(frame: Frame, messages: int) -> tuple[Frame, Frame]:
    """The first `messages` messages of a range, and the rest."""
    batch = cast(pa.RecordBatch, frame.batch)
    first = replace(frame, sequence=frame.sequence - frame.messages + messages, batch=batch.slice(0, messages))
    return first, replace(frame, batch=batch.slice(messages))


def message(frame: Frame, index: int) -> Frame:
    """One message of a range."""
    batch = cast(pa.RecordBatch, frame.batch)
    return replace(
        frame, sequence=frame.sequence - frame.messages + index + 1, batch=batch.slice(index, 1), is_range=False
    )


def size_of_messages(frame: Frame) -> int:
    """The bytes of a frame's data if each message of a range travelled by itself, by the size of the first."""
    return data_bytes(message(frame, 0)) * frame.messages if frame.is_range else data_bytes(frame)


def gather(queue: deque[Frame], advances: Callable[[int], bool], most: int) -> Frame:
    """Put at the head of a queue, where a range is, what can be processed at one go, and return it.

    `advances` tells of a watermark whether event time moves on once a message with it is processed. It moves behind the
    first such message, so that one stands by itself. The messages after it that have the same piggyback are taken
    together, up to `most` of them: for a protocol, only the first message with a piggyback can be news.
    """
    head = queue[0]
    if advances(head.watermark_ns):
        if head.messages > 1:
            first, rest = cut(queue.popleft(), 1)
            queue.extendleft((rest, first))
        return queue[0]
    found, messages = [queue.popleft()], head.messages
    while queue and _follows(head, queue[0]) and not advances(queue[0].watermark_ns):
        messages += queue[0].messages
        if messages > most:
            break
        found.append(queue.popleft())
    queue.appendleft(_joined(found))
    return queue[0]


def _follows(head: Frame, frame: Frame) -> bool:
    return frame.is_range and frame.piggyback == head.piggyback


def _joined(frames: list[Frame]) -> Frame:
    """One frame with the messages of these, which follow each other."""
    if len(frames) == 1:
        return frames[0]
    highest_ns = max(frame.watermark_ns for frame in frames)
    return replace(frames[-1], watermark_ns=highest_ns, batch=pa.concat_batches([frame.batch for frame in frames]))
