"""Operators that emit when a slide ends."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from experiments.errors import BadInput
from testbed.operators import END_OF_TIME_NS, Aggregation, tumbling
from testbed.operators.by_slide import SlideTotals
from tests.unit.testbed.operators.moving_states import moved
from tests.unit.testbed.small_job import batch_of, tuples_in

S = 10**9
GIVEN = pa.schema([(name, pa.int64()) for name in ("at_ns", "road", "lane", "speed")])
BOTH = (Aggregation("total", "sum", "speed"), Aggregation("cars", "count"), Aggregation("best", "max", "speed"))


def opened(by=("road",), where=None):
    found = SlideTotals(tumbling("at_ns", S), by, BOTH, where)
    assert found.schema(GIVEN).names == ["at_ns", *by, "total", "cars", "best"]
    found.open()
    return found


def rows(*given):
    """Rows of a time [s], a road, a lane and a speed."""
    return batch_of(GIVEN, *((round(at * S), *rest) for at, *rest in given))


def test_totals_by_key_come_once_in_the_order_of_keys_when_the_slide_ends():
    operator = opened()
    operator.process(0, rows((0.0, 7, 1, 50), (0.9, 3, 1, 20), (1.0, 7, 1, 1)))
    operator.process(0, rows((0.5, 7, 2, 60)))
    assert tuples_in(operator.advance(S - 1)) == []
    assert tuples_in(operator.advance(S)) == [(S - 1, 3, 20, 1, 20), (S - 1, 7, 110, 2, 60)]
    assert tuples_in(operator.advance(S + 5)) == []
    assert tuples_in(operator.advance(END_OF_TIME_NS)) == [(2 * S - 1, 7, 1, 1, 1)]
    assert operator.states()["slides"].buckets() == []


def test_several_keys_and_only_the_rows_that_are_chosen():
    operator = opened(("road", "lane"), lambda batch: pc.greater(batch.column("speed"), 10))
    operator.process(0, rows((0.0, 7, 2, 50), (0.1, 7, 1, 11), (0.2, 7, 1, 10), (1.5, 7, 1, 10)))
    assert tuples_in(operator.advance(S)) == [(S - 1, 7, 1, 11, 1, 11), (S - 1, 7, 2, 50, 1, 50)]
    assert tuples_in(operator.advance(2 * S)) == []


def test_slides_that_end_at_once_are_emitted_one_by_one():
    operator = opened()
    operator.process(0, rows((2.0, 7, 1, 1), (0.0, 7, 1, 2)))
    assert [(at, total) for at, _, total, *_ in tuples_in(operator.advance(9 * S))] == [(S - 1, 2), (3 * S - 1, 1)]


def test_a_restored_operator_goes_on_where_it_was():
    operator, again = opened(), opened()
    operator.process(0, rows((0.0, 7, 1, 1), (1.5, 7, 1, 2)))
    operator.advance(S)
    for name, state in operator.states().items():
        moved(state.changes(0), again.states()[name])
    assert tuples_in(again.advance(2 * S)) == tuples_in(operator.advance(2 * S)) == [(2 * S - 1, 7, 2, 1, 2)]


def test_a_column_that_is_not_there_is_refused():
    with pytest.raises(BadInput, match="one of the columns"):
        SlideTotals(tumbling("at_ns", S), ("street",), BOTH).schema(GIVEN)
