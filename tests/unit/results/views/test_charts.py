"""What charts take from tables that have more than they draw."""

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from results.views import charts, plots
from results.views.document import document
from results.views.terminal import summary
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


def test_a_second_of_a_long_run_has_its_latency_and_begins_where_it_is_drawn(tmp_path: Path) -> None:
    def every_second(frame: pd.DataFrame) -> pd.DataFrame:
        return pd.concat([frame.iloc[:1]] * 3600, ignore_index=True).assign(second=range(3600))

    run = synthetic.make_run(tmp_path, window_s=3600.0, changes={"latency": every_second})
    drawn = charts.timeline(run)
    assert drawn["second"] == drawn["latency"]["second"] == list(range(0, 3600, 3))
    run = synthetic.make_run(tmp_path / "sparse", window_s=3600.0)
    drawn = charts.timeline(run)
    assert set(drawn["latency"]["second"]) < set(drawn["second"])
    useful = charts.useful_time(run)
    stored = run.table("useful_time").set_index("second")["measured_s"]
    shown = dict(zip(useful["second"], useful["measured_s"], strict=True))
    assert shown[3.0] == pytest.approx(stored[3])


def test_a_fault_is_drawn_once_and_every_recovery_has_its_bar(tmp_path: Path) -> None:
    """The first fault makes the query fail twice; of the third recovery no fault is known."""
    begun_by = pd.array([0, 0, None, 4, 5, 6], dtype="Int64")
    run = synthetic.make_run(tmp_path, changes={"recoveries": lambda frame: frame.assign(fault=begun_by)})
    names = ["21 s  worker-1", "51 s  worker-1", "77 s  no known fault"]
    assert charts.recoveries(run)["names"][:3] == names
    assert len(charts.recoveries(run)["names"]) == 6
    assert [text.get_text() for text in plots.recoveries(run).axes[0].get_yticklabels()][:3] == names
    planned_s = [*synthetic.KILLS_S, synthetic.ABSORBED_S]
    assert len(charts.timeline(run)["faults"]) == len(planned_s)
    assert [each["planned_at"] for each in document(run)["faults"]] == pytest.approx(sorted(planned_s))
    lines = [line.split() for line in summary(run).splitlines() if " - " in line]
    assert [line[:5] for line in lines if "again" in line] == [["50.9", "-", "again", "kill", "worker-1"]]
    assert [line[:5] for line in lines if "known" in line] == [["77", "-", "no", "known", "fault"]]
    assert summary(run).count("(no recovery of its own)") == 2
