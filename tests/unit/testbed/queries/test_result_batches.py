"""Results as Arrow batches: the same results as those of JSON, in as many messages as needed."""

import pyarrow as pa
import pytest

from experiments.workloads.catalogue import NexmarkQuery, NexmarkSpec
from testbed.queries import BATCH, as_messages, from_batch

ROWS, PARTITIONS = 25, 2
SPEC = NexmarkSpec(query=NexmarkQuery.Q1)


def results(**more: list[int]) -> pa.RecordBatch:
    numbers = range(ROWS)
    given = {name: list(numbers) for name in ("position", "at_ns", "auction", "bidder", "euros_milli")}
    return pa.RecordBatch.from_pydict(given | {"extra": [f"é{number}" for number in numbers]} | more)


def batches(found: pa.RecordBatch, most: int) -> list[bytes]:
    return [value for key, value in as_messages(SPEC, found, PARTITIONS, most) if key is None]


@pytest.mark.parametrize(("most", "sizes"), [(10, [10, 10, 5]), (25, [25]), (2048, [25]), (1, [1] * ROWS)])
def test_messages_have_the_results_in_order_and_no_more_than_allowed(most: int, sizes: list[int]) -> None:
    found = [from_batch(each) for each in batches(results(), most)]
    assert [each.num_rows for each in found] == sizes
    assert pa.concat_batches(found).equals(results())


@pytest.mark.parametrize("more", [{}, {BATCH: [7] * ROWS}])
def test_the_results_of_a_batch_are_the_messages_that_json_would_have(more: dict[str, list[int]]) -> None:
    wanted = list(as_messages(SPEC, results(**more), PARTITIONS))
    unpacked = [from_batch(each) for each in batches(results(**more), 10)]
    assert [pair for each in unpacked for pair in as_messages(SPEC, each, PARTITIONS)] == wanted
    assert len(wanted) == ROWS


def test_a_part_of_a_batch_takes_only_its_own_bytes() -> None:
    """A batch is cut by slices, which share their columns with the whole."""
    (whole,), (part,) = batches(results(), ROWS), batches(results().slice(20), ROWS)
    assert len(part) < len(whole)
    assert from_batch(part).equals(results().slice(20))


def stream(*found: pa.RecordBatch) -> bytes:
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, results().schema) as written:
        for each in found:
            written.write_batch(each)
    return out.getvalue().to_pybytes()


NO_BATCH = {
    "nothing": b"",
    "json": b'{"start_ms":1}',
    "bytes": b"\xff" * 40,
    "none": stream(),
    "two": stream(results(), results()),
    "more": stream(results()) + b"more",
    "another-stream": stream(results()) * 2,
}


@pytest.mark.parametrize("message", NO_BATCH.values(), ids=NO_BATCH)
def test_what_is_no_batch_is_refused(message: bytes) -> None:
    with pytest.raises((pa.ArrowException, OSError)):
        from_batch(message)


def test_no_results_are_no_message() -> None:
    assert batches(results().slice(0, 0), 10) == []
