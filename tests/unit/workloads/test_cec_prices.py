"""Purchases: the same ones however they are made, spread over items and prices, each item in one partition."""

import json
from collections import Counter

import pytest

from experiments.workloads.cec_prices import CecPricesSpec
from workloads.cec_prices.input import PADDING, PRICES, prices, records
from workloads.schedule import Schedule

SPEC = CecPricesSpec(stream_seed=7, items=10)
SCHEDULE = Schedule(1_795_173_799_675_000_000, 1000.0, 3)


def test_a_purchase_has_100_bytes_and_is_due_at_its_time():
    found = prices(SPEC, SCHEDULE, 5, 40_005)
    assert found.schema == PRICES
    assert found["position"].to_pylist() == list(range(5, 40_005))
    assert found["at_ns"].to_pylist() == [SCHEDULE.due_ms(p) * 10**6 for p in range(5, 40_005)]
    assert 8 * 4 + len(found["padding"][17].as_py()) == 100


def test_items_and_prices_are_spread_evenly_and_each_item_comes_from_one_partition():
    found = prices(SPEC, SCHEDULE, 0, 60_000)
    items, values = found["item"].to_numpy(), found["price"].to_numpy()
    assert set(zip((items % 3).tolist(), (found["position"].to_numpy() % 3).tolist(), strict=True)) == {
        (0, 0),
        (1, 1),
        (2, 2),
    }
    counts = Counter(items.tolist())
    assert sorted(counts) == list(range(10))
    # Partition 0 has four items, the others three each.
    assert all(abs(counts[item] - 20_000 / (4 if item % 3 == 0 else 3)) < 400 for item in range(10))
    assert (values.min(), values.max()) == (1, 1000)
    assert abs(values.mean() - 500.5) < 6


def test_whoever_has_all_purchases_of_a_block_sells_its_own_items():
    found = prices(SPEC, SCHEDULE, 0, 300, source=2)
    assert set(found["item"].to_pylist()) == {2, 5, 8}


@pytest.mark.parametrize("items", [1, 2])
def test_of_fewer_items_than_partitions_none_is_made_up(items):
    found = prices(CecPricesSpec(items=items), SCHEDULE, 0, 100)
    assert set(found["item"].to_pylist()) == set(range(items))


def test_messages_say_the_same_purchases():
    found = [json.loads(value) for value in records(SPEC, SCHEDULE)(100, 200)]
    made = prices(SPEC, SCHEDULE, 100, 200).select(["item", "price"]).to_pylist()
    assert found == [{"kind": "price", **each, "padding": PADDING} for each in made]


def test_another_seed_gives_other_purchases():
    assert prices(SPEC, SCHEDULE, 0, 9) != prices(SPEC.model_copy(update={"stream_seed": 8}), SCHEDULE, 0, 9)
