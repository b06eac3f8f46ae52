"""The three streams of NexMark, functions of seed and position: any part can be generated again.

In each 50 events, the first is a person, three are auctions and 46 are bids, as in the public benchmark (Tucker,
Tufte, Papadimos and Maier, 2008, and its generators since). Ids rise with the position, and an event refers only to
persons and auctions that came before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, auto

import numpy as np
import pyarrow as pa

from workloads.nexmark import words
from workloads.nexmark.counters import Bits, below, bits, chosen
from workloads.schedule import Integers, Schedule

CYCLE, AUCTIONS_A_CYCLE = 50, 3
FIRST_BID = 1 + AUCTIONS_A_CYCLE  # a cycle is one person, its auctions, and bids to its end
FIRST_ID, FIRST_CATEGORY, CATEGORIES = 1000, 10, 5
IN_FLIGHT_AUCTIONS, ACTIVE_PERSONS = 100, 1000  # others are not bid on, and do not sell or bid
HOT_EVERY = 100  # the newest person, and the newest auction, whose number is a multiple of this is the hot one
LEISURELY = Schedule(start_ns=0, rate=10_000.0)
PRICE_BITS, FRACTION_BITS = 10, np.uint64(16)
PRICES = np.array([round(100 * 10 ** (6 * i / 2**PRICE_BITS)) for i in range(2**PRICE_BITS + 1)], np.int64)


class NexmarkDraw(IntEnum):
    """What a random number is for: the same position draws another one for each."""

    NAME, PLACE, CARD, PERSON_EXTRA = auto(), auto(), auto(), auto()
    ITEM, START_PRICE, RESERVE, DURATION, SELLER, CATEGORY, AUCTION_EXTRA = (auto() for _ in range(7))
    AUCTION, BIDDER, PRICE, CHANNEL, BID_EXTRA = auto(), auto(), auto(), auto(), auto()


@dataclass(frozen=True)
class EventStream:
    """Which events: their seed, when they are due, and the share of hot items among those that events refer to.

    hot_auctions, hot_bidders   of the bids, this share (0 to 1) is for the hot auction, and by the hot bidder
    hot_sellers                 of the auctions, this share is by the hot seller
    open_at_most_ms             no auction is open for longer
    """

    seed: int = 1
    schedule: Schedule = LEISURELY
    hot_auctions: float = 0.5
    hot_bidders: float = 0.75
    hot_sellers: float = 0.75
    open_at_most_ms: int = 10_000

    @property
    def longest_auction_ms(self) -> int:
        """An auction is open for twice the time in which as many begin as are in flight, at most."""
        turnover_ms = 2000 * IN_FLIGHT_AUCTIONS * CYCLE / AUCTIONS_A_CYCLE / self.schedule.rate
        return min(1 + round(turnover_ms), self.open_at_most_ms)


@dataclass(frozen=True)
class Events:
    """Events by kind, each kind a batch of columns with `position` in the stream; times in ms since the epoch.

    persons   position, id, name, email, credit_card, city, state, date_time, extra
    auctions  position, id, item, description, initial_bid, reserve, date_time, expires, seller, category, extra
    bids      position, auction, bidder, price, channel, url, date_time, extra

    Numbers are int64 (prices in cents), texts dictionary-encoded strings.
    """

    persons: pa.RecordBatch
    auctions: pa.RecordBatch
    bids: pa.RecordBatch


def events(stream: EventStream, start: int, stop: int) -> Events:
    """The events at positions `start` to before `stop`. An event is the same in every range that contains it."""
    return Events(*(events_of(stream, kind, start, stop) for kind in ("persons", "auctions", "bids")))


def events_of(stream: EventStream, kind: str, start: int, stop: int) -> pa.RecordBatch:
    """Those of one kind: persons, auctions or bids, in the columns of `Events`."""
    make, first, end = {
        "persons": (_persons, 0, 1),
        "auctions": (_auctions, 1, FIRST_BID),
        "bids": (_bids, FIRST_BID, CYCLE),
    }[kind]
    positions = np.arange(start, stop, dtype=np.int64)
    place = positions % CYCLE
    return make(stream, positions[(place >= first) & (place < end)])


def _persons(stream: EventStream, positions: Integers) -> pa.RecordBatch:
    def draw(what: NexmarkDraw) -> Bits:
        return bits(stream.seed, what, positions)

    name, place = below(draw(NexmarkDraw.NAME), len(words.NAMES)), below(draw(NexmarkDraw.PLACE), len(words.CITIES))
    return _batch(
        position=positions,
        id=FIRST_ID + positions // CYCLE,
        name=_text(name, words.NAMES),
        email=_text(name, words.ADDRESSES),
        credit_card=10**15 + (draw(NexmarkDraw.CARD) % np.uint64(9 * 10**15)).astype(np.int64),
        city=_text(place, words.CITIES),
        state=_text(place, words.STATES),
        date_time=stream.schedule.all_due_ms(positions),
        extra=_filler(draw(NexmarkDraw.PERSON_EXTRA), words.PERSON_EXTRA),
    )


def _auctions(stream: EventStream, positions: Integers) -> pa.RecordBatch:
    def draw(what: NexmarkDraw) -> Bits:
        return bits(stream.seed, what, positions)

    cycle, place = np.divmod(positions, CYCLE)
    item, initial_bid = below(draw(NexmarkDraw.ITEM), len(words.ITEMS)), _price(draw(NexmarkDraw.START_PRICE))
    due_ms = stream.schedule.all_due_ms(positions)
    return _batch(
        position=positions,
        id=FIRST_ID + cycle * AUCTIONS_A_CYCLE + place - 1,
        item=_text(item, words.ITEMS),
        description=_filler(draw(NexmarkDraw.AUCTION_EXTRA) >> np.uint64(10), words.AUCTION_EXTRA),
        initial_bid=initial_bid,
        reserve=initial_bid + _price(draw(NexmarkDraw.RESERVE)),
        date_time=due_ms,
        expires=due_ms + 1 + below(draw(NexmarkDraw.DURATION), stream.longest_auction_ms),
        seller=_person(draw(NexmarkDraw.SELLER), stream.hot_sellers, cycle, 0),
        category=FIRST_CATEGORY + below(draw(NexmarkDraw.CATEGORY), CATEGORIES),
        extra=_filler(draw(NexmarkDraw.AUCTION_EXTRA), words.AUCTION_EXTRA),
    )


def _bids(stream: EventStream, positions: Integers) -> pa.RecordBatch:
    def draw(what: NexmarkDraw) -> Bits:
        return bits(stream.seed, what, positions)

    cycle, channel = positions // CYCLE, _channel(draw(NexmarkDraw.CHANNEL))
    newest = cycle * AUCTIONS_A_CYCLE + AUCTIONS_A_CYCLE - 1
    return _batch(
        position=positions,
        auction=_item(draw(NexmarkDraw.AUCTION), stream.hot_auctions, newest, IN_FLIGHT_AUCTIONS, 0),
        bidder=_person(draw(NexmarkDraw.BIDDER), stream.hot_bidders, cycle, 1),
        price=_price(draw(NexmarkDraw.PRICE)),
        channel=_text(channel, words.CHANNELS),
        url=_text(channel, words.URLS),
        date_time=stream.schedule.all_due_ms(positions),
        extra=_filler(draw(NexmarkDraw.BID_EXTRA), words.BID_EXTRA),
    )


def _person(draws: Bits, hot_share: float, newest: Integers, next_to_hot: int) -> Integers:
    return _item(draws, hot_share, newest, ACTIVE_PERSONS, next_to_hot)


def _item(draws: Bits, hot_share: float, newest: Integers, alive: int, next_to_hot: int) -> Integers:
    """Ids: the hot one (or one so far beside it) at this share, else any of the newest `alive`."""
    cold = newest - below(draws, np.minimum(newest + 1, alive))
    hot = np.minimum(newest // HOT_EVERY * HOT_EVERY + next_to_hot, newest)
    return FIRST_ID + np.where(chosen(draws, hot_share), hot, cold)


def _price(draws: Bits) -> Integers:
    """Even on a log scale, from 100 to 100,000,000, by a table and the line between its entries."""
    index = (draws >> np.uint64(64 - PRICE_BITS)).astype(np.int64)
    fraction = (draws & np.uint64(2**16 - 1)).astype(np.int64)
    low = PRICES[index]
    return low + ((PRICES[index + 1] - low) * fraction >> np.int64(FRACTION_BITS))


def _channel(draws: Bits) -> Integers:
    """Half of the bids come by a well-known channel."""
    known, other = (below(draws, n) for n in (len(words.WELL_KNOWN_CHANNELS), words.OTHER_CHANNELS))
    return np.where(chosen(draws, 0.5), known, len(words.WELL_KNOWN_CHANNELS) + other)


def _text(index: Integers, texts: pa.Array) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(index.astype(np.int32), texts, safe=False)


def _filler(draws: Bits, texts: pa.Array) -> pa.DictionaryArray:
    return _text(below(draws, len(texts)), texts)


def _batch(**columns: Integers | pa.DictionaryArray) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)
