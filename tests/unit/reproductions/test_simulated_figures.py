"""The comparison of simulation and model notices a model that is off, and a single point that is."""

import numpy as np
import pandas as pd
import pytest

from models.utilization import utilization
from reproductions.judging import judge
from reproductions.reproduction import Computed
from reproductions.utilization import simulated as module


def compute(runs):
    told = []
    table = module.simulated(module.ONE_PROCESS, runs, lambda done, total: told.append((done, total)))
    assert told == [(done, 80) for done in range(80)]
    return table


def verdicts(table):
    return [judge(check, Computed("it", table))["verdict"] for check in module.AGREEMENT]


def test_a_model_that_is_two_percent_off_fails(monkeypatch):
    monkeypatch.setattr(module, "utilization", lambda *inputs: 1.02 * utilization(*inputs))
    table = compute(runs=100)
    assert verdicts(table) == ["fail", "fail"]


@pytest.mark.parametrize(
    ("points", "off", "verdict"), [(80, 3.4, "pass"), (80, -3.55, "fail"), (240, -3.7, "pass"), (240, 3.85, "fail")]
)
def test_one_point_may_be_as_far_off_as_chance_puts_one_of_so_many(points, off, verdict):
    """With 5 % for all points together and Student's t of 250 runs: 3.46 standard errors of 80 points, 3.76 of 240."""
    table = pd.DataFrame({"runs": 250, "off_by_standard_errors": [off] + [0.5] * (points - 1)})
    row = judge(module.AGREEMENT[0], Computed("it", table))
    assert row["verdict"] == verdict
    assert str(row["observed"]).startswith(f"{abs(off):.2f} standard errors at most, 1 of {points} points more than 3;")


def test_the_same_seed_gives_the_same_table_and_more_runs_a_smaller_error():
    table, again, more = compute(20), compute(20), compute(80)
    assert table.equals(again)
    ratio = (more["standard_error"] / table["standard_error"]).mean()
    assert ratio == pytest.approx(0.5, abs=0.06)  # 1 / sqrt(4); each ratio scatters by about 1 / sqrt(2 * 19)


@pytest.mark.parametrize("depths", [module.ONE_PROCESS, module.TOPOLOGIES])
def test_points_span_the_optimum_of_every_panel(depths):
    points = list(module.points(depths))
    assert len(points) == 4 * len(depths) * 20
    for rate in module.RATES_PER_MIN:
        intervals = np.array([t for r, _, t in points if r == rate])
        assert (intervals > module.COST_MIN).all()
        assert intervals.min() < module.optimal_interval(rate, module.COST_MIN) < intervals.max()
