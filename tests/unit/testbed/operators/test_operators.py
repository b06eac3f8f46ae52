"""Operators against plain Python, record by record."""

from collections import Counter, defaultdict
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.errors import BadInput
from testbed.operators import (
    END_OF_TIME_NS,
    Aggregate,
    Aggregation,
    Emit,
    Filter,
    Join,
    Map,
    Windows,
    sliding,
    tumbling,
)
from tests.unit.testbed.small_flows import EVENTS, doubled
from tests.unit.testbed.small_job import batch_of, tuples_in

WHAT = tuple(Aggregation(name, name, None if name == "count" else "value") for name in ("count", "sum", "min", "max"))
PLAIN = {"count": len, "sum": sum, "min": min, "max": max}
RECORDS = st.lists(st.tuples(st.integers(0, 3), st.integers(-50, 50), st.integers(-30, 60)), max_size=30)


def opened(operator, *schemas):
    operator.schema(*(schemas or (EVENTS,) * len(operator.keys)))
    operator.open()
    return operator


def windows_of(at_ns, size, slide):
    return [start for start in range(-200, 200, slide) if start <= at_ns < start + size]


def fed(operator, records, port=0, piece=7):
    """What an operator emits for records that come in small batches."""
    return [
        row
        for i in range(0, len(records), piece)
        for row in tuples_in(operator.process(port, batch_of(EVENTS, *records[i : i + piece])))
    ]


def test_map_and_filter():
    batch = batch_of(EVENTS, (1, 10, 0), (2, 20, 0))
    assert tuples_in(opened(Map(doubled)).process(0, batch)) == [(1, 20, 0), (2, 40, 0)]
    assert tuples_in(opened(Filter(lambda b: pc.greater(b.column("value"), 10))).process(0, batch)) == [(2, 20, 0)]


@given(RECORDS)
@settings(max_examples=60, deadline=None)
def test_running_aggregates_emit_each_record_s_aggregate_so_far(records):
    seen, wanted = defaultdict(list), []
    for key, value, _ in records:
        seen[key].append(value)
        wanted.append((key, *(PLAIN[each.name](seen[key]) for each in WHAT)))
    assert fed(opened(Aggregate("key", WHAT)), records) == wanted


@given(RECORDS, st.sampled_from([(20, 20), (20, 10), (30, 10)]))
@settings(max_examples=60, deadline=None)
def test_windows_emit_once_when_they_close(records, shape):
    groups = defaultdict(list)
    for key, value, at_ns in records:
        for start in windows_of(at_ns, *shape):
            groups[start, key].append(value)
    wanted = [(key, start, *(PLAIN[e.name](groups[start, key]) for e in WHAT)) for start, key in sorted(groups)]
    operator = opened(Aggregate("key", WHAT, Windows("at_ns", *shape), Emit.ON_CLOSE))
    assert fed(operator, records) == []
    early = tuples_in(operator.advance(15))
    assert early == [row for row in wanted if row[1] + shape[0] <= 15]
    assert early + tuples_in(operator.advance(END_OF_TIME_NS)) == wanted
    assert operator.advance(END_OF_TIME_NS) is None


@given(RECORDS)
@settings(max_examples=60, deadline=None)
def test_running_windows_count_each_record_in_each_window_that_holds_it(records):
    seen, wanted = Counter(), []
    for key, _, at_ns in records:
        for start in windows_of(at_ns, 20, 10):
            seen[start, key] += 1
            wanted.append((key, start, seen[start, key]))
    operator = opened(Aggregate("key", WHAT[:1], sliding("at_ns", 20, 10)))
    assert fed(operator, records) == wanted
    assert operator.advance(END_OF_TIME_NS) is None
    assert operator.states()["groups"].buckets() == []


@given(RECORDS, RECORDS)
@settings(max_examples=60, deadline=None)
def test_an_incremental_join_emits_every_pair_once(left, right):
    operator = opened(Join("key", "key"))
    found = fed(operator, left[:9]) + fed(operator, right, port=1) + fed(operator, left[9:])
    wanted = Counter((*a, *b[1:]) for a, b in product(left, right) if a[0] == b[0])
    assert Counter(found) == wanted


@given(RECORDS, RECORDS)
@settings(max_examples=60, deadline=None)
def test_a_windowed_join_pairs_what_shares_a_window_and_forgets_it(left, right):
    operator = opened(Join("key", "key", (sliding("at_ns", 20, 10), sliding("at_ns", 20, 10))))
    found = fed(operator, right, port=1) + fed(operator, left)
    wanted = Counter(
        (start, *a, *b[1:])
        for a, b in product(left, right)
        for start in set(windows_of(a[2], 20, 10)) & set(windows_of(b[2], 20, 10))
        if a[0] == b[0]
    )
    assert Counter(found) == wanted
    operator.advance(10)
    assert all(start + 20 > 10 for side in operator.states().values() for start in side.buckets())
    operator.advance(END_OF_TIME_NS)
    assert not any(side.buckets() for side in operator.states().values())


def test_the_columns_of_a_join_have_names_of_their_own():
    schema = Join("key", "key").schema(EVENTS, EVENTS)
    assert schema.names == ["key", "value", "at_ns", "value_right", "at_ns_right"]


def test_windows_that_cannot_be_are_refused():
    with pytest.raises(BadInput, match="size_ns"):
        tumbling("at_ns", 0)
    with pytest.raises(BadInput, match="slide_ns"):
        sliding("at_ns", 20, 15)
    with pytest.raises(BadInput, match="windows"):
        Join("key", "key", (tumbling("at_ns", 10), tumbling("at_ns", 20)))
    with pytest.raises(BadInput, match="function of x"):
        Aggregation("x", "median", "value")
    with pytest.raises(BadInput, match="column of x"):
        Aggregation("x", "sum")
    with pytest.raises(BadInput, match="aggregations"):
        Aggregate("key", ())


def test_text_keys_are_as_good_as_numbers():
    batch = pa.record_batch({"key": ["b", "a", "b"], "value": [1, 2, 3], "at_ns": [0, 0, 0]})
    found = tuples_in(opened(Aggregate("key", WHAT[:2]), batch.schema).process(0, batch))
    assert found == [("b", 1, 1), ("a", 1, 2), ("b", 2, 4)]
    assert np.dtype("int64") == batch.column("value").to_numpy().dtype
