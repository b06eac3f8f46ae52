"""What an operator tells of its log: a slot sends it as JSON."""

import json

import pyarrow as pa

from testbed.operators.count_windows import CountWindows
from testbed.output_log.log import OutputLog
from testbed.output_log.logged import LoggedOperator
from testbed.output_log.policies import OpensOnly
from testbed.stores.store import MemoryStore

ITEMS, WINDOW = (1, 2, 1, 2, 3, 1), 2  # windows open with records 1, 2, 5 and 6; two of them close


def test_counts_are_numbers_that_json_knows():
    operator = CountWindows("item", "price", WINDOW, ())
    batch = pa.RecordBatch.from_pydict({"item": ITEMS, "price": [10] * len(ITEMS)})
    operator.schema(batch.schema)
    operator.open()
    logged = LoggedOperator(operator, OutputLog(MemoryStore(), "log"), OpensOnly())
    logged.process(0, batch)
    assert json.loads(json.dumps(logged.counts)) == logged.counts
    assert logged.counts["bytes"] == 0
    logged.commit()
    told = {name: logged.counts[name] for name in ("records", "opens", "results", "open_windows", "checks")}
    assert told == {"records": 6, "opens": 4, "results": 2, "open_windows": 2, "checks": 0}
    assert logged.counts["bytes"] > 0
