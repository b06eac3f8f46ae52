"""Which experiments can have their input in Arrow batches; the others are refused in one line."""

import pytest

from experiments import spec
from experiments.errors import BadInput

EXAMPLE = "dataflow-q12"  # 5000 records/s on 2 partitions, a checkpoint every 2 s


@pytest.mark.parametrize(
    ("overrides", "records"),
    [
        (["load.batch_records=1"], 1),
        (["load.batch_records=2048"], 2048),
        (["load={mode: saturating, batch_records: 2048}"], 2048),
        (["load.batch_records=2048", "load.mode=saturating", "load.rate=1"], 2048),
        (["load={mode: sustainable, rate: 1000, batch_records: 800}", "engine.protocol=batch-aligned"], 800),
        (["load={mode: sustainable, rate: 1000, share: 1, batch_records: 1000}"], 1000),
    ],
)
def test_nexmark_on_the_testbed_takes_batches_under_any_load(overrides, records):
    assert spec.load(EXAMPLE, overrides).load.batch_records == records


def test_by_default_each_record_is_a_message():
    assert spec.load(EXAMPLE).load.batch_records is None


@pytest.mark.parametrize(
    ("example", "overrides", "told"),
    [
        ("nexmark-q1", [], "500 is not usable; allowed: left out with engine structured-streaming"),
        ("wordcount", [], "left out with engine structured-streaming: only dataflow reads Arrow batches"),
        ("dataflow-reachability", [], "left out with reachability: only nexmark has its events as Arrow batches"),
        ("dataflow-window-tree", [], "left out with window-tree"),
        ("ppa-top100", [], "left out with top-100"),
        ("ppa-incidents", [], "left out with incidents"),
        ("cec-prices", [], "left out with cec-prices"),
        (EXAMPLE, ["load.rate=499"], "at most 499 at load.rate 499 on 2 partitions"),
        (
            EXAMPLE,
            ["load={mode: sustainable, rate: 499, share: 1, batch_records: 500}"],
            "at most 499 at load.rate 499",
        ),
        (
            EXAMPLE,
            ["load={mode: sustainable, rate: 600, batch_records: 500}"],
            "at most 480 at load.rate 600 and load.share 0.8 on 2 partitions",
        ),
        (EXAMPLE, ["load.rate=0.5"], "left out at load.rate 0.5: a partition is to get a full batch in each"),
        (EXAMPLE, ["load.batch_records=0"], "0 is not usable; allowed: a number of 1 or more"),
        (EXAMPLE, ["load.batch_records=2049"], "2049 is not usable; allowed: a number of 2048 or less"),
        (EXAMPLE, ["load.batch_records=1.5"], "a whole number"),
    ],
)
def test_what_can_have_no_batches_is_named_in_one_line(example, overrides, told):
    with pytest.raises(BadInput) as mistake:
        spec.load(example, ["load.batch_records=500", *overrides])
    assert mistake.value.field == "load.batch_records"
    assert told in str(mistake.value)
    assert "\n" not in str(mistake.value)
