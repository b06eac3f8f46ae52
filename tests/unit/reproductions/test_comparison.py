"""Means and errors of a comparison, by hand."""

import pandas as pd
import pytest

from reproductions.catalogue import CATALOGUE
from reproductions.comparison import by_algorithm, never_above, often_optimal, plot_comparison, summarize
from reproductions.judging import judge
from reproductions.reproduction import Computed
from tests.unit.reproductions.verdicts import NOTHING


def row(setting, share, algorithm, value, bound=3.0, **more):
    return {"setting": setting, "share": share, "algorithm": algorithm, "value": value, "bound": bound} | more


def test_means_and_errors_by_hand():
    rows = [row("s", 0.5, "A", value) for value in (1.0, 2.0, 3.0)] + [
        row("s", 0.5, "B", value) for value in (0.5, 1.5)
    ]
    table = summarize(rows).set_index("algorithm")
    assert table.loc["A", ["problems", "mean", "std"]].tolist() == [3, 2.0, 1.0]
    assert table.loc["A", "standard_error"] == pytest.approx(1 / 3**0.5)
    assert table.loc["B", "standard_error"] == pytest.approx(0.5)
    assert "proved_share" not in table


def test_the_share_that_is_proved_is_of_the_algorithm_that_proves():
    rows = [
        row("s", 0.5, "exact", 1.0, proved=True),
        row("s", 0.5, "exact", 1.0, proved=False),
        row("s", 0.5, "A", 1.0),
    ]
    shares = summarize(rows).set_index("algorithm")["proved_share"]
    assert shares["exact"] == 0.5
    assert pd.isna(shares["A"])


def test_algorithms_become_columns():
    rows = [row("s", share, name, share * factor) for share in (0.1, 0.2) for name, factor in (("A", 1), ("B", 2))]
    means = by_algorithm(summarize(rows))
    assert means["B"].tolist() == [0.2, 0.4]
    assert means.loc[("s", 0.2), "A"] == 0.2


def test_the_least_room_is_of_one_problem_and_not_of_the_means():
    rows = [row("s", 0.5, "A", value, bound) for value, bound in ((1.0, 3.0), (2.0, 2.5), (2.5, 3.5))]
    assert summarize(rows)["least_room"].tolist() == [0.5]


@pytest.mark.parametrize(("highest", "verdict"), [(1.0, "pass"), (1.0 + 1e-12, "pass"), (1.001, "fail")])
def test_one_value_in_a_hundred_that_is_above_its_bound_shows(highest, verdict):
    rows = [row("s", 0.5, "A", value, bound=1.0) for value in [0.2] * 99 + [highest]]
    check = never_above("it", "nothing above", NOTHING)
    found = judge(check, Computed("it", summarize(rows)))
    assert found["verdict"] == verdict
    assert "of 100 values" in found["observed"]


def test_problems_of_which_nothing_can_be_reached_give_no_weight_to_those_beside_them():
    rows = [row("s", 0.1, "A", 0.0, bound=0.0)] * 9 + [row("s", 0.1, "A", 1.0, bound=1.0)]
    rows += [row("s", 0.5, "A", 0.9, bound=1.0)] * 10
    check = often_optimal("it", "A", 0.5, "on half of all problems", NOTHING)
    found = judge(check, Computed("it", summarize(rows)))
    assert (found["verdict"], found["observed"]) == ("fail", "on 9% of 11 problems")


def test_bars_of_a_few_problems_are_as_wide_as_students_t_has_them():
    table = summarize([row("s", 0.5, "A", value) for value in (1.0, 2.0, 3.0)])
    (axes,) = plot_comparison(table, "share", "value").axes
    ((bar,),) = (each.get_segments() for each in axes.collections)
    half = 4.30265 / 3**0.5  # t of two degrees of freedom
    assert bar[:, 1].tolist() == pytest.approx([2 - half, 2 + half], rel=1e-5)


def test_the_mean_that_is_judged_is_the_one_that_is_told():
    """With all the resources every plan is equal, which says nothing: one such point would halve the mean."""
    values = {(0.5, "DP"): 1.0, (0.5, "BestDensity"): 0.98, (1.0, "DP"): 1.0, (1.0, "BestDensity"): 1.0}
    table = summarize(row("s", share, name, value, bound=1.0) for (share, name), value in values.items())
    check = next(each for each in CATALOGUE["incremental/fig-16a"].checks if each.name == "best_density.close_to_dp")
    found = judge(check, Computed("it", table))
    assert found["verdict"] == "fail"
    assert found["observed"] == "2.00% below DP at most, 2.00% on average where resources are scarce"
