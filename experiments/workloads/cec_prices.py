"""The spec of the average prices of `cec`, section IV, for the testbed: count windows over the records of an item."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from experiments.workloads.base import OUTPUT, Workload, WorkloadName

MOST_PRICE = 1000  # prices are 1 to so much


class CecPricesSpec(Workload):
    """The average price of every `window_records` purchases of an item.

    The paper has windows of 1 and of 1,000 on 2 items, and windows of 10 on 100,000 items with a filter upstream.
    """

    name: Literal[WorkloadName.CEC_PRICES] = WorkloadName.CEC_PRICES
    items: Annotated[int, Field(ge=1, le=2**31, description="cec-prices: how many different items there are")] = 100_000
    window_records: Annotated[
        int, Field(ge=1, le=1_000_000, description="cec-prices: number of purchases of one item in a window")
    ] = 10
    least_price: Annotated[
        int,
        Field(
            ge=0,
            le=MOST_PRICE,
            description="cec-prices: a filter drops purchases with a lower price; 0: there is no filter",
        ),
    ] = 0
    stream_seed: Annotated[int, Field(ge=0, lt=2**63, description="cec-prices: seed of the purchases")] = 1

    @property
    def output_topic(self) -> str:
        """The topic to which the query writes its results."""
        return OUTPUT

    @property
    def depth(self) -> int:
        """One stateful operator: the windows."""
        return 1

    @property
    def by_record(self) -> bool:
        """A window closes with a record. The records before it, which are in the window, are before it in its partition
        of the input as well."""
        return True
