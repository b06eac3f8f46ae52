"""The queries of NexMark in Structured Streaming: declarative, in append mode, each result emitted once.

Time is when a record was due, which is its Kafka timestamp: where the suite has windows of processing time (Q12, and
Q8 in the `checkmate` paper) that makes the result a function of the input, so that an oracle exists. Where the suite
keeps a result for ever and changes it, or counts by the day, it is one per window here. The list is in
docs/reference/nexmark.md.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame

from experiments.workloads.catalogue import NexmarkQuery, NexmarkSpec
from workloads import results
from workloads.nexmark import auction_queries, join_queries, record_queries, window_queries
from workloads.nexmark.feed import NexmarkEvents

QUERIES: dict[NexmarkQuery, Callable[[NexmarkEvents], DataFrame]] = {
    NexmarkQuery.Q0: record_queries.q0,
    NexmarkQuery.Q1: record_queries.q1,
    NexmarkQuery.Q2: record_queries.q2,
    NexmarkQuery.Q3: join_queries.q3,
    NexmarkQuery.Q4: auction_queries.q4,
    NexmarkQuery.Q5: window_queries.q5,
    NexmarkQuery.Q6: auction_queries.q6,
    NexmarkQuery.Q7: window_queries.q7,
    NexmarkQuery.Q8: join_queries.q8,
    NexmarkQuery.Q9: auction_queries.q9,
    NexmarkQuery.Q10: record_queries.q10,
    NexmarkQuery.Q11: window_queries.q11,
    NexmarkQuery.Q12: window_queries.q12,
    NexmarkQuery.Q13: record_queries.q13,
    NexmarkQuery.Q14: record_queries.q14,
    NexmarkQuery.Q15: window_queries.q15,
    NexmarkQuery.Q16: window_queries.q16,
    NexmarkQuery.Q17: window_queries.q17,
    NexmarkQuery.Q18: window_queries.q18,
    NexmarkQuery.Q19: window_queries.q19,
    NexmarkQuery.Q20: join_queries.q20,
    NexmarkQuery.Q21: record_queries.q21,
    NexmarkQuery.Q22: record_queries.q22,
}


def query(records: DataFrame, spec: NexmarkSpec) -> DataFrame:
    """The results of one query, as in `workloads.results`; `records` has the columns of a Kafka source."""
    return results.packed(QUERIES[spec.query](NexmarkEvents(records, spec)))
