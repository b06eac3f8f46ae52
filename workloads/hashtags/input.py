"""The input of the queries over hashtags (`incremental`, section 7): tweets, each with one to three hashtags.

The paper emits a crawl of 569,382 tweets with 894,098 hashtags, of which 309,555 are different, again and again. Ours
are drawn from the seed and the position, with as many hashtags a tweet (1.57) in the mean. The paper does not say
how often the crawl has each hashtag. Ours are uneven: the number of a hashtag is the product of two even draws.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum, auto

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from experiments.workloads.hashtags import HashtagsSpec
from workloads.json_records import PLACE, values
from workloads.nexmark.counters import below, bits, chosen
from workloads.schedule import NS_PER_MS, Integers, Schedule

TWEET, MARK = "tweet", "#"
TWEETS = pa.schema([(PLACE, pa.int64()), ("at_ns", pa.int64()), ("text", pa.string())])
MORE = (0.42, 0.15 / 0.42)  # shares of tweets with a second hashtag, and of these with a third
TOTALS = 1_000_000  # totals are modulo this number, so that totals of totals stay within 64 bits


class TweetDraw(IntEnum):
    """What a random number is for; each hashtag of a tweet takes two."""

    HOW_MANY = auto()
    THIRD = auto()
    TAG = auto()


def tweets(spec: HashtagsSpec, schedule: Schedule, start: int, stop: int) -> pa.RecordBatch:
    """The tweets at positions `start` to before `stop`, each a function of the seed and its position.

    at_ns   when it is due [ns], a whole millisecond as in Kafka
    text    its hashtags with `#`, and blanks between them
    """
    positions = np.arange(start, stop, dtype=np.int64)
    at_ns = schedule.all_due_ms(positions) * NS_PER_MS
    columns = [pa.array(positions), pa.array(at_ns), _texts(spec, positions)]
    return pa.RecordBatch.from_arrays(columns, schema=TWEETS)


def records(spec: HashtagsSpec, _schedule: Schedule) -> Callable[[int, int], list[bytes]]:
    """The workload's input: values by position, with the text; when a tweet is due is its Kafka timestamp."""

    def made(start: int, stop: int) -> list[bytes]:
        positions = np.arange(start, stop, dtype=np.int64)
        return values({TWEET: pa.RecordBatch.from_pydict({PLACE: positions, "text": _texts(spec, positions)})})

    return made


def _texts(spec: HashtagsSpec, positions: Integers) -> pa.Array:
    second = chosen(bits(spec.stream_seed, TweetDraw.HOW_MANY, positions), MORE[0])
    third = second & chosen(bits(spec.stream_seed, TweetDraw.THIRD, positions), MORE[1])
    first, *others = (_tags(spec, positions, number) for number in range(3))
    written = [_written(first)]
    written += [
        pc.if_else(pa.array(there), _written(tag), "") for there, tag in zip((second, third), others, strict=True)
    ]
    return pc.utf8_rtrim_whitespace(pc.binary_join_element_wise(*written, " "))


def _tags(spec: HashtagsSpec, positions: Integers, number: int) -> Integers:
    """The number of one hashtag of each tweet, 0 to `hashtags` - 1; low numbers are frequent."""
    one, other = (
        below(bits(spec.stream_seed, TweetDraw.TAG + 2 * number + i, positions), spec.hashtags) for i in (0, 1)
    )
    return one * other // spec.hashtags


def _written(tags: Integers) -> pa.Array:
    return pc.binary_join_element_wise(MARK + "h", pc.cast(pa.array(tags), pa.string()), "")
