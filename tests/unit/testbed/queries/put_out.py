"""How much each partition of a dataflow puts out for given input: every partition takes in all, then time ends.

Without runtime, network or protocol. So it holds of dataflows without cycles whose results do not depend on the order
in which input arrives.
"""

import copy

import pyarrow as pa

from testbed.core.dataflow.partitioning import rows_by_channel
from testbed.operators import END_OF_TIME_NS, Sink, Source
from tests.unit.testbed.queries.ppa_queries import made


def put_out(layout, spec, count, rate):
    """Records that each partition emits, by name, for the first `count` events of the query; a sink: that it reads."""
    events, arrived, found = made(spec, count, rate), {channel.id: [] for channel in layout.channels}, {}
    for partition in layout.partitions:  # senders come before their receivers
        if isinstance(partition.element, Source):
            mine = events.take(pa.array(range(partition.index, count, spec.sources)))
            batches = [partition.element.process(mine)]
        elif isinstance(partition.element, Sink):
            batches = [batch for channel in partition.inputs for batch in arrived[channel.id]]
        else:
            batches = _emitted(copy.deepcopy(partition.element), partition.inputs, arrived)
        found[partition.name] = sum(batch.num_rows for batch in batches)
        for channel, rows in (piece for r in partition.routes for b in batches for piece in rows_by_channel(b, r)):
            arrived[channel.id].append(rows)
    return found


def _emitted(operator, inputs, arrived):
    operator.open()
    batches = [operator.process(channel.port, batch) for channel in inputs for batch in arrived[channel.id]]
    return [batch for batch in (*batches, operator.advance(END_OF_TIME_NS)) if batch is not None]
