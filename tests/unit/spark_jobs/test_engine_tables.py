"""Which tables only one engine fills, and which batches the logs of both take for the usual ones."""

from types import SimpleNamespace

import pytest

from experiments.engines import EngineName, TriggerMode
from results.tables.schema import RUN_TABLES, LedgerClass
from spark_jobs.tables.build import ENGINE_TABLES, LOGS
from spark_jobs.tables.ledger import NS, LedgerSegment
from spark_jobs.tables.streaming.batches import Batch


def logs(engine):
    """Logs whose journal is empty; nothing is read before rows are asked for."""
    found = engine(SimpleNamespace(window=(0, 1)))
    found.__dict__.update(query=[], tentative=[])
    return found


def test_every_table_that_only_one_engine_fills_is_written_and_no_two_engines_fill_it():
    filled = [table for engine in LOGS.values() for table in logs(engine).engine_tables]
    assert sorted(filled) == sorted(ENGINE_TABLES)
    assert set(filled) <= set(RUN_TABLES)


def test_only_the_testbed_measures_columns_of_the_table_of_runs_that_others_lack():
    columns = {each.name for each in RUN_TABLES["runs"].columns}
    testbed, spark = (
        logs(LOGS[name]).engine_measures for name in (EngineName.DATAFLOW, EngineName.STRUCTURED_STREAMING)
    )
    assert "message_overhead" in testbed.keys() <= columns
    assert spark == {}


@pytest.mark.parametrize("engine", LOGS.values())
def test_the_pace_is_that_of_batches_that_lie_in_the_window(engine):
    """At 100 records/s: of the last batch the ledger has one second of ten, which would give ten times the rate."""
    experiment = SimpleNamespace(engine=SimpleNamespace(trigger=TriggerMode.MICRO_BATCH))
    found = engine(SimpleNamespace(window=(10 * NS, 41 * NS), experiment=experiment))
    spans = [(5, 15), (15, 25), (30, 40), (40, 50)]
    made = [Batch(n, a * NS, b * NS, 0, 100 * (b - a), 0, 0, 0, 0, 0, {}, None, None) for n, (a, b) in enumerate(spans)]
    found.__dict__.update(batches=made, outages=[], segments=[LedgerSegment(10 * NS, 41 * NS, LedgerClass.USEFUL)])
    assert [batch.batch for batch in found.undisturbed] == [1, 2]
    assert found.pace.rate * NS == pytest.approx(100)
