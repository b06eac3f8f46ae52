"""The report stands alone, escapes what it shows, and copes with runs that lack something."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image

from results.runs.store import Run
from results.tables.schema import RUN_TABLES, TABLES
from results.views.cells import head
from results.views.plots import PLOTS, timeline, write_plots
from results.views.report import write_report
from tests.unit.results import synthetic

HOSTILE = '<script>alert("x")</script>--><b>'


def test_the_report_loads_nothing_and_runs_nothing(good_run: Run) -> None:
    page = good_run.report.read_text()
    assert not re.search(r"<script|<iframe|<object|<link rel=.stylesheet|@import|\son\w+=", page)
    assert not re.search(r"""(src|href|action)=["']?\s*(https?:)?//|url\((?!#)""", page)


def test_links_of_the_report_lead_somewhere(good_run: Run) -> None:
    links = re.findall(r'<a href="([^"#]+)"', good_run.report.read_text())
    assert "checks/data_docs/index.html" in links
    assert all((good_run.root / link).exists() for link in links)


def test_the_answer_is_on_top(good_run: Run) -> None:
    page = good_run.report.read_text()
    answer = re.search(
        r"Failures cost [\d.]+ % of the time: measured utilization [\d.]+ against a predicted [\d.]+ \([^)]+\), by",
        page,
    )
    assert answer
    assert answer.start() < page.index("<h2>")
    assert "of the time: lost, detect, restart, warm-up<" in page


def test_the_report_says_what_latency_is_under_a_saturating_load(good_run: Run) -> None:
    assert re.search(r"<h2>Latency [^<]*saturating load[^<]*without bound[^<]*</h2>", good_run.report.read_text())


def test_rates_are_told_to_three_digits_with_their_unit(tmp_path: Path) -> None:
    found = {"sustainable_rate": 12.41, "unsustainable_rate": 12.94}
    run = synthetic.make_run(tmp_path, kills=(), changes={"runs": lambda frame: frame.assign(**found)})
    page = write_report(run, synthetic.experiment()).read_text()
    assert "The query sustains 12.4 records/s; 12.9 is too much." in page
    assert "12.4 records/s</" in page
    assert "lowest that was not: 12.9 records/s" in page


def test_what_the_tables_say_is_escaped(tmp_path: Path) -> None:
    spoil = {
        "runs": lambda frame: frame.assign(experiment=HOSTILE, run_id=HOSTILE),
        "faults": lambda frame: frame.assign(cause=HOSTILE, targets=HOSTILE),
        "hosts": lambda frame: frame.assign(host=HOSTILE),
    }
    run = synthetic.make_run(tmp_path, changes=spoil)
    page = write_report(run, synthetic.experiment()).read_text()
    assert "<script" not in page
    assert "--><b>" not in page
    assert page.count("&lt;script&gt;alert(&#34;x&#34;)&lt;/script&gt;") >= 9


def test_every_plot_is_written_twice_and_is_a_picture(good_run: Run) -> None:
    for name in PLOTS.keys() - {"availability"}:  # which only a run has that recovers query by query
        with Image.open(good_run.plots / f"{name}.png") as picture:
            assert picture.width > 1000
            assert len(picture.convert("RGB").getcolors(maxcolors=2**24)) > 20
        assert (good_run.plots / f"{name}.svg").read_text().count("<path") > 10


@pytest.mark.extended
def test_plots_are_reproducible(good_run: Run, tmp_path: Path) -> None:
    again = Run(good_run.run_id, tmp_path)
    again.tables.symlink_to(good_run.tables)
    for name, svg in write_plots(again).items():
        assert svg.read_text() == (good_run.plots / f"{name}.svg").read_text()


def test_a_control_run_has_no_recoveries_to_plot(control_run: Run) -> None:
    page = control_run.report.read_text()
    assert 'id="plot-recoveries"' not in page
    assert 'id="plot-utilization"' in page
    assert "Failures cost 0 %" in page


def test_tables_are_headed_by_label_and_unit_and_tell_name_and_meaning(good_run: Run) -> None:
    shown = good_run.report.read_text()
    heads = re.findall(r'<(?:th|dt) title="([^"]*)"(?: class="number")?>([^<]*)</(?:th|dt)>', shown)
    told = {
        (f"{column.name}: {column.description}".replace("`", ""), head(name, column.name).text)
        for name, table in RUN_TABLES.items()
        if name != "verdicts" and good_run.has(name)
        for column in table.columns
    }
    assert told <= {(unescape(meaning), unescape(text)) for meaning, text in heads}
    assert ("planned_ns: planned time", "Planned (UTC)") in told


def test_a_long_table_is_cut_with_a_note(good_run: Run) -> None:
    assert "The first 200 of 960 rows" in good_run.report.read_text()


@pytest.mark.extended
@pytest.mark.parametrize("table", ["runs", "faults", "recoveries", "checkpoints", "ledger", "predictions"])
def test_a_report_without_one_table_says_so(table: str, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path, without=(table,))
    page = write_report(run, synthetic.experiment()).read_text()
    assert re.search(rf"Not in this run: [^.]*\b{table}\b", page)


def test_a_report_without_any_table_is_still_a_page(tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path, without=tuple(TABLES))
    page = write_report(run, synthetic.experiment()).read_text()
    assert "This run measured no utilization" in page
    assert list(run.plots.iterdir()) == []


@pytest.mark.extended
def test_a_window_of_a_day_does_not_make_a_giant_page(tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path, window_s=20_000.0)
    assert write_report(run, synthetic.experiment()).stat().st_size < 4_000_000


def test_checkpoints_beside_the_window_are_not_drawn(tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path)
    inside = run.table("checkpoints")
    outside = inside.head(2).assign(completed_ns=[0, 2 * int(inside["completed_ns"].max())])
    synthetic.write_table(run, "checkpoints", pd.concat([inside, outside], ignore_index=True))
    drawn = [line for axes in timeline(run).axes for line in axes.get_lines() if line.get_label() == "checkpoint"]
    assert {len(line.get_xdata()) for line in drawn} == {len(inside)}
