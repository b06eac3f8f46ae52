"""The events of a workload are the same ones, in whatever pieces they are made."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.workloads.cec_prices import CecPricesSpec
from experiments.workloads.hashtags import HashtagsSpec
from experiments.workloads.ppa_queries import Binding, IncidentsSpec, Top100Spec
from experiments.workloads.window_tree import WindowTreeSpec
from workloads.cec_prices.input import prices
from workloads.hashtags.input import tweets
from workloads.incidents.input import events
from workloads.schedule import Schedule
from workloads.top_100.input import requests
from workloads.window_tree.input import tuples

ROADS = {"users": 2000, "segments": 100, "events_per_incident": 2000, "parallelism": (4, 2, 1)}
MADE = {
    "purchases": (prices, CecPricesSpec(stream_seed=7, items=10)),
    "tweets": (tweets, HashtagsSpec(stream_seed=7, hashtags=1000)),
    "tuples": (tuples, WindowTreeSpec(stream_seed=7)),
    **{f"requests, {each.value}": (requests, Top100Spec(stream_seed=7, binding=each)) for each in Binding},
    "reports and incidents": (events, IncidentsSpec(stream_seed=7, **ROADS)),
}
SOURCES, COUNTS = 3, st.integers(0, 300)  # partitions of a topic, unless the workload says how many


@pytest.mark.parametrize("name", MADE)
@given(st.integers(0, 10**9), COUNTS, COUNTS)
def test_the_same_events_in_any_pieces(name, start, first, second):
    make, spec = MADE[name]
    schedule = Schedule(1_795_173_799_675_000_000, 16_000.0, getattr(spec, "sources", SOURCES))
    whole, first_part, second_part = (
        make(spec, schedule, start + begin, start + end).to_pylist()
        for begin, end in ((0, first + second), (0, first), (first, first + second))
    )
    assert whole == first_part + second_part
