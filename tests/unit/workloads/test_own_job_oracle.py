"""What an oracle of an own job may return."""

from types import SimpleNamespace

import pytest
from pyspark.sql.types import LongType, StringType, TimestampNTZType, TimestampType

from experiments.errors import BadInput
from workloads.own_job import applied

ORACLE = "def exact(records):\n    return records\n\n\nresults = exact\n"


@pytest.mark.parametrize("moment", [TimestampType(), TimestampNTZType()])
def test_a_window_in_timestamps_is_refused(tmp_path, moment):
    """Their numbers are seconds. Every window would seem to end long before the watermark, open ones included."""
    (tmp_path / "oracle.py").write_text(ORACLE, encoding="utf-8")
    types = {"start_ms": LongType(), "end_ms": moment, "key": StringType(), "value": StringType()}
    returned = SimpleNamespace(columns=list(types), schema={n: SimpleNamespace(dataType=t) for n, t in types.items()})
    with pytest.raises(BadInput, match=r"workload.oracle: \['end_ms'\].*results\(\) with milliseconds in end_ms"):
        applied(tmp_path / "oracle.py", "results", returned)
