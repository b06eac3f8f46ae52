"""The workloads that the testbed has as dataflows.

catalogue      all of them by their specs
result_columns   results of any workload as messages, made by column
result_batches   results as Arrow batches, many in a message
nexmark        NexMark's queries 1, 3, 8 and 12
reachability   the cyclic query of `checkmate`
window_tree, top_100, incidents   the queries of `ppa`
hashtags       the queries of `incremental`
cec_prices     the query of `cec`
"""

from testbed.queries.catalogue import TestbedWorkload, as_messages, dataflow, event_kinds
from testbed.queries.nexmark import QUERIES
from testbed.queries.result_batches import from_batch
from testbed.queries.result_columns import BATCH

__all__ = ["BATCH", "QUERIES", "TestbedWorkload", "as_messages", "dataflow", "event_kinds", "from_batch"]
