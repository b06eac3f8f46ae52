"""The checks of tentative output pass on sound tables, fail on planted damage, and are unknown where there is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from experiments import spec
from results.checks.catalogue import checks_for
from results.runs.store import Run
from results.tables.columns import Row
from results.tables.schema import RUN_TABLES
from results.views.document import document
from tests.unit.results import judging, synthetic

S = 1_000_000_000
TENTATIVE = ["engine.recovery=passive", "engine.tentative=true"]
TOP_100 = spec.load("ppa-top100", TENTATIVE)


def window(start_s: int, **changed: object) -> Row:
    """A window with three quarters of its results, corrected later."""
    times = {"window_start_ns": start_s * S, "window_end_ns": (start_s + 10) * S, "first_ns": (start_s + 11) * S}
    counts = {"exact": 400, "emitted": 304, "both": 300, "accuracy": 0.75, "leaked": 0}
    predicted = {"output_fidelity": 0.74, "internal_completeness": 0.8, "absent": "requests.0", "throughout": True}
    return times | counts | predicted | {"corrected_ns": (start_s + 60) * S} | changed


def final(rows: list[Row]) -> pa.Table:
    """The table `quality` of these windows, all of them final and sound."""
    bounds, sound = ("window_start_ns", "window_end_ns"), {"emitted": 0, "lost": 0, "duplicated": 0, "wrong": 0}
    exact = {tuple(row[name] for name in bounds): row["exact"] for row in rows}
    windows = [dict(zip(bounds, window, strict=True)) | {"exact": count} for window, count in exact.items()]
    return RUN_TABLES["quality"].of([row | sound for row in windows])


def verdict_of(name: str, rows: list[Row], folder: Path, quality: list[Row] | None = None) -> dict[str, Any]:
    """`quality`: the windows that are final, by default all of them."""
    run = Run("run", folder / "run")
    run.tables.mkdir(parents=True)
    run.write_table("tentative", RUN_TABLES["tentative"].of(rows))
    run.write_table("quality", final(rows if quality is None else quality))
    return judging.verdict_of(f"tentative.{name}", run, folder, TOP_100)


SOUND = [
    window(20),
    window(21, exact=0, both=0, accuracy=None, corrected_ns=None),
    window(22, accuracy=0.4, throughout=False),
]


@pytest.mark.parametrize("name", ["apart", "corrected", "accuracy", "values"])
def test_sound_tables_pass(name, tmp_path):
    assert verdict_of(name, SOUND, tmp_path)["verdict"] == "pass"


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("apart", {"leaked": 1}),
        ("corrected", {"corrected_ns": None}),
        ("accuracy", {"both": 364}),
        ("accuracy", {"both": 236}),
        ("values", {"accuracy": 1.2}),
    ],
)
def test_damage_fails(name, damage, tmp_path):
    assert verdict_of(name, [*SOUND, window(30, **damage)], tmp_path)["verdict"] == "fail"


@pytest.mark.parametrize("name", ["apart", "corrected", "accuracy"])
def test_nothing_is_known_without_tentative_output(name, tmp_path):
    assert verdict_of(name, [], tmp_path)["verdict"] == "unknown"


def test_accuracy_is_unknown_if_no_window_lacked_the_same_input_throughout(tmp_path):
    assert verdict_of("accuracy", [window(20, throughout=False)], tmp_path)["verdict"] == "unknown"


@pytest.mark.parametrize(
    ("quality", "verdict"), [(SOUND, "pass"), ([*SOUND, window(30, exact=399)], "pass"), ([], "unknown")]
)
def test_accuracy_is_judged_where_exact_results_are_final(quality, verdict, tmp_path):
    """Without the input that a lost partition has not read, the exact results are fewer, and so fit less."""
    assert verdict_of("accuracy", [*SOUND, window(30, both=120)], tmp_path, quality)["verdict"] == verdict


def test_the_window_that_differs_most_is_found(tmp_path):
    """Too little in one window, among windows that together have too little and one that has too much."""
    run = synthetic.make_run(tmp_path)
    rows = [window(at, exact=400, both=both) for at, both in ((20, 260), (30, 200), (40, 400), (50, 250))]
    bounds = ("window_start_ns", "window_end_ns")
    shifted = [row | {name: row[name] + synthetic.START_NS for name in bounds} for row in rows]
    run.write_table("tentative", RUN_TABLES["tentative"].of(shifted))
    run.write_table("quality", final(shifted))
    found = judging.parts_at("tentative.accuracy", run, TOP_100)
    assert (found.table, found.second) == ("tentative", 30.0)
    assert "windows that lacked requests.0 have accuracy 0.694 instead of 0.74" in found.words


def sparse(windows: int, both: int, **changed: object) -> list[Row]:
    """Overlapping windows of 40 results each: of ten seconds in which a second is new, so that 4 results are."""
    counts = {"exact": 40, "emitted": both, "both": both, "accuracy": both / 40, "output_fidelity": 0.5}
    return [window(20 + at, **counts | changed) for at in range(windows)]


def test_windows_that_lacked_the_same_are_judged_together(tmp_path):
    off, even = {"both": 8, "accuracy": 0.2}, {"both": 32, "accuracy": 0.8}
    rows = [row | (off if at % 2 else even) for at, row in enumerate(sparse(100, 20))]
    assert verdict_of("accuracy", rows, tmp_path)["verdict"] == "pass"


@pytest.mark.parametrize(("both", "verdict"), [(19, "pass"), (17, "fail"), (21, "pass"), (23, "fail")])
def test_together_they_are_held_to_the_same_bound(both, verdict, tmp_path):
    assert verdict_of("accuracy", sparse(100, both), tmp_path)["verdict"] == verdict


def test_those_that_lacked_something_else_are_judged_apart(tmp_path):
    rows = [*sparse(100, 17), *sparse(100, 23, absent="requests.1")]
    assert verdict_of("accuracy", rows, tmp_path)["verdict"] == "fail"


@pytest.mark.parametrize(("windows", "verdict"), [(90, "unknown"), (91, "pass")])
def test_too_few_results_tell_nothing(windows, verdict, tmp_path):
    """They cover windows + 9 seconds, at 4 results a second."""
    assert verdict_of("accuracy", sparse(windows, 20), tmp_path)["verdict"] == verdict


def test_windows_that_are_left_out_are_counted(tmp_path):
    few = sparse(10, 4, absent="requests.1")
    found = verdict_of("accuracy", [*sparse(100, 20), *few], tmp_path)
    assert found["verdict"] == "pass"
    assert "100 windows judged, 10 left out" in found["observed"]


def test_whose_accuracy_output_fidelity_predicts():
    def asked(*overrides: str) -> set[str]:
        experiment = spec.load("ppa-top100", [*TENTATIVE, *overrides])
        return {check.name for check in checks_for(experiment) if check.name.startswith("tentative.")}

    every = {f"tentative.{name}" for name in ("schema", "values", "apart", "corrected", "accuracy")}
    tree = "workload={name: window-tree, parallelism: [8, 4, 2]}"
    assert asked() == every
    assert asked(tree) == every - {"tentative.accuracy"}
    assert not asked("engine.tentative=false")


def test_the_document_has_accuracy_and_fidelity(good_run, tmp_path):
    facts = good_run.table("runs").assign(tentative_accuracy=0.75, tentative_fidelity=0.74)
    run = Run("run", tmp_path / "run")
    run.tables.mkdir(parents=True)
    run.write_table("runs", RUN_TABLES["runs"].of(facts.to_dict("records")))
    quality = document(run)["quality"]
    assert (quality["tentative_accuracy"], quality["tentative_fidelity"]) == (0.75, 0.74)
