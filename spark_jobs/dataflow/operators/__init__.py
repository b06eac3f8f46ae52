"""What a dataflow is made of: operators that work on Arrow record batches, one partition each.

An operator is a function of its state and the order of its input: no clock, no random number, no thread.
"""

from spark_jobs.dataflow.operators.aggregate import Aggregate, Aggregation, Emit
from spark_jobs.dataflow.operators.interface import END_OF_TIME_NS, START_OF_TIME_NS, Delivery, Operator, Sink, Source
from spark_jobs.dataflow.operators.join import Join
from spark_jobs.dataflow.operators.stateless import Filter, Map
from spark_jobs.dataflow.operators.windows import Windows, sliding, tumbling

__all__ = [
    "END_OF_TIME_NS",
    "START_OF_TIME_NS",
    "Aggregate",
    "Aggregation",
    "Delivery",
    "Emit",
    "Filter",
    "Join",
    "Map",
    "Operator",
    "Sink",
    "Source",
    "Windows",
    "sliding",
    "tumbling",
]
