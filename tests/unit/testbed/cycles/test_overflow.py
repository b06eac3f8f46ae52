"""What returns on a cycle leaves in order whatever the store does, with little of it in memory."""

from collections import deque

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.core.effects import Discard, Fetch, Spill
from testbed.core.frames import Frame, FrameKind, decode_log
from testbed.core.partition.overflow import Overflow
from testbed.core.segments import held_bytes
from tests.unit.testbed.campaigns import examples

SCHEMA = pa.schema([("key", pa.int64())])
BOUND, CHANNELS = 40_000, 2


def frame(channel, sequence, rows=50):
    batch = pa.record_batch({"key": np.arange(rows) + sequence}, schema=SCHEMA)
    return Frame(FrameKind.DATA, 1, channel, sequence, 0, b"piggyback", batch)


class Waiting:
    """What waits on both channels, beside a store that answers when it is told to."""

    def __init__(self, most_bytes=BOUND):
        self.asked, self.objects = deque(), {}
        self.overflow = Overflow(range(CHANNELS), most_bytes, self.asked)
        self.overflow.restore("a.0/waiting-{}-1")
        self.upcoming = [deque() for _ in range(CHANNELS)]
        self.added, self.left = [0] * CHANNELS, [0] * CHANNELS

    def add(self, channel, rows=50):
        self.added[channel] += 1
        self.overflow.add(self.upcoming[channel], frame(channel, self.added[channel], rows))

    def take(self, channel):
        """What is next leaves, if it is in memory; it has the next number."""
        upcoming = self.upcoming[channel]
        if not upcoming and not self.overflow.bring(channel, upcoming):
            return False
        gone = upcoming.popleft()
        self.left[channel] += 1
        assert gone == frame(channel, self.left[channel], gone.rows)
        return True

    def answer(self, refuses=False):
        """The store does the first thing that it was asked for."""
        match self.asked.popleft():
            case Spill(key) if refuses:
                self.overflow.on_refused(key)
            case Spill(key, content):
                self.objects[key] = b"".join(map(bytes, content()))
                self.overflow.on_spilled(key)
            case Fetch(key):
                self.overflow.on_fetched(key, decode_log(self.objects[key], [SCHEMA] * CHANNELS))
            case Discard(keys):
                for key in keys:
                    self.objects.pop(key, None)

    def answer_all(self):
        while self.asked:
            self.answer()

    def drain(self):
        for channel in range(CHANNELS):
            while self.left[channel] < self.added[channel]:
                if not self.take(channel):
                    self.answer_all()

    @property
    def held(self):
        """About how much is in memory [bytes]."""
        segments = (segment.frames or () for of in self.overflow._segments.values() for segment in of)
        return sum(held_bytes(each) for frames in (*self.upcoming, *segments) for each in frames)


def test_memory_is_bounded_while_a_receiver_does_not_get_through():
    waiting, most, all_bytes = Waiting(), 0, 0
    for _ in range(400):
        for channel in range(CHANNELS):
            waiting.add(channel)
            all_bytes += held_bytes(frame(channel, 1))
        waiting.answer_all()
        most = max(most, waiting.held)
    assert all_bytes > 10 * BOUND
    assert BOUND / 4 < most <= BOUND
    waiting.drain()
    waiting.answer_all()
    assert (waiting.overflow.empty, waiting.objects, waiting.overflow.keys) == (True, {}, frozenset())


def test_what_fits_into_memory_never_goes_to_the_store():
    waiting = Waiting()
    for _ in range(200):
        for _ in range(5):
            waiting.add(0)
        for _ in range(5):
            assert waiting.take(0)
    assert waiting.overflow.empty
    assert not waiting.asked


def test_a_store_that_refuses_is_asked_again_and_stops_the_operator_until_it_takes():
    waiting = Waiting()
    while not waiting.overflow.overfull:
        waiting.add(0)
        while waiting.asked:
            waiting.answer(refuses=True)
    assert waiting.held <= BOUND
    waiting.add(0)
    assert not waiting.asked
    waiting.overflow.retry()
    assert waiting.asked
    waiting.answer_all()
    assert not waiting.overflow.overfull
    waiting.drain()


def test_what_leaves_from_memory_while_the_store_writes_it_is_deleted_there():
    waiting = Waiting()
    while not waiting.asked:
        waiting.add(0)
    waiting.drain()
    waiting.answer_all()
    assert (waiting.objects, waiting.overflow.overfull) == ({}, False)


def test_an_answer_to_an_earlier_life_counts_no_more():
    waiting = Waiting()
    while not waiting.overflow.overfull:
        waiting.add(0)
    keys = [each.key for each in waiting.asked]
    waiting.overflow.restore("a.0/waiting-{}-2")
    for key in keys:
        waiting.overflow.on_spilled(key)
        waiting.overflow.on_refused(key)
        assert waiting.overflow.on_fetched(key, []) is None
    assert (waiting.overflow.empty, waiting.overflow.overfull) == (True, False)


MOVES = st.one_of(
    st.tuples(st.just("add"), st.integers(0, CHANNELS - 1), st.integers(1, 2000)),
    st.tuples(st.just("take"), st.integers(0, CHANNELS - 1)),
    st.tuples(st.just("answer"), st.booleans()),
    st.tuples(st.just("retry")),
)


@settings(max_examples=examples(400), deadline=None)
@given(st.lists(MOVES, max_size=150), st.sampled_from([1, 4000, BOUND]))
def test_any_moves_keep_the_order_and_the_bound(moves, most_bytes):
    waiting, largest = Waiting(most_bytes), 0
    for name, *arguments in moves:
        if name == "add" and not waiting.overflow.overfull:
            waiting.add(*arguments)
            largest = max(largest, held_bytes(frame(0, 1, arguments[1])))
        elif name == "take":
            waiting.take(*arguments)
        elif name == "answer" and waiting.asked:
            waiting.answer(*arguments)
        elif name == "retry":
            waiting.overflow.retry()
        assert waiting.held <= most_bytes + (2 * CHANNELS + 1) * largest
    waiting.overflow.retry()
    waiting.drain()
    waiting.answer_all()
    assert (waiting.left, waiting.objects, waiting.overflow.empty) == (waiting.added, {}, True)
