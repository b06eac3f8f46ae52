"""Events as the values of Kafka records, with `kind` person, auction or bid."""

from __future__ import annotations

from collections.abc import Callable

from experiments.workloads.catalogue import NexmarkSpec
from workloads.json_records import values
from workloads.nexmark.stream import Events, EventStream, events
from workloads.schedule import Schedule


def records(spec: NexmarkSpec, schedule: Schedule) -> Callable[[int, int], list[bytes]]:
    """The workload's input: values by position, due (and dated) by the schedule."""
    hot = (spec.hot_auctions, spec.hot_bidders, spec.hot_sellers)
    stream = EventStream(spec.stream_seed, schedule, *hot, open_at_most_ms=spec.window_ms)
    return lambda start, stop: messages(events(stream, start, stop))


def messages(made: Events) -> list[bytes]:
    """The values of all events in the order of their positions. None of the texts in `words` needs an escape."""
    return values({"person": made.persons, "auction": made.auctions, "bid": made.bids})
