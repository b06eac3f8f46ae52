"""Which receiver a record goes to: always the same one, and evenly."""

import itertools

import numpy as np
import pyarrow as pa
import pytest

from experiments.errors import BadInput
from testbed.core.dataflow.partitioning import rows_by_channel, spread, targets
from testbed.core.frames import FrameKind
from tests.unit.testbed.campaigns import first_and_rest
from tests.unit.testbed.recovery.runs import simulated
from tests.unit.testbed.small_flows import events, laid_out

ROWS = 3000
ANY_COLUMNS = pa.RecordBatch.from_pydict(
    {
        "text": [None if i % 7 == 0 else f"user {i % 50}" for i in range(ROWS)],
        "share": [i / 3 for i in range(ROWS)],
        "path": [[i % 5, i] for i in range(ROWS)],
        "maybe": pa.array([None if i % 3 else i for i in range(ROWS)], pa.int64()),
    }
)


@pytest.mark.parametrize("keys", [pa.array(range(-500, 500)), pa.array([f"user {i}" for i in range(1000)])])
def test_keys_are_spread_evenly_and_always_alike(keys):
    found = targets(keys, 4)
    assert (np.bincount(found, minlength=4) > 150).all()
    assert (targets(keys.take(pa.array([5, 3])), 4) == found[[5, 3]]).all()


def test_a_key_that_is_missing_is_refused():
    with pytest.raises(BadInput, match=r"^key: null is not usable"):
        targets(pa.array([1, None]), 2)


def test_a_batch_is_split_by_key_in_order_and_whole():
    route = next(r for r in laid_out("joined")[0].partitions[0].routes if r.key)
    (batch,) = events(5, batches=1, rows=50)
    parts = rows_by_channel(batch, route)
    assert sum(rows.num_rows for _, rows in parts) == 50
    for channel, rows in parts:
        assert (targets(rows.column("key"), 2) == route.channels.index(channel)).all()
        assert rows.column("value").to_pylist() == sorted(rows.column("value").to_pylist())


@pytest.mark.parametrize("partitions", [2, 3, 5, 16])
@pytest.mark.parametrize("columns", [["share"], ["path"], ANY_COLUMNS.schema.names])
def test_records_without_a_key_spread_evenly(columns, partitions):
    shares = np.bincount(spread(ANY_COLUMNS.select(columns), partitions), minlength=partitions) * partitions / ROWS
    assert ((shares > 0.8) & (shares < 1.2)).all()


def test_records_that_a_key_led_to_one_partition_spread_evenly():
    keys = pa.array(range(8000))
    mine = pa.RecordBatch.from_arrays([keys.filter(pa.array(targets(keys, 4) == 1))], names=["key"])
    assert (np.bincount(spread(mine, 4), minlength=4) > 0.9 * len(mine) / 4).all()


def test_a_record_goes_to_the_same_partition_in_whatever_batch_it_comes():
    whole = spread(ANY_COLUMNS, 5)
    for start, size in ((0, 1), (1, 1), (2, 10), (12, 300), (312, ROWS - 312)):
        part = pa.RecordBatch.from_pylist(ANY_COLUMNS.slice(start, size).to_pylist(), schema=ANY_COLUMNS.schema)
        assert (spread(part, 5) == whole[start : start + size]).all()
    assert len(spread(ANY_COLUMNS.slice(0, 0), 5)) == 0


def test_a_batch_without_a_key_is_split_in_order_and_whole():
    route = laid_out("spread")[0].partitions[0].routes[0]
    (batch,) = events(5, batches=1, rows=50)
    parts = rows_by_channel(batch, route)
    assert len(parts) == len(route.channels) == 3
    values = [rows.column("value").to_pylist() for _, rows in parts]
    assert sorted(itertools.chain(*values)) == batch.column("value").to_pylist()
    assert all(each == sorted(each) for each in values)
    ((channel, rows),) = rows_by_channel(batch.slice(7, 1), route)
    assert rows.column("value").to_pylist()[0] in values[route.channels.index(channel)]


@pytest.mark.parametrize("seeds", first_and_rest(range(1, 4), 1))
def test_a_split_stream_has_the_same_content_under_a_number_in_every_run(seeds):
    def sent(seed):
        simulation = simulated("spread", "passive", seed)
        simulation.run()
        data = {key: each for key, each in simulation.network._contents.items() if each.kind is FrameKind.DATA}
        return {key: each.batch for key, each in data.items()}

    first = sent(0)
    assert len(first) > 20
    assert all(sent(seed) == first for seed in seeds)
