"""State: a snapshot of any moment restores the state of that moment, with any changes during and after it."""

import threading

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.errors import BadInput
from testbed.operators import keyed_state, layers
from testbed.operators.keyed_columns import KeyedColumns
from testbed.operators.keyed_state import KeyedState
from testbed.operators.rows import RowState
from testbed.operators.state import PIECE, encode_state
from tests.unit.testbed.campaigns import examples
from tests.unit.testbed.operators.moving_states import moved

SCHEMA = pa.schema([("key", pa.int64()), ("value", pa.int64())])
BUCKETS, KEYS, MANY = range(2), range(5), 2.5


def batch_of(keys, start):
    return pa.record_batch({"key": keys, "value": list(range(start, start + len(keys)))}, schema=SCHEMA)


class Keyed:
    """A keyed state, and what it should hold."""

    new = KeyedState

    @staticmethod
    def change(state, model, bucket, keys, value):
        if value % 3 == 0:
            state.remove(bucket, keys[0])
            model.get(bucket, {}).pop(keys[0], None)
        elif value % 3 == 1:
            state.put(bucket, keys[0], value)
            model.setdefault(bucket, {})[keys[0]] = value
        else:
            state.put_all(bucket, keys, [value] * len(keys))
            model.setdefault(bucket, {}).update(dict.fromkeys(keys, value))


class KeyedInPieces(Keyed):
    """The same in pieces of three values, with sets of one key, and copied if there are more than two layers."""

    sizes = ((layers, "PIECE", 3), (layers, "SHARD", 1), (keyed_state, "MOST_LAYERS", 2))


class Rows:
    """Rows by key, and what they should be."""

    @staticmethod
    def new():
        return RowState("key")

    @staticmethod
    def change(state, model, bucket, keys, value):
        state.add(bucket, batch_of(keys, value))
        rows = model.setdefault(bucket, {"key": [], "value": []})
        rows["key"] += keys
        rows["value"] += range(value, value + len(keys))


class Columns:
    """Two numbers for each key, and what they should be."""

    @staticmethod
    def new():
        return KeyedColumns((0, 7), np.int64)

    @staticmethod
    def change(state, model, bucket, keys, value):
        rows = state.rows(bucket, keys)
        held = model.setdefault(bucket, {})
        assert state.numbers(bucket, rows).tolist() == [held.get(key, [0, 7]) for key in keys]
        numbers = np.column_stack((np.arange(len(keys)), np.full(len(keys), value)))
        state.put(bucket, rows, numbers)
        held.update(zip(keys, numbers.tolist(), strict=True))
        assert state.keys(bucket) == list(held)


CHANGE = st.tuples(
    st.sampled_from(BUCKETS),
    st.lists(st.sampled_from(KEYS), min_size=1, max_size=4, unique=True),
    st.integers(0, 99),
)
DROP = st.tuples(st.just("drop"), st.sampled_from(BUCKETS))
TAKE = st.tuples(st.just("take"), st.integers(1, 4))
WRITE = st.tuples(st.just("write"))
BREAK = st.tuples(st.sampled_from(["restore", "restore", "forget"]), st.just(0))
STEPS = st.lists(st.one_of(CHANGE, CHANGE, DROP, TAKE, TAKE, WRITE, BREAK), min_size=20, max_size=50)


def copied(model):
    held = {bucket: content for bucket, content in model.items() if content}
    return {bucket: {at: list(v) if isinstance(v, list) else v for at, v in of.items()} for bucket, of in held.items()}


def drop(state, model, bucket):
    if bucket in state.buckets():
        state.drop(bucket)
        model.pop(bucket, None)


def rebuilt(kind, chain):
    again = kind.new()
    for changes in chain:
        moved(changes, again)
    return again


@pytest.mark.parametrize("kind", [Keyed, KeyedInPieces, Columns, Rows])
@given(history=STEPS)
@settings(max_examples=examples(150), deadline=None)
def test_what_was_taken_is_the_state_of_that_moment(kind, history):
    with pytest.MonkeyPatch.context() as patch:
        for size in getattr(kind, "sizes", ()):
            patch.setattr(*size)
        what_was_taken_is_the_state_of_that_moment(kind, history)


def what_was_taken_is_the_state_of_that_moment(kind, history):
    """Bytes are made of it as late as may be, when all the rest has happened, or at once."""
    state, model, chain, taken = kind.new(), {}, [], []
    for what, *arguments in history:
        if what == "take":
            after = min(len(chain), *arguments)
            chain[after:] = [state.changes(after)]
            taken.append((list(chain), copied(model)))
        elif what == "write" and chain:
            assert rebuilt(kind, chain).content() == taken[-1][1]
        elif what == "restore" and taken:
            chain, model = list(taken[-1][0]), copied(taken[-1][1])
            state = rebuilt(kind, chain)
        elif what == "forget":
            state.forget()
            chain = []
        elif what == "drop":
            drop(state, model, *arguments)
        elif what in BUCKETS:
            kind.change(state, model, what, *arguments)
        assert len(state.sizes) == len(chain)
    assert copied(state.content()) == copied(model)
    for of, then in taken:
        assert rebuilt(kind, of).content() == then


def test_changes_hold_only_what_changed():
    state = KeyedState()
    for key in range(1000):
        state.put(0, key, key)
    assert state.changes(0).size == 1000
    state.put(0, 5, "new")
    state.put(0, 5, "newer")
    assert state.changed == 1
    assert list(state.changes(1).pieces()) == [([], {0: {5: "newer"}})]
    state.put(0, 6, "new")
    assert list(state.changes(1).pieces()) == [([], {0: {5: "newer", 6: "new"}})]
    assert list(state.changes(2).pieces()) == [([], {})]
    assert state.sizes == [1000, 2, 0]
    state.remove(0, 7)
    assert len(list(state.changes(0).pieces())) == 1
    assert state.sizes == [999]


