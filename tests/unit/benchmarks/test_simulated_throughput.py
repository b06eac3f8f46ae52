"""The comparison of simulated workers with measured ones."""

from benchmarks.testbed.simulated_throughput import Rates, rows_of
from experiments.engines import ProtocolName
from experiments.workloads.catalogue import NexmarkQuery


def test_shares_are_of_the_same_query_without_checkpoints():
    """Logging halves what Q1 processes, and the simulation says a quarter less."""
    rates = {
        (NexmarkQuery.Q1, ProtocolName.NONE): Rates(1000.0, 600.0, 2000.0),
        (NexmarkQuery.Q1, ProtocolName.UNCOORDINATED): Rates(500.0, 360.0, 1500.0),
        (NexmarkQuery.Q3, ProtocolName.NONE): Rates(10.0, 10.0, 10.0),
    }
    assert [row[3:] for row in rows_of(rates)] == [
        ("100%", "100%", "2,000", "100%", "1.00"),
        ("50%", "60%", "1,500", "75%", "1.50"),
        ("100%", "100%", "10", "100%", "1.00"),
    ]
