"""What the oracle of NexMark keeps of the events that a query reads."""

import pytest

from experiments.workloads.catalogue import NexmarkQuery as Q
from workloads.nexmark.oracle import SQL, columns_in


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        (Q.Q1, {"bid": ["auction", "bidder", "price", "extra"]}),
        (Q.Q3, {"person": ["id", "name", "city", "state"], "auction": ["id", "seller", "category"]}),
        (Q.Q4, {"auction": ["id", "expires", "seller", "category"], "bid": ["auction", "bidder", "price"]}),
        (Q.Q8, {"person": ["id", "name"], "auction": ["id", "seller"]}),
    ],
)
def test_a_query_is_given_the_kinds_and_fields_that_it_names(query, columns):
    """The longest fields of a bid, which no join reads, would be most of what is kept for it."""
    assert columns_in(SQL[query]) == columns
