"""How fast NexMark events are made: by columns, by columns and serialised, and in plain Python one at a time.

Target: 2 million events a second of one core before serialisation, in batches of 65,536. With `-s` the rate by
processor time is printed. The plain version makes the same bids (and only those), so that the two can be held against
each other.
"""

import time
from collections.abc import Callable

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from workloads.nexmark import words
from workloads.nexmark.messages import messages
from workloads.nexmark.stream import PRICES, Events, EventStream, NexmarkDraw, events

STREAM, BATCH, TARGET = EventStream(5), 65_536, 2e6
WORD, GAMMA = 2**64, 0x9E3779B97F4A7C15


def by_columns(start: int) -> Events:
    """A batch of events as the generator draws them: column by column."""
    return events(STREAM, start, start + BATCH)


def serialised(start: int) -> object:
    """A batch of events, each as the message that the broker gets."""
    return messages(events(STREAM, start, start + BATCH))


def plain(start: int) -> list[dict[str, object]]:
    """The bids of a batch in plain Python, one record after the other."""
    return [_bid(p) for p in range(start, start + BATCH) if p % 50 > 3]


def _mix(z: int) -> int:
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % WORD
    return z ^ (z >> 31)


KEYS = {draw: _mix((_mix(STREAM.seed) + draw * GAMMA) % WORD) for draw in NexmarkDraw}


def _bid(position: int) -> dict[str, object]:
    draws = {draw: _mix((position * GAMMA + KEYS[draw]) % WORD) for draw in list(NexmarkDraw)[-5:]}
    cycle = position // 50
    known = draws[NexmarkDraw.CHANNEL] >> 32 < 2**31
    channel = _below(draws[NexmarkDraw.CHANNEL], 4) if known else 4 + _below(draws[NexmarkDraw.CHANNEL], 10_000)
    index, fraction = draws[NexmarkDraw.PRICE] >> 54, draws[NexmarkDraw.PRICE] & 0xFFFF
    low, high = int(PRICES[index]), int(PRICES[index + 1])
    return {
        "position": position,
        "auction": _item(draws[NexmarkDraw.AUCTION], STREAM.hot_auctions, cycle * 3 + 2, 100, 0),
        "bidder": _item(draws[NexmarkDraw.BIDDER], STREAM.hot_bidders, cycle, 1000, 1),
        "price": low + ((high - low) * fraction >> 16),
        "channel": words.CHANNELS[channel].as_py(),
        "url": words.URLS[channel].as_py(),
        "date_time": STREAM.schedule.due_ms(position),
        "extra": words.BID_EXTRA[_below(draws[NexmarkDraw.BID_EXTRA], 1024)].as_py(),
    }


def _item(draw: int, share: float, newest: int, alive: int, beside: int) -> int:
    if draw >> 32 < round(share * 2**32):
        return 1000 + min(newest // 100 * 100 + beside, newest)
    return 1000 + newest - _below(draw, min(newest + 1, alive))


def _below(draw: int, bound: int) -> int:
    return (draw & 0xFFFFFFFF) * bound >> 32


@pytest.mark.parametrize("work", [by_columns, serialised, plain])
def test_events_a_second(benchmark: BenchmarkFixture, work: Callable[[int], object]) -> None:
    rounds = 2 if work is plain else 40
    batches = iter(range(0, BATCH * (rounds + 1), BATCH))
    processor = time.process_time()
    benchmark.pedantic(work, setup=lambda: ((next(batches),), {}), rounds=rounds)
    events_a_second = BATCH * rounds / (time.process_time() - processor)
    benchmark.extra_info["events_a_second"] = round(events_a_second)
    print(f"\n{events_a_second / 1e6:.1f} million events a second of CPU time")
    assert work is not by_columns or events_a_second > TARGET


def test_the_plain_version_makes_the_same_bids(benchmark: BenchmarkFixture) -> None:
    made = benchmark.pedantic(plain, args=(BATCH,), rounds=1)
    assert made == by_columns(BATCH).bids.to_pylist()
