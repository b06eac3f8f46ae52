"""What charts take from tables that have more than they draw."""

import pyarrow as pa
import pyarrow.parquet as pq

from results.views import charts
from tests.unit.results import synthetic


def test_columns_that_are_no_numbers_and_none_of_the_schema_change_no_chart(tmp_path):
    """Such as those of a later version."""
    run = synthetic.make_run(tmp_path, kills=(8.3,), window_s=24.0)
    before = charts.timeline(run)
    for name in ("latency", "throughput"):
        table = pq.read_table(run.table_path(name))
        more = table.append_column("day", pa.nulls(len(table), pa.date32()))
        pq.write_table(more.append_column("note", pa.array(["x"] * len(table))), run.table_path(name))
    assert charts.timeline(run) == before
