"""Which runs are compared with which."""

import pytest

from experiments.errors import BadInput
from results.regression import history
from results.summary.metrics import METRICS
from tests.unit.results.regression.past import steady, write_nights, write_run

pytestmark = pytest.mark.usefixtures("home")


def the_split(set_aside=(), pins=None):
    (series,) = history.latest_series()
    return history.split(series, set_aside, pins or {})


def ids(runs):
    return [run.run_id for run in runs]


@pytest.mark.extended
def test_the_latest_five_runs_are_held_against_the_twenty_before_them():
    names = write_nights(steady(30))
    found = the_split()
    assert ids(found.candidates) == names[-5:]
    assert ids(found.baseline) == names[5:-5]
    assert not found.pinned


def test_a_short_history_has_a_short_baseline_or_none():
    names = write_nights(steady(7))
    assert (ids(the_split().candidates), ids(the_split().baseline)) == (names[-5:], names[:2])


def test_runs_that_were_worse_are_no_baseline():
    names = write_nights(steady(12))
    assert ids(the_split(set_aside=names[5:7]).baseline) == names[:5]


def test_a_pinned_baseline_stays():
    names = write_nights(steady(14))
    found = the_split(set_aside=names[:7], pins={"wordcount": names[:6]})
    assert ids(found.baseline) == names[:6]
    assert found.pinned
    assert not the_split(pins={"another": names[:6]}).pinned


@pytest.mark.parametrize("later", [0, 2, 7])
def test_a_pinned_level_is_not_judged_by_runs_before_it(later):
    names = write_nights(steady(14 + later))
    found = the_split(pins={"wordcount": names[8:14]})
    assert ids(found.candidates) == names[14:][-5:]


def test_seeds_that_come_back_are_compared_each_with_its_own():
    for night in range(10):
        for seed in (1, 2):
            write_run(f"n{night}-s{seed}", night + seed / 10, seed=seed, facts={"service_rate": 5000.0 * seed})
    found = the_split()
    assert len(found.strata) == 2
    for seed, (candidates, baseline) in enumerate(found.strata, 1):
        assert ids(candidates) == [f"n{night}-s{seed}" for night in range(5, 10)]
        assert ids(baseline) == [f"n{night}-s{seed}" for night in range(5)]
    (alternating,) = [each for each in history.stretches(history.latest_series()[0].runs) if len(each) > 1]
    values = history.levelled(METRICS["service_rate"], alternating)
    assert values == pytest.approx(values[0])


def test_seeds_that_are_new_each_night_are_compared_together():
    for night in range(10):
        write_run(f"n{night}", night, seed=night)
    assert ids(the_split().candidates) == [f"n{night}" for night in range(5, 10)]


def test_a_seed_that_is_no_longer_used_is_left_out():
    write_nights(steady(10), prefix="old", seed=1)
    names = write_nights(steady(12), first=10, seed=2)
    assert ids(the_split().candidates) == names[-5:]
    assert ids(the_split().baseline) == names[:-5]


@pytest.mark.extended
def test_new_seeds_are_not_held_against_the_old_ones():
    write_nights(steady(20), prefix="old", seed=1)
    names = write_nights(steady(7), first=20, seed=2)
    found = the_split()
    assert (ids(found.candidates), ids(found.baseline), found.reseeded) == (names[-5:], names[:2], True)
    names += write_nights(steady(5), first=27, seed=2)
    assert (ids(the_split().baseline), the_split().reseeded) == (names[:-5], False)


@pytest.mark.extended
def test_seeds_that_are_new_each_night_are_compared_since_the_old_one_was_given_up():
    write_nights(steady(20), prefix="old", seed=1)
    names = [f"night-{number:03d}" for number in range(12)]
    for number, name in enumerate(names):
        write_run(name, 20 + number, seed=20 + number)
    found = the_split()
    assert (ids(found.candidates), ids(found.baseline), found.reseeded) == (names[-5:], names[:-5], True)


@pytest.mark.extended
def test_a_history_falls_into_stretches_of_the_same_seeds():
    for night in range(30):
        for seed in (1, 2) if night < 15 else (2, 3):
            write_run(f"n{night:02d}-s{seed}", night + seed / 10, seed=seed)
    (series,) = history.latest_series()
    found = [{run.facts["seed"] for run in stretch} for stretch in history.stretches(series.runs) if len(stretch) > 2]
    assert found == [{1, 2}, {2, 3}]
    assert [run for stretch in history.stretches(series.runs) for run in stretch] == list(series.runs)


@pytest.mark.extended
@pytest.mark.parametrize(
    "difference",
    [
        {"experiment_digest": "d2"},
        {"machine": "another"},
        {"state": "failed"},
        {"machine": None},
        {"schema_version": 0},
    ],
    ids=str,
)
def test_only_runs_of_the_same_on_the_same_are_compared(difference):
    names = write_nights(steady(12))
    write_nights(steady(3), first=5, prefix="other", **difference)
    found = {series.digest + series.machine: ids(series.runs) for series in history.all_series()}
    assert found["d1a machine"] == names


def test_only_the_experiment_as_it_is_run_now_is_followed():
    write_nights(steady(3), prefix="before", experiment_digest="d0")
    write_nights(steady(3), first=3)
    write_nights(steady(3), first=1, prefix="elsewhere", machine="another")
    assert {(series.digest, series.machine) for series in history.latest_series()} == {
        ("d1", "a machine"), ("d1", "another")
    }  # fmt: skip
    assert len(history.all_series()) == 3


def test_an_experiment_can_be_named():
    write_nights(steady(2))
    write_nights(steady(2), prefix="q1", experiment="nexmark-q1")
    assert [series.experiment for series in history.latest_series("nexmark-q1")] == ["nexmark-q1"]
    assert history.latest_series("nothing") == []


def test_pins_are_read(home):
    assert history.read_pins() == {}
    names = write_nights(steady(2))
    (home / "baselines.yaml").write_text(f"wordcount: [{', '.join(names)}]\n")
    assert history.read_pins() == {"wordcount": names}


@pytest.mark.parametrize("text", ["wordcount: night-000", "wordcount: []", "wordcount: [../x]", "wordcount: [gone]",
                                  "wordcount: [7]", "- night-000", "wordcount: {a: b}"])  # fmt: skip
def test_bad_pins_are_refused_in_one_line(home, text):
    write_nights(steady(1))
    (home / "baselines.yaml").write_text(text)
    with pytest.raises(BadInput, match=r"baselines\.yaml") as refused:
        history.read_pins()
    assert "\n" not in str(refused.value)


def test_runs_named_by_hand_under_other_seeds_are_not_compared():
    write_nights(steady(5), prefix="old", seed=1)
    write_nights(steady(3, 2000), prefix="new", first=5, seed=2)
    runs = history.latest_series()[0].runs
    found = history.stratified(runs[5:], runs[:5])
    assert found.reseeded
    assert not any(all(sides) for sides in found.strata)
    assert len(history.stratified(runs[2:5], runs[:2]).strata) == 1
