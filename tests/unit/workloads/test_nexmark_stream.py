"""The NexMark streams: proportions, references, hot items, and that any part can be made again by itself."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workloads.nexmark.counters import bits
from workloads.nexmark.messages import messages
from workloads.nexmark.stream import ACTIVE_PERSONS, HOT_EVERY, IN_FLIGHT_AUCTIONS, EventStream, events
from workloads.schedule import Schedule

START_NS = 1_795_173_799_675_000_000
POSITIONS = st.integers(0, 10**12)
STREAM = EventStream(7, Schedule(START_NS, 25_000.0, 4))
MANY = 200_000


def column(batch, name):
    return batch[name].to_numpy()


@pytest.fixture(scope="module")
def many():
    return events(STREAM, 0, MANY)


def creation(batch, ids):
    """Position at which each of these ids came to be."""
    return column(batch, "position")[ids - column(batch, "id")[0]]


@given(POSITIONS, st.integers(0, 300), st.integers(0, 150), st.integers(0, 2**64 - 1))
@settings(max_examples=20, deadline=None)
def test_a_part_is_the_same_whatever_it_was_made_with(start, before, length, seed):
    stream = EventStream(seed, Schedule(START_NS, 12_345.6))
    low = max(0, start - before)
    alone = messages(events(stream, start, start + length))
    assert alone == messages(events(stream, low, start + length + 77))[start - low : start - low + length]
    for place in range(0, length, 7):
        assert messages(events(stream, start + place, start + place + 1)) == alone[place : place + 1]


def test_the_numbers_are_those_of_splitmix64():
    """The published sequence of seed 0 begins with e220a8397b1dcdaf; seed and field choose where ours begins in it."""
    word = 2**64
    start = int(bits(5, 3, np.array([0]))[0])

    def mix(z):
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % word
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % word
        return z ^ (z >> 31)

    gamma = 0x9E3779B97F4A7C15
    assert mix(gamma) == 0xE220A8397B1DCDAF
    key = mix((mix(5) + 3 * gamma) % word)
    assert [mix((key + p * gamma) % word) for p in (0, 1, 10**12)] == bits(5, 3, np.array([0, 1, 10**12])).tolist()
    assert start == mix(key)


def test_of_fifty_events_one_is_a_person_three_are_auctions_and_the_rest_bids(many):
    assert [batch.num_rows for batch in (many.persons, many.auctions, many.bids)] == [
        MANY // 50,
        3 * MANY // 50,
        46 * MANY // 50,
    ]
    positions = np.concatenate([column(batch, "position") for batch in (many.persons, many.auctions, many.bids)])
    assert sorted(positions.tolist()) == list(range(MANY))


@pytest.mark.parametrize(
    ("kind", "field", "of", "alive"),
    [
        ("auctions", "seller", "persons", ACTIVE_PERSONS),
        ("bids", "bidder", "persons", ACTIVE_PERSONS),
        ("bids", "auction", "auctions", IN_FLIGHT_AUCTIONS),
    ],
)
def test_what_an_event_refers_to_exists_already_and_is_not_old(many, kind, field, of, alive):
    batch, target = getattr(many, kind), getattr(many, of)
    created = creation(target, column(batch, field))
    assert (created < column(batch, "position")).all()
    cycle_events = alive if of == "persons" else alive / 3
    hot_age = HOT_EVERY if of == "persons" else HOT_EVERY / 3
    assert (column(batch, "position") - created).max() <= 50 * (max(cycle_events, hot_age) + 1)
    assert len(np.unique(column(batch, field))) > 0.4 * target.num_rows  # the others are cold all their life


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 0.75, 1.0])
@pytest.mark.parametrize(
    ("kind", "field", "option", "per_cycle", "beside", "alive"),
    [
        ("bids", "auction", "hot_auctions", 3, 0, IN_FLIGHT_AUCTIONS),
        ("bids", "bidder", "hot_bidders", 1, 1, ACTIVE_PERSONS),
        ("auctions", "seller", "hot_sellers", 1, 0, ACTIVE_PERSONS),
    ],
)
def test_the_share_of_hot_items(share, kind, field, option, per_cycle, beside, alive):
    """Within five standard deviations of a binomial law, whose chance includes that a cold draw is the hot item."""
    first = 10**6 // 50 * 50
    batch = getattr(events(EventStream(3, **{option: share}), first, first + MANY), kind)
    newest = (column(batch, "position") // 50 + 1) * per_cycle - 1
    hot = 1000 + np.minimum(newest // HOT_EVERY * HOT_EVERY + beside, newest)
    found, n = int((column(batch, field) == hot).sum()), batch.num_rows
    chance = share + (1 - share) / alive
    assert abs(found - n * chance) <= 5 * math.sqrt(n * chance * (1 - chance)) + 1


def test_cold_items_are_even_over_those_alive():
    first = 10**6 // 50 * 50
    bids = events(EventStream(3, hot_auctions=0.0), first, first + MANY).bids
    age = (column(bids, "position") // 50 + 1) * 3 - 1 - (column(bids, "auction") - 1000)
    counts = np.bincount(age, minlength=IN_FLIGHT_AUCTIONS)
    expected = bids.num_rows / IN_FLIGHT_AUCTIONS
    assert len(counts) == IN_FLIGHT_AUCTIONS
    assert ((counts - expected) ** 2 / expected).sum() < 170  # chi square, 99 degrees of freedom: p < 1e-5


def test_values_lie_in_their_ranges(many):
    price, card = column(many.bids, "price"), column(many.persons, "credit_card")
    assert (price.min() >= 100) & (price.max() < 10**8)
    assert np.median(price) == pytest.approx(10**5, rel=0.05)  # half-way on the log scale
    assert ((card >= 10**15) & (card < 10**16)).all()
    assert set(column(many.auctions, "category").tolist()) == {10, 11, 12, 13, 14}
    open_ms = column(many.auctions, "expires") - column(many.auctions, "date_time")
    assert (open_ms.min() >= 1) & (open_ms.max() <= STREAM.longest_auction_ms)
    assert (column(many.auctions, "reserve") > column(many.auctions, "initial_bid")).all()


@given(st.integers(0, 10**9), st.floats(1.0, 1e7))
def test_event_time_is_when_the_record_is_due(position, rate):
    schedule = Schedule(START_NS, rate, 3)
    assert schedule.all_due_ms(np.array([position]))[0] == schedule.due_ms(position)
    made = events(EventStream(1, schedule), position, position + 1)
    (time_ms,) = [column(b, "date_time")[0] for b in (made.persons, made.auctions, made.bids) if b.num_rows]
    assert time_ms == schedule.due_ms(position)


def test_seeds_differ_in_every_field_that_is_drawn(many):
    other = events(EventStream(8, STREAM.schedule), 0, MANY)
    fixed = {"position", "id", "date_time"}
    for kind in ("persons", "auctions", "bids"):
        ours, theirs = getattr(many, kind), getattr(other, kind)
        for name in set(ours.schema.names) - fixed:
            assert ours[name] != theirs[name], name
        assert all(ours[name] == theirs[name] for name in fixed & set(ours.schema.names))


def test_a_message_is_json_with_the_fields_of_its_event(many):
    values = [json.loads(value) for value in messages(many)[:50_000]]
    by_kind = {"person": many.persons, "auction": many.auctions, "bid": many.bids}
    for kind, batch in by_kind.items():
        expected = batch.slice(0, 500).to_pylist()
        found = [value for value in values if value["kind"] == kind][:500]
        assert found == [{"kind": kind, **{k: v for k, v in row.items() if k != "position"}} for row in expected]
    first_of_each = [next(i for i, value in enumerate(values) if value["kind"] == kind) for kind in by_kind]
    assert first_of_each == [0, 1, 4]


def test_no_event_and_one_event_are_ranges_too():
    assert messages(events(STREAM, 5, 5)) == []
    assert len(messages(events(STREAM, 5, 6))) == 1
