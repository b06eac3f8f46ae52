"""Which exact results are taken out of a run's files to judge its tentative output: of no more time than that is of."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession

from results.tables.columns import Row
from spark_jobs.tables.dataflow import logs as testbed_logs

pytestmark = pytest.mark.extended

SCHEMA = "start_ms long, end_ms long, key string, value string, arrived_ms long"


@pytest.mark.parametrize(
    ("by_record", "taken"),
    [(True, [1000, 1400, 1999]), (False, [1400])],
    ids=["of single records, those of the same seconds", "of windows, those of the same windows"],
)
def test_only_results_of_the_time_of_tentative_ones_are_taken(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, by_record: bool, taken: list[int]
) -> None:
    def frame(*starts_ms: int | None) -> DataFrame:
        return spark.createDataFrame([(start_ms, start_ms, "k", "v", 0) for start_ms in starts_ms], SCHEMA)

    tables = {"tentative": frame(1400), "oracle": frame(999, 1000, 1400, 1999, 2000), "sink": frame(None, 1400, 3000)}
    engine, workload = SimpleNamespace(tentative_run=True), SimpleNamespace(has_oracle=True, by_record=by_record)
    asked = SimpleNamespace(engine=engine, workload=workload)
    files: Any = SimpleNamespace(experiment=asked, parquet=tables.get, journal=lambda name, vocabulary: [])
    given: list[pd.DataFrame] = []

    def judged(experiment: object, journal: object, *frames: pd.DataFrame) -> list[Row]:
        given.extend(frames)
        return []

    monkeypatch.setattr(testbed_logs, "tentative", judged)
    assert testbed_logs.TestbedLogs(files).tentative == []
    assert [sorted(each["start_ms"]) for each in given] == [[1400], taken, [1400]]
