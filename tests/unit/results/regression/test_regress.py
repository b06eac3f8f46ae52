"""A regression, from runs to what is recorded of it."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from experiments.errors import BadInput
from experiments.wording import signed
from results.regression import history, records
from results.regression.change_points import ChangePoint
from results.regression.regress import baseline_run_ids, changes, levels, longest_stretch, regress, worse_places
from results.regression.wording import PINS_PASSED_OVER, report
from results.runs import store
from results.summary.metrics import METRICS
from results.tables.comparison import COMPARISON_SCHEMAS
from results.tables.schema import SCHEMA_VERSION, VERSION_KEY
from tests.unit.results.regression.past import steady, write_nights, write_run

pytestmark = pytest.mark.usefixtures("home")


def slow_nights():
    """25 nights, then five that are 15 % slower."""
    return write_nights([*steady(25), *steady(5, 6000 / 1.15, seed=2)])


@pytest.mark.extended
def test_a_slowdown_is_worse_and_says_by_how_much():
    names = slow_nights()
    found = regress()
    document = found.document()
    assert document.verdict == "worse"
    (entry,) = document.experiments
    assert (entry.experiment, entry.experiment_digest, entry.machine) == ("wordcount", "d1", "a machine")
    assert (entry.candidates, entry.baseline, entry.pinned) == (names[25:], names[5:25], False)
    (row,) = found.rows("regression")
    assert (row["metric"], row["verdict"], row["candidates"], row["baseline"]) == ("service_rate", "worse", 5, 20)
    assert row["effect"] == pytest.approx(1 / 1.15 - 1, abs=0.02)
    assert row["low"] < row["effect"] < row["high"] < 0
    (sentence,) = entry.sentences
    assert sentence.startswith("worse: service_rate 5,")
    effect, low, high = (signed(100 * row[name]) for name in ("effect", "low", "high"))
    assert f"{effect} % ({low} to {high} %)" in sentence


@pytest.mark.extended
def test_the_night_of_the_change_is_recorded():
    names = slow_nights()
    (change,) = regress().rows("change_points")
    assert (change["run_id"], change["metric"], change["verdict"]) == (names[25], "service_rate", "worse")
    assert change["before"] == pytest.approx(6000, rel=0.01)
    assert change["after"] == pytest.approx(6000 / 1.15, rel=0.02)


@pytest.mark.extended
def test_a_speedup_is_better_and_unchanged_runs_are_the_same():
    write_nights([*steady(25), *steady(5, 6900, seed=2)])
    assert regress().document().verdict == "better"
    write_nights(steady(30, seed=3), prefix="q1", experiment="nexmark-q1", experiment_digest="d7")
    found = regress()
    assert {row["experiment"]: row["verdict"] for row in found.rows("regression")} == {"nexmark-q1": "same"}
    assert regress("nexmark-q1").document().verdict == "same"


def test_too_few_runs_are_unknown():
    write_nights(steady(7))
    found = regress()
    assert found.document().verdict == "unknown"
    (row,) = found.rows("regression")
    assert row["why"].startswith("too few runs")
    assert row["effect"] is None


def test_results_that_were_never_lost_must_not_be(home):
    names = write_nights(steady(12))
    for number, name in enumerate(names):
        lost = 3 if number == 11 else 0
        row = {"window_start_ns": 0, "window_end_ns": 1, "exact": 9, "emitted": 9, "duplicated": 0, "wrong": 0}
        frame = store.pa.Table.from_pylist([row | {"lost": lost}])
        store.finished(name).write_table("quality", frame)
    entry = regress().document().experiments[0]
    assert entry.verdict == "worse"
    assert entry.sentences == ["worse: lost 0 results instead of 0, +3 at the most"]


@pytest.mark.extended
def test_a_slowdown_stays_worse_and_never_becomes_its_own_baseline():
    slow_nights()
    for night in range(30, 34):
        write_nights(steady(1, 6000 / 1.15, seed=night), first=night)
        assert regress().document().verdict == "worse", night
    aside = records.set_aside()
    assert {f"night-{night:03d}" for night in range(26, 34)} <= aside
    candidates = {f"night-{night:03d}" for night in range(29, 34)}
    assert aside & baseline_run_ids() == candidates


@pytest.mark.extended
def test_a_slowdown_that_nobody_judged_becomes_no_baseline():
    """Forty slow nights without a comparison: all of the latest 20 before the candidates are slow."""
    names = write_nights([*steady(20), *steady(40, 6000 / 1.15, seed=2)])
    document = regress().document()
    assert document.verdict == "worse"
    assert document.experiments[0].baseline == names[:20]
    assert names[20] not in baseline_run_ids()


@pytest.mark.extended
def test_what_was_slow_and_was_mended_is_no_baseline_either():
    names = write_nights([*steady(15), *steady(15, 6000 / 1.15, seed=2), *steady(15, seed=3)])
    assert regress().document().experiments[0].baseline == names[5:15] + names[30:40]


@pytest.mark.parametrize(
    ("steps", "worse"),
    [
        ([(10, 1.0, 1.2)], [(10, 30)]),
        ([(10, 1.0, 0.8)], []),
        ([(5, 1.0, 1.2), (20, 1.2, 1.0)], [(5, 20)]),
        ([(5, 1.0, 1.2), (20, 1.2, 1.15)], [(5, 20), (20, 30)]),
        ([(5, 1.0, 0.8), (20, 0.8, 1.0)], [(20, 30)]),
    ],
)
def test_a_level_is_worse_by_the_best_one_before(steps, worse):
    found = [ChangePoint(place, np.log(before), np.log(after), 0.001) for place, before, after in steps]
    places = list(worse_places(METRICS["checkpoint_s"], found, 30))
    assert places == [range(*each) for each in worse]


@pytest.mark.extended
def test_a_change_of_seeds_is_no_change_of_the_level():
    write_nights(steady(20), seed=1)
    write_nights(steady(7, 3000, seed=2), first=20, seed=2)
    found = regress()
    assert found.document().verdict == "unknown"
    (row,) = found.rows("regression")
    assert row["why"].endswith("the seeds were changed, and runs before had other faults")
    assert found.rows("change_points") == []


@pytest.mark.extended
@pytest.mark.parametrize("count", range(1, 8))
def test_runs_under_a_new_seed_are_unknown_until_it_has_come_back(count):
    """However bad they are: it cannot be said whether the seed is the reason, but they are judged."""
    write_nights(steady(30))
    assert regress().document().verdict == "same"
    new = write_nights(steady(count, 2000, seed=2), first=30, seed=2)
    found = regress()
    (entry,) = found.document().experiments
    assert (entry.verdict, entry.candidates[-1]) == ("unknown", new[-1])
    assert "the seeds were changed" in found.rows("regression")[0]["why"]


@pytest.mark.extended
def test_a_slowdown_is_found_beside_a_seed_that_was_added():
    for night in range(25):
        rate = 6000 * (1 + 0.01 * (7 * night % 5)) / (1.3 if night >= 20 else 1)
        write_run(f"n{night:02d}-s1", night, seed=1, facts={"service_rate": rate})
    write_run("n24-s2", 24.5, seed=2, facts={"service_rate": 6000.0})
    assert regress().document().verdict == "worse"


@pytest.mark.extended
def test_a_change_is_found_beside_one_of_seeds():
    """Seeds 1 and 2 until night 15, then 2 and 3; all become slower at night 22."""
    for night in range(30):
        for seed in (1, 2) if night < 15 else (2, 3):
            rate = (
                6000 * (1.3 if seed == 3 else 1) / (1.3 if night >= 22 else 1) * (1 + 0.01 * ((7 * night + seed) % 5))
            )
            write_run(f"n{night:02d}-s{seed}", night + seed / 10, seed=seed, facts={"service_rate": rate})
    (change,) = regress().rows("change_points")
    assert (change["run_id"], change["verdict"]) == ("n22-s2", "worse")


@pytest.mark.extended
def test_no_level_crosses_a_change_of_the_seeds():
    steady_under_1 = write_nights(steady(20), seed=1)
    stepped_under_2 = write_nights([*steady(12, 3000, seed=2), *steady(12, 4500, seed=3)], first=20, seed=2)
    (series,) = history.latest_series()
    before, after = levels(series, METRICS["service_rate"])
    assert [(each.first, each.last) for each in (before, after)] == [
        (stepped_under_2[0], stepped_under_2[11]),
        (stepped_under_2[12], stepped_under_2[-1]),
    ]
    assert (before.value, after.value) == (pytest.approx(3000, rel=0.02), pytest.approx(4500, rel=0.02))
    assert longest_stretch(series, METRICS["service_rate"]) == 24 > len(steady_under_1)
    assert longest_stretch(series, METRICS["lost"]) == 0


@pytest.mark.extended
def test_only_what_has_new_runs_is_judged():
    write_nights(steady(10))
    write_nights(steady(10), prefix="q1", experiment="nexmark-q1", experiment_digest="d7")

    def judged(experiment=None):
        return {entry.experiment for entry in regress(experiment).document().experiments}

    assert judged() == {"wordcount", "nexmark-q1"}
    write_nights(steady(1, seed=2), first=10)
    assert judged() == {"wordcount"}
    assert judged() == {"wordcount"}, "asked again, the same is said again"
    assert judged("nexmark-q1") == {"nexmark-q1"}


@pytest.mark.extended
def test_a_look_at_one_experiment_does_not_silence_the_night():
    write_nights(steady(30))
    write_nights(steady(30), prefix="q1", experiment="nexmark-q1", experiment_digest="d7")
    regress()
    write_nights(steady(5, 3000, seed=2), first=30)
    write_nights(steady(1, seed=2), first=30, prefix="q1", experiment="nexmark-q1", experiment_digest="d7")
    assert regress("wordcount").document().verdict == "worse"
    found = regress().document()
    assert (found.verdict, len(found.experiments)) == ("worse", 2)


def test_runs_that_are_all_pinned_are_unknown(home):
    names = write_nights(steady(5))
    (home / "baselines.yaml").write_text(f"wordcount: [{', '.join(names)}]\n")
    assert [regress().document().verdict for _ in range(2)] == ["unknown", "unknown"]


def test_pins_that_are_all_of_another_version_of_the_experiment_are_told(home):
    old = write_nights(steady(6), experiment_digest="d0")
    new = write_nights(steady(8), first=6)
    pins = home / "baselines.yaml"
    pins.write_text(f"wordcount: [{', '.join(old)}]\n")
    found = regress()
    (entry,) = found.document().experiments
    assert (entry.baseline, entry.pinned, entry.notes) == (new[:3], False, [PINS_PASSED_OVER])
    assert PINS_PASSED_OVER in report(found.document(), found.rows("regression"), [{}]).splitlines()
    for others in (f"wordcount: [{old[0]}, {new[0]}]\n", f"nexmark-q1: [{old[0]}]\n"):
        pins.write_text(others)
        assert regress().document().experiments[0].notes == []


@pytest.mark.extended
def test_after_a_repair_all_is_the_same_again():
    slow_nights()
    regress()
    write_nights(steady(5, seed=4), first=30)
    assert regress().document().verdict == "same"


@pytest.mark.extended
def test_a_pinned_baseline_accepts_a_change(home):
    names = slow_nights()
    regress()
    write_nights(steady(5, 6000 / 1.15, seed=4), first=30)
    (home / "baselines.yaml").write_text(f"wordcount: [{', '.join(names[25:])}]\n")
    document = regress().document()
    assert document.experiments[0].pinned
    assert document.verdict in ("same", "unknown")


def test_a_metric_that_a_seed_does_not_tell_any_more_is_not_called_the_same(home):
    for night in range(25):
        for seed in (3, 9):
            told = {"service_rate": 6000.0} | ({} if night >= 20 and seed == 9 else {"sustainable_rate": 9000.0})
            write_run(f"n{night:02d}-s{seed}", night + seed / 10, seed=seed, facts=told)
    rows = {row["metric"]: row for row in regress().rows("regression")}
    assert rows["service_rate"]["verdict"] == "same"
    assert rows["sustainable_rate"]["verdict"] == "unknown"
    assert "only those on one side measured it" in rows["sustainable_rate"]["why"]


@pytest.mark.parametrize(
    ("slower", "seeds", "verdict"),
    [
        (2.0, {9}, "unknown"),
        (1.0, (), "unknown"),
        (0.5, {3}, "unknown"),
        (2.0, {3}, "worse"),
    ],
)
def test_a_seed_without_a_pinned_run_is_not_called_the_same(home, slower, seeds, verdict):
    for night in range(14):
        for seed in (3, 9):
            rate = 6000 * (1 + 0.01 * (7 * night % 5)) / (slower if night >= 9 and seed in seeds else 1)
            write_run(f"n{night:02d}-s{seed}", night + seed / 10, seed=seed, facts={"service_rate": rate})
    (home / "baselines.yaml").write_text(f"wordcount: [{', '.join(f'n{night:02d}-s3' for night in range(5))}]\n")
    found = regress()
    assert found.document().verdict == verdict
    if verdict == "unknown":
        assert found.rows("regression")[0]["why"] == "the baseline has no run of a seed that was judged"


@pytest.mark.extended
def test_baselines_must_not_be_deleted(home):
    names = write_nights(steady(30))
    older = write_nights(steady(12), prefix="older", experiment_digest="d0")
    write_run("stray", 99, experiment="once", experiment_digest="d9")
    assert baseline_run_ids() == {*names[5:], *older}
    (home / "baselines.yaml").write_text(f"wordcount: [{names[0]}]\n")
    assert names[0] in baseline_run_ids()


def test_nights_of_an_older_version_must_not_be_deleted_either(home):
    """They are the baseline again once their tables have been computed again."""
    older = write_nights(steady(12), schema_version=SCHEMA_VERSION - 1)
    newest = write_nights(steady(1), first=12)
    assert baseline_run_ids() == {*older, *newest}


def test_a_record_is_whole_typed_and_listed_newest_first(home):
    write_nights(steady(10))
    found = [regress() for _ in range(3)]
    assert {each.regression_id for each in records.all_recorded()} == {each.regression_id for each in found}
    listed = [each.regression_id for each in records.all_recorded()]
    assert listed == sorted(listed, reverse=True)
    for name, schema in COMPARISON_SCHEMAS.items():
        table = pq.read_schema(found[0].path(name))
        assert table.remove_metadata().equals(schema)
        assert VERSION_KEY in table.metadata
    (home / "regressions" / ".regression-unfinished").mkdir()
    (home / "regressions" / "notes").mkdir()
    assert len(records.all_recorded()) == 3


@pytest.mark.parametrize("name", ["../runs", "regression-20261120-000000-abcd", "", "notes"])
def test_only_recorded_ids_are_found(name):
    with pytest.raises(BadInput, match="recorded regression"):
        records.recorded(name)


def test_a_table_has_one_of_two_names():
    write_nights(steady(10))
    with pytest.raises(BadInput, match="change_points"):
        regress().rows("../regression")


def test_without_runs_there_is_nothing_to_judge():
    with pytest.raises(BadInput, match="finished runs"):
        regress()
    write_nights(steady(3), machine=None)
    with pytest.raises(BadInput, match="'wordcount'"):
        regress("wordcount")


def test_runs_on_a_machine_of_another_speed_are_left_out_and_told():
    """A machine that is a sixth slower makes all work slower: no regression, but nothing is known yet either."""
    fast = write_nights(steady(20), machine_speed=50.0)
    slow = write_nights(steady(5, 6000 / 1.2, seed=2), first=20, machine_speed=41.7)
    found = regress()
    (entry,) = found.document().experiments
    assert (entry.verdict, entry.candidates, entry.baseline, entry.sentences) == ("unknown", slow, [], [])
    assert entry.notes == [
        "20 runs left out: the machine has speed 41.7 now, and had 50 then, in pieces of work a second"
    ]
    assert " ".join(entry.notes) in " ".join(report(found.document(), found.rows("regression"), [{}]).split())
    assert found.rows("change_points") == []
    write_nights(steady(20, 6000 / 1.2, seed=3), first=25, machine_speed=43.0)
    assert regress().document().verdict == "same"
    assert baseline_run_ids() >= {*fast[-5:], *slow}


def test_a_slowdown_on_a_machine_as_fast_as_before_is_found():
    write_nights(steady(20), machine_speed=50.0)
    write_nights(steady(5, 6000 / 1.2, seed=2), first=20, machine_speed=47.0)
    (entry,) = regress().document().experiments
    assert (entry.verdict, entry.notes) == ("worse", [])


@pytest.mark.parametrize(("before", "now"), [(None, 41.7), (50.0, None)])
def test_a_speed_that_was_not_measured_is_taken_to_be_the_same(before, now):
    write_nights(steady(20), machine_speed=before)
    write_nights(steady(5, 6000 / 1.2, seed=2), first=20, machine_speed=now)
    (entry,) = regress().document().experiments
    assert (entry.verdict, entry.notes) == ("worse", [])


def test_no_level_crosses_a_change_of_the_machine_s_speed():
    """The page of histories shows the runs of all speeds, and calls a change of the machine no change of the level."""
    names = write_nights([*steady(14), *steady(14, 6000 / 1.3, seed=2)], machine_speed=50.0)
    write_nights(steady(14, 3000, seed=3), first=28, machine_speed=41.7)
    (series,) = history.all_series()
    (change,) = changes(series, METRICS["service_rate"])
    assert (change["run_id"], change["verdict"]) == (names[14], "worse")
