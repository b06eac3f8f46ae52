"""Operators of dataflows, which work on Arrow record batches, one partition each.

An operator is a function of its state and the order of its input: no clock, no random number, no thread.
"""

from testbed.operators.aggregate import Aggregate, Aggregation, Emit
from testbed.operators.interface import END_OF_TIME_NS, START_OF_TIME_NS, Delivery, Operator, Sink, Source
from testbed.operators.join import Join
from testbed.operators.stateless import Filter, Map
from testbed.operators.windows import Windows, sliding, tumbling

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
