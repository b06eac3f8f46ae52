"""Which objects a checkpoint builds on, and that they make the state of the moment when it was taken."""

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.core.checkpoints import Checkpoint, initial_line
from testbed.core.control import NotStored, Restore
from testbed.core.partition.snapshots import Core, Snapshots
from testbed.operators.keyed_columns import KeyedColumns
from testbed.operators.keyed_state import KeyedState
from testbed.operators.rows import RowState
from tests.unit.testbed.campaigns import examples
from tests.unit.testbed.small_flows import laid_out

EPOCH = 1
STEPS = st.one_of(
    st.tuples(st.just("change"), st.integers(0, 1), st.integers(0, 9)),
    st.tuples(st.just("drop"), st.integers(0, 1)),
    st.tuples(st.just("take")),
    st.tuples(st.just("take")),
    st.tuples(st.sampled_from(["take", "lose", "pass over"])),
    st.tuples(st.just("go back"), st.integers(0, 5)),
)


def snapshots_of(changes_per_full):
    layout = laid_out("chain")[0]
    found = Snapshots(layout.partitions[0], changes_per_full)
    found.restore(Restore(EPOCH, initial_line(layout)[0], ()))
    return found


def test_a_checkpoint_never_builds_on_one_that_the_store_refused():
    """The second was lost with the first. When it is refused, too, the full copy after it stands as before."""
    snapshots = snapshots_of(10)

    def taken(number):
        return snapshots.take(Core({}, {}, {}), {}, EPOCH, number, forced=False).checkpoint.state_keys

    first, second = taken(1), taken(2)
    assert second == (*first, second[-1])
    snapshots.on_store_failed(EPOCH, 1)
    third = taken(3)
    assert len(third) == 1
    assert snapshots.on_store_failed(EPOCH, 2) == [NotStored(0, 1, 2)]
    snapshots.on_store_failed(EPOCH, 3)
    assert len(taken(4)) == 1


def empty_states():
    return {"columns": KeyedColumns((0,), np.int64), "values": KeyedState(), "rows": RowState("key")}


def content(states):
    return {name: state.content() for name, state in states.items()}


def change(states, bucket, key):
    rows = states["columns"].rows(bucket, [key])
    states["columns"].put(bucket, rows, states["columns"].numbers(bucket, rows) + 1)
    states["values"].put(bucket, key, (states["values"].get(bucket, key) or 0) + 1)
    states["values"].remove(bucket, (key * 7) % 10)
    states["rows"].add(bucket, pa.record_batch({"key": [key, key], "value": [key, bucket]}))


def drop(states, bucket):
    for state in states.values():
        if bucket in state.buckets():
            state.drop(bucket)


class Store:
    """A partition's states with its checkpoints, which are written when somebody reads them."""

    def __init__(self, changes_per_full):
        self.snapshots, self.states = snapshots_of(changes_per_full), empty_states()
        self.written, self.taken, self.number = {}, [], 0
        self.longest = changes_per_full + 1

    def take(self):
        self.number += 1
        effect = self.snapshots.take(Core({}, {}, {}), self.states, EPOCH, self.number, forced=False)
        self.written |= effect.objects
        assert len(effect.checkpoint.state_keys) <= self.longest
        self.taken.append((effect.checkpoint, content(self.states)))

    def lose(self):
        self.take()
        self.snapshots.on_store_failed(EPOCH, self.number)
        self.taken.pop()

    def pass_over(self):
        self.number += 1
        self.snapshots.pass_over(self.states, self.number)
        assert not any(state.sizes or state.changed for state in self.states.values())

    def go_back(self, steps):
        if self.taken:
            checkpoint, _ = self.taken[-1 - steps % len(self.taken)]
            self.states = self.filled(checkpoint)
            self.snapshots.restore(Restore(EPOCH, checkpoint, ()))

    def filled(self, checkpoint: Checkpoint):
        objects = {key: self.bytes(key) for key in checkpoint.state_keys}
        states = empty_states()
        self.snapshots.fill(Restore(EPOCH, checkpoint, ()), states, objects)
        return states

    def bytes(self, key):
        return b"".join(map(bytes, self.written[key]()))


@given(st.lists(STEPS, min_size=20, max_size=60), st.integers(1, 3))
@settings(max_examples=examples(150), deadline=None)
def test_a_checkpoint_is_the_state_of_its_moment_after_any_past(steps, changes_per_full):
    store = Store(changes_per_full)
    for what, *arguments in steps:
        match what:
            case "change":
                change(store.states, *arguments)
            case "drop":
                drop(store.states, *arguments)
            case "go back":
                store.go_back(*arguments)
            case _:
                getattr(store, what.replace(" ", "_"))()
    for checkpoint, then in store.taken:
        assert content(store.filled(checkpoint)) == then


def test_what_is_written_follows_what_changed_and_not_how_much_there_is():
    """A full copy after every ten checkpoints would write the whole, which has 10,000 keys, fifteen times."""
    store, keys, each = Store(10), 10_000, 10
    columns = store.states["columns"]
    columns.put(0, columns.rows(0, list(range(keys))), np.zeros((keys, 1)))
    sizes = []
    for number in range(160):
        store.snapshots.take(Core({}, {}, {}), store.states, EPOCH, number, forced=False)
        sizes.append(columns.sizes[-1])
        columns.put(0, columns.rows(0, list(range(number * each, (number + 1) * each))), np.ones((each, 1)))
    assert sizes[0] == keys
    assert sizes[1:11] == [each] * 10
    assert sum(sizes[1:]) < keys < max(sizes[1:]) * 16