@pytest.mark.parametrize("kind", [Keyed, Columns, Rows])
def test_what_is_gone_before_anything_was_taken_leaves_no_trace(kind):
    """An operator that takes no checkpoints would need more and more memory for it."""
    state = kind.new()
    for bucket in range(100):
        kind.change(state, {}, bucket, [bucket], 1)
        state.drop(bucket)
    assert state.changed == 0
    assert state.changes(0).size == 0
    kind.change(state, {}, 0, [7], 1)
    state.drop(0)
    assert state.changed == 1, "whoever has the state of before must drop it, too"


def test_so_does_a_key_that_is_removed():
    state = KeyedState()
    for _ in range(2):
        for key in range(100):
            state.put(0, key, key)
            state.remove(0, key)
        assert state.changed == 0
        state.changes(0)
        state.forget()


def test_a_state_is_copied_only_if_its_layers_are_not_known_or_too_many(monkeypatch):
    """Layers that are written become one."""
    state = KeyedState()
    monkeypatch.setattr(keyed_state, "MOST_LAYERS", 2)
    state.put_all(0, range(10), range(10))
    for _ in range(5):
        monkeypatch.setattr(keyed_state, "Columns", None)
        state.put_all(0, range(10), range(10))
        list(state.changes(0).pieces())
        assert state.sizes == [10]
    state.put_all(0, range(10), range(10))
    state.changes(0)
    state.put(0, 1, "new")
    with pytest.raises(TypeError):
        state.changes(0)
    monkeypatch.undo()
    state.forget()
    assert moved(state.changes(0), KeyedState()).content() == state.content()


@pytest.mark.extended
def test_a_large_state_is_not_written_at_once():
    """While one piece is pickled no other thread goes on."""
    keyed, rows, count = KeyedState(), RowState("key"), 3 * PIECE + 1
    for bucket in range(2):
        keyed.put_all(bucket, range(count), range(count))
    rows.add(0, batch_of(list(range(count)), 0))
    spans = keyed.changes(0), keyed_again(count).changes(1), rows.changes(0)
    for changes, least in zip(spans, (7, 4, 5), strict=True):
        sizes = [len(encode_state("test.0", piece)) for piece in changes.pieces()]
        assert len(sizes) >= least
        assert max(sizes) < MANY * sum(sizes) / least


def keyed_again(count):
    state = KeyedState()
    state.changes(0)
    state.put_all(0, range(count), range(count))
    return state


@given(st.lists(st.one_of(CHANGE, CHANGE, CHANGE, DROP), max_size=40), st.lists(st.sampled_from(KEYS), max_size=5))
@settings(max_examples=examples(150), deadline=None)
def test_rows_are_found_by_key(changes, keys):
    state, model = RowState("key"), {}
    for what, *arguments in changes:
        if what == "drop":
            drop(state, model, *arguments)
        else:
            Rows.change(state, model, what, *arguments)
    for bucket in BUCKETS:
        positions, rows = state.matches(bucket, keys)
        held = model.get(bucket, {"key": [], "value": []})
        wanted = [
            (position, value)
            for key_of, value in zip(held["key"], held["value"], strict=True)
            for position, key in enumerate(keys)
            if key == key_of
        ]
        found = rows.column("value").to_pylist() if rows is not None else []
        assert list(zip(positions.tolist(), found, strict=True)) == wanted


def test_rows_of_a_key_that_comes_again_in_one_batch_are_found_in_order():
    state = RowState("key")
    state.add(0, batch_of([7, 7, 8], 0))
    state.add(0, batch_of([8, 7], 3))
    positions, rows = state.matches(0, [8, 7, 9, 8])
    wanted = [(1, 0), (1, 1), (0, 2), (3, 2), (0, 3), (3, 3), (1, 4)]
    assert list(zip(positions.tolist(), rows.column("value").to_pylist(), strict=True)) == wanted


def test_rows_that_changed_are_written_once_and_without_what_they_are_a_part_of():
    state, whole = RowState("key"), batch_of(list(range(10_000)), 0)
    state.changes(0)
    for start in range(0, 100, 10):
        state.add(0, whole.slice(start, 10))
        state.add(1, whole.slice(start, 10))
    state.drop(1)
    state.add(1, whole.slice(0, 1))
    changes = state.changes(1)
    pieces = list(changes.pieces())
    assert sum(len(encode_state("test.0", piece)) for piece in pieces) < 10_000
    assert changes.size == 102  # a bucket that was dropped, and the rows
    assert [dropped for dropped, _ in pieces if dropped] == [[1]]
    rows = [(bucket, sum(each.num_rows for each in chunks)) for _, added in pieces for bucket, chunks in added.items()]
    assert {bucket: sum(n for each, n in rows if each == bucket) for bucket in (0, 1)} == {0: 100, 1: 1}
    assert state.changes(2).size == 0


def test_many_small_additions_stay_few_chunks():
    state = RowState("key")
    for i in range(500):
        state.add(0, batch_of([i], i))
    assert len(state.rows(0)) <= 20
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
    (piece,) = state.changes(0).pieces()
    with pytest.raises(BadInput, match=r"state of count\.3.*pickle"):
        encode_state("count.3", piece)
