"""Nights one after the other: they go on where they stopped, and are replayed as the regression check sees them."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.json_ledger import JsonLedger
from benchmarks.regressions.nights_plot import plot
from benchmarks.regressions.real_nights import (
    SLOW_FROM,
    KeptRun,
    kept_too,
    next_cell,
    nights_of,
    noise,
    replay,
    report,
    run_nights,
    series_of,
    slowed,
)
from experiments import matrix
from results.regression import history
from results.runs.machine import experiment_digest, machine_class
from results.runs.state import RunState
from results.summary.index import IndexRow
from results.tables.schema import SCHEMA_VERSION
from tests.unit.results.regression.simulated_nights import WORK

CELLS = matrix.load("small")
USUAL = {"utilization": 0.7, "restore_s": 4.0, "service_rate": 6000.0, "checkpoint_s": 0.3, "lost": 0.0}
SPREAD = 0.02


def row(cell, number, generator=None, **fields):
    """The run of a cell in a night, with figures that scatter by 2 %."""
    metrics = {
        name: usual * float(np.exp(SPREAD * generator.normal())) if generator else usual
        for name, usual in USUAL.items()
    }
    about = {
        "run_id": f"{cell.name}-{number}",
        "state": RunState.DONE,
        "experiment": cell.name,
        "started_ns": number,
        "machine": machine_class(),
        "experiment_digest": experiment_digest(cell),
        "schema_version": SCHEMA_VERSION,
        "facts": {"seed": cell.seed},
        "metrics": metrics,
    }
    return IndexRow(**about | fields)


def calm(count):
    generator = np.random.default_rng(4)
    return [[row(cell, number, generator) for cell in CELLS] for number in range(count)]


@pytest.fixture(scope="module")
def thirty():
    return calm(30)


def test_a_small_night_has_kills_and_a_control_without():
    assert [each.faults.can_fail for each in CELLS] == [False, True]


def test_the_cell_with_the_fewest_runs_comes_next_until_there_are_enough():
    first, second = CELLS
    rows = []
    assert next_cell(CELLS, rows, 2) == first
    rows.append(row(first, 0))
    assert next_cell(CELLS, rows, 2) == second
    rows += [row(second, 1), row(first, 2), row(second, 3)]
    assert next_cell(CELLS, rows, 2) is None
    assert next_cell(CELLS, rows, 3) == first


@pytest.mark.parametrize(
    "fields", [{"state": "failed"}, {"machine": "another"}, {"schema_version": 1}, {"facts": {"seed": 9}}], ids=str
)
def test_a_run_that_cannot_be_compared_is_of_no_night(fields):
    rows = [row(CELLS[0], 0, **fields), row(CELLS[1], 1)]
    assert next_cell(CELLS, rows, 1) == CELLS[0]
    assert nights_of(CELLS, rows) == []


def test_nights_are_in_the_order_of_their_runs():
    rows = [row(cell, number) for number in (5, 1, 3) for cell in CELLS]
    assert [[each.started_ns for each in night] for night in nights_of(CELLS, rows)] == [[1, 1], [3, 3], [5, 5]]


def test_nights_of_a_ledger_count_where_their_runs_are_not(tmp_path):
    path, nights = tmp_path / "nights.jsonl", calm(3)
    first, second, third = nights
    other = row(CELLS[0], 9, machine="another")
    assert kept_too(JsonLedger(path, KeptRun), CELLS, [*first, *second, other]) == [*first, *second, other]
    elsewhere = kept_too(JsonLedger(path, KeptRun), CELLS, third)
    assert nights_of(CELLS, elsewhere) == nights
    assert [line.row for line in JsonLedger(path, KeptRun).lines] == [each for night in nights for each in night]


def run_all(nights, states, hours=8.0):
    """Nights whose runs end in these states, an hour each."""
    rows, left, clock = [], list(states), SimpleNamespace(hours=0)

    def run(cell):
        clock.hours += 1
        state = left.pop(0) if left else RunState.DONE
        rows.append(row(cell, len(rows), state=state))
        return SimpleNamespace(status=lambda: SimpleNamespace(state=state))

    ended = run_nights(CELLS, nights, hours, run, lambda: rows, lambda: 3600 * clock.hours)
    return dict(ended), rows


def test_a_run_that_failed_is_repeated_and_told():
    ended, rows = run_all(2, [RunState.FAILED])
    assert ended == {"failed": 1, "done": 4}
    assert len(nights_of(CELLS, rows)) == 2


def test_a_machine_that_fails_every_run_is_left_alone():
    assert run_all(2, [RunState.FAILED] * 9)[0] == {"failed": 3}


def test_no_run_begins_after_the_hours_are_over():
    assert run_all(30, [], hours=3.0)[0] == {"done": 3}


def test_a_planted_slowdown_is_found_within_four_nights_and_nothing_before(thirty):
    found = [each for each in replay(slowed(thirty)[:24]) if each.worse or each.better]
    assert {each.experiment for each in found} == {cell.name for cell in CELLS}
    assert SLOW_FROM < min(each.night for each in found) <= SLOW_FROM + 3
    assert all(set(each.worse) <= set(WORK) and not each.better for each in found)


@pytest.mark.extended
def test_a_slowdown_that_stays_is_found_every_night(thirty):
    found = {each.night for each in replay(slowed(thirty)) if each.worse}
    assert found >= set(range(SLOW_FROM + 4, 31))
    assert [each for each in replay(thirty) if each.worse or each.better] == []


def test_only_work_takes_longer_and_only_from_its_night_on(thirty):
    changed = slowed(thirty, 3)
    assert changed[:2] == thirty[:2]
    was, now = thirty[2][0].metrics, changed[2][0].metrics
    ratios = {name: now[name] / was[name] for name in was if was[name]}
    assert ratios == pytest.approx(
        {"utilization": 1.0, "restore_s": 1.15, "service_rate": 1 / 1.15, "checkpoint_s": 1.15}
    )


def test_noise_is_that_of_the_runs(thirty):
    for series in history.series_of(reversed([each for night in thirty for each in night])):
        found = noise(series)
        assert set(found) == set(USUAL) - {"lost"}
        assert all(0.7 * SPREAD < share < 1.4 * SPREAD for share in found.values())


def test_the_report_says_how_many_nights_there_are():
    told = report(calm(2))
    assert told.startswith("2 nights\n")
    assert f"| {CELLS[0].name} | service_rate |" in told
    assert report([]).startswith("0 nights\n")


def test_the_plot_has_the_share_by_which_each_metric_is_off_its_median_and_the_alarms():
    nights = calm(5)
    figure = plot(series_of(nights), {(CELLS[1].name, 4)})
    panels = {panel.get_title(): panel.lines for panel in figure.axes}
    assert [line.get_label() for line in panels[CELLS[0].name]] == [
        "utilization",
        "checkpoint",
        "restore",
        "service rate",
    ]
    times = np.array([night[0].metrics["checkpoint_s"] for night in nights])
    assert panels[CELLS[0].name][1].get_ydata() == pytest.approx(times / np.median(times) - 1)
    (alarm,) = panels[CELLS[1].name][4:]
    assert list(alarm.get_xdata()) == [4, 4]
