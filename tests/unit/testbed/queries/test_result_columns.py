"""Results as messages: made by column, they are to the byte what one would write of each result by itself."""

import json

import numpy as np
import pyarrow as pa
import pytest

from experiments.workloads.catalogue import NexmarkQuery, NexmarkSpec
from testbed.queries import BATCH, as_messages
from testbed.queries.result_columns import _is_printable, escaped, messages, of_rows
from workloads.schedule import NS_PER_MS

ROWS, PARTITIONS, WINDOW_MS = 200, 3, 10_000
TEXTS = ["plain", "", 'with "quotes"', "back\\slash", 'both \\"', "tab\tand\nline", "Zoë", "\x00", "\x7f", "日本", "/"]
DRAW = np.random.default_rng(7)


def numbers():
    return DRAW.integers(0, 10**12, ROWS)


def texts(printable):
    return DRAW.choice([each for each in TEXTS if not printable or (each.isascii() and each.isprintable())], ROWS)


def place(position):
    return f"{position % PARTITIONS}:{position // PARTITIONS}"


def bid(position, at_ns, auction, bidder, euros_milli, extra):
    euros = f"{euros_milli // 1000}.{euros_milli % 1000:03d}"
    value = f'{{"auction":{auction},"bidder":{bidder},"euros":{euros},"extra":{json.dumps(extra)}}}'
    return at_ns // NS_PER_MS, at_ns // NS_PER_MS, place(position), value


def pair(position, position_right, at_ns, at_ns_right, **values):
    due_ms = max(at_ns, at_ns_right) // NS_PER_MS
    return due_ms, due_ms, f"{place(position)},{place(position_right)}", json.dumps(values, separators=(",", ":"))


def q3(id, name, city, state, **rest):
    return pair(**rest, name=name, city=city, state=state, auction=id)


def q8(id, name, seller, **rest):
    return pair(**rest, person=seller, name=name, auction=id)


def count(bidder, window_start_ns, bids):
    start_ms = window_start_ns // NS_PER_MS
    return start_ms, start_ms + WINDOW_MS, str(bidder), f'{{"bids":{bids}}}'


PLACES = ("position", "position_right", "at_ns", "at_ns_right")
CASES = {
    NexmarkQuery.Q1: (bid, ("position", "at_ns", "auction", "bidder", "euros_milli"), ("extra",)),
    NexmarkQuery.Q3: (q3, (*PLACES, "id"), ("name", "city", "state")),
    NexmarkQuery.Q8: (q8, (*PLACES, "id", "seller"), ("name",)),
    NexmarkQuery.Q12: (count, ("bidder", "window_start_ns", "bids"), ()),
}


def one_by_one(rows, batches=()):
    for number, (start_ms, end_ms, key, value) in enumerate(rows):
        head = {"start_ms": start_ms, "end_ms": end_ms, "key": key}
        head |= {BATCH: batches[number]} if len(batches) else {}
        text = json.dumps(head, separators=(",", ":")).removesuffix("}")
        yield f"{start_ms}|{key}", f'{text},"value":{value}}}'


@pytest.mark.parametrize("query", CASES)
@pytest.mark.parametrize("printable", [True, False])
def test_results_by_column_are_those_one_by_one(query, printable):
    row_of, ints, words = CASES[query]
    columns = {name: numbers() for name in ints} | {name: texts(printable) for name in words}
    results = pa.RecordBatch.from_pydict(columns)
    found = list(as_messages(NexmarkSpec(query=query, window_s=WINDOW_MS / 1000), results, PARTITIONS))
    assert found == list(one_by_one(row_of(**row) for row in results.to_pylist()))
    assert len(found) == ROWS


def test_tentative_results_have_each_its_batch():
    rows, batches = [(1, 2, "a", "5"), (3, 4, 'c"', "{}")], [7, 9]
    found = zip(*messages(of_rows(rows), pa.array(batches)), strict=True)
    assert list(found) == list(one_by_one(rows, batches))


def test_no_results_are_no_messages():
    assert messages(of_rows([])) == ([], [])
    schema = pa.schema([(name, pa.int64()) for name in CASES[NexmarkQuery.Q12][1]])
    nothing = pa.RecordBatch.from_pylist([], schema)
    assert not list(as_messages(NexmarkSpec(query=NexmarkQuery.Q12), nothing, PARTITIONS))


def test_texts_are_escaped_as_json_does_it_also_in_a_slice():
    column = pa.array(TEXTS)
    for start in range(len(TEXTS)):
        wanted = [json.dumps(each)[1:-1] for each in TEXTS[start:]]
        assert escaped(column.slice(start)).to_pylist() == wanted
    printable = pa.array(['a"b', "c\\", '\\"'])
    assert escaped(printable).to_pylist() == [json.dumps(each)[1:-1] for each in printable.to_pylist()]


def test_what_a_slice_leaves_out_makes_no_result_a_slow_one():
    texts = pa.array(["abc", "d\n", "efg"])
    found = [_is_printable(texts.slice(*part)) for part in ((0, 1), (1, 1), (2, 1), (0, 3), (0, 0))]
    assert found == [True, False, True, False, True]
