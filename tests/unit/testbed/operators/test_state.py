"""State: a full copy and the changes after it make the same state again."""

import threading
from itertools import chain

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.errors import BadInput
from testbed.operators.rows import RowState
from testbed.operators.state import PIECE, KeyedState, decode_state, encode_state

SCHEMA = pa.schema([("key", pa.int64()), ("value", pa.int64())])
BUCKETS, KEYS = st.integers(0, 2), st.integers(0, 3)
KEYED = st.one_of(
    st.tuples(st.just("put"), BUCKETS, KEYS, st.integers(0, 99)),
    st.tuples(st.just("remove"), BUCKETS, KEYS),
    st.tuples(st.just("drop"), BUCKETS),
    st.just(("changes",)),
    st.just(("everything",)),
)
ROWS = st.one_of(
    st.tuples(st.just("add"), BUCKETS, st.lists(KEYS, min_size=1, max_size=4)),
    st.tuples(st.just("drop"), BUCKETS),
    st.just(("changes",)),
    st.just(("everything",)),
)


def through_bytes(state, changes):
    """The parts of changes as they come back, one after the other."""
    return list(decode_state(b"".join(encode_state("test.0", piece) for piece in state.pieces(changes))))


def keyed_content(state):
    return {(bucket, key): state.get(bucket, key) for bucket in range(3) for key in range(4)}


@given(st.lists(KEYED, max_size=40))
@settings(max_examples=200, deadline=None)
def test_keyed_state_comes_back_from_its_parts(actions):
    state, model, parts = KeyedState(), {}, []
    for name, *arguments in actions:
        if name in ("changes", "everything"):
            parts = (parts if name == "changes" else []) + [getattr(state, name)()]
            continue
        getattr(state, name)(*arguments)
        bucket, *rest = arguments
        if name == "put":
            model[bucket, rest[0]] = rest[1]
        else:
            gone = [at for at in model if at[0] == bucket and (name == "drop" or at[1] == rest[0])]
            for at in gone:
                del model[at]
    assert {at: value for at, value in keyed_content(state).items() if value is not None} == model
    again = KeyedState()
    for part in [*parts, state.changes()]:  # made bytes of as late as may be
        for piece in through_bytes(state, part):
            again.apply(piece)
    assert keyed_content(again) == keyed_content(state)


def test_changes_hold_only_what_changed():
    state = KeyedState()
    for key in range(1000):
        state.put(0, key, key)
    state.everything()
    state.put(0, 5, "new")
    assert state.changes() == ([], {0: {5: "new"}})
    assert state.changes() == ([], {})


def test_a_copy_does_not_change_with_the_state():
    state = KeyedState()
    state.put(0, 1, "old")
    copies = state.everything()
    state.put(0, 1, "new")
    state.put(0, 2, "more")
    assert copies == ([], {0: {1: "old"}})


@pytest.mark.extended
def test_a_full_copy_is_not_written_at_once():
    """While one piece is pickled no other thread goes on."""
    keyed, rows, count = KeyedState(), RowState("key"), 3 * PIECE + 1
    for bucket in range(2):
        keyed.put_all(bucket, range(count), range(count))
    rows.add(0, batch_of(list(range(count)), 0))
    for state, least in ((keyed, 7), (rows, 5)):
        sizes = [len(encode_state("test.0", piece)) for piece in state.pieces(state.everything())]
        assert len(sizes) >= least
        assert max(sizes) < 2.5 * sum(sizes) / least


def batch_of(keys, start):
    return pa.record_batch({"key": keys, "value": list(range(start, start + len(keys)))}, schema=SCHEMA)


def row_content(state):
    found = {}
    for bucket in range(3):
        positions, rows = state.matches(bucket, [0, 1, 2, 3])
        values = rows.column("value").to_pylist() if rows is not None else []
        found[bucket] = list(zip(positions.tolist(), values, strict=True))
    return found


@given(st.lists(ROWS, max_size=60))
@settings(max_examples=150, deadline=None)
def test_rows_are_found_by_key_and_come_back_from_their_parts(actions):
    state, model, parts = RowState("key"), {bucket: [] for bucket in range(3)}, []
    for i, (name, *arguments) in enumerate(actions):
        if name in ("changes", "everything"):
            parts = (parts if name == "changes" else []) + [through_bytes(state, getattr(state, name)())]
        elif name == "add":
            batch = batch_of(arguments[1], i * 100)
            state.add(arguments[0], batch)
            model[arguments[0]] += zip(arguments[1], batch.column("value").to_pylist(), strict=True)
        else:
            state.drop(*arguments)
            model[arguments[0]] = []
    wanted = {bucket: list(rows) for bucket, rows in model.items()}
    assert row_content(state) == wanted
    again = RowState("key")
    for piece in chain(*parts, through_bytes(state, state.changes())):
        again.apply(piece)
    assert row_content(again) == wanted


def test_rows_that_changed_are_written_once_and_without_what_they_are_a_part_of():
    state, whole = RowState("key"), batch_of(list(range(10_000)), 0)
    for start in range(0, 100, 10):
        state.add(0, whole.slice(start, 10))
        state.add(1, whole.slice(start, 10))
    state.drop(1)
    state.add(1, whole.slice(0, 1))
    changes = state.changes()
    assert len(encode_state("test.0", changes)) < 4000
    dropped, added = changes
    assert dropped == [1]
    assert {bucket: [chunk.num_rows for chunk in chunks] for bucket, chunks in added.items()} == {0: [100], 1: [1]}
    assert state.changes() == ([], {})


def test_many_small_additions_stay_few_chunks():
    state = RowState("key")
    for i in range(500):
        state.add(0, batch_of([i], i))
    assert len(state.everything()[1][0]) <= 20
    _, rows = state.matches(0, [499, 0])
    assert rows.column("value").to_pylist() == [0, 499]


def nested(depth):
    found = None
    for _ in range(depth):
        found = [found]
    return found


@pytest.mark.parametrize(
    "value", [lambda: None, threading.Lock(), nested(100_000)], ids=["function", "lock", "too deep"]
)
def test_a_state_that_cannot_be_serialised_names_its_owner(value):
    state = KeyedState()
    state.put(0, "key", value)
    with pytest.raises(BadInput, match=r"state of count\.3.*pickle"):
        encode_state("count.3", state.everything())
