"""Which tables only one engine fills."""

from types import SimpleNamespace

from experiments.engines import EngineName
from results.tables.schema import RUN_TABLES
from spark_jobs.tables.build import ENGINE_TABLES, LOGS


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
