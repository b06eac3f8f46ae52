"""The utilization model over a million points, and what one decision costs; beside each, the same in plain Python."""

import math
from typing import TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray
from pytest_benchmark.fixture import BenchmarkFixture

from models import partial_rollback
from models.gain import gain
from models.interval_estimator import IntervalEstimator
from models.utilization import optimal_interval, utilization

POINTS = 1_000_000
PLAIN_POINTS = 10_000  # of the same points: plain Python is timed on a hundredth and reported for what it is
RECOVERY, DELAY, DEPTH = 30.0, 0.5, 10
Floats: TypeAlias = NDArray[np.float64]
Points: TypeAlias = tuple[Floats, Floats, Floats]


@pytest.fixture(scope="module")
def points() -> Points:
    """Failure rates, checkpoint costs and intervals over the range that the model promises, c L from 1e-12 to 50."""
    rng = np.random.default_rng(1)
    rates = 10.0 ** rng.uniform(-6, 0, POINTS)
    costs = 10.0 ** rng.uniform(-12, math.log10(50), POINTS) / rates
    return rates, costs, costs * (1 + rng.uniform(0.1, 100, POINTS))


def plain_utilization(rate: float, cost: float, interval: float) -> float:
    """Eq. 10 as printed but for expm1."""
    delay = math.exp(-rate * (RECOVERY + (DEPTH - 1) * DELAY))
    return rate * (interval - cost) / math.expm1(rate * interval) * delay if rate * interval < 700 else 0.0


def plain_optimum(rate: float, cost: float) -> float:
    """T* by bisection of the condition that the paper solves by Lambert's W."""
    low, high = cost, cost + 1 / rate
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if -math.expm1(-rate * middle) > rate * (middle - cost) else (low, middle)
    return middle


def plain_gain(rate: float, cost: float, interval: float, other: float) -> float:
    """The ratio of eq. 10 at two intervals, less 1: it cancels where they are near."""
    growth = math.expm1(rate * other) / math.expm1(rate * interval) if rate * other < 700 else math.inf
    return (interval - cost) / (other - cost) * growth - 1


def plain_partial(rate: float, cost: float, interval: float, share: float) -> float:
    """Partial rollback of one process without recovery, by its series."""
    term, total, k = 1.0, 1.0, 1
    while term > 1e-17 * total:
        term *= rate * interval / (k + 1) * (1 - (1 - share) ** k)
        total, k = total + term, k + 1
    return (interval - cost) / interval / total


def columns(points: Points) -> list[tuple[float, ...]]:
    """The first `PLAIN_POINTS` points as tuples, for plain Python."""
    return list(zip(*(each[:PLAIN_POINTS].tolist() for each in points), strict=True))


@pytest.mark.benchmark(group="eq. 10")
def test_utilization_of_a_million_points(benchmark: BenchmarkFixture, points: Points) -> None:
    rates, costs, intervals = points
    found = benchmark(utilization, rates, costs, RECOVERY, intervals, DELAY, DEPTH)
    assert found.shape == (POINTS,)


@pytest.mark.benchmark(group="eq. 10")
def test_utilization_of_ten_thousand_points_in_plain_python(benchmark: BenchmarkFixture, points: Points) -> None:
    rows = columns(points)
    found = benchmark(lambda: [plain_utilization(*row) for row in rows])
    rates, costs, intervals = (each[:PLAIN_POINTS] for each in points)
    np.testing.assert_allclose(found, utilization(rates, costs, RECOVERY, intervals, DELAY, DEPTH), 1e-9, 1e-290)


@pytest.mark.benchmark(group="T*")
def test_optimal_interval_of_a_million_points(benchmark: BenchmarkFixture, points: Points) -> None:
    rates, costs, _ = points
    assert (benchmark(optimal_interval, rates, costs) > costs).all()


@pytest.mark.benchmark(group="T*")
def test_optimal_interval_of_ten_thousand_points_in_plain_python(benchmark: BenchmarkFixture, points: Points) -> None:
    rows = [row[:2] for row in columns(points)]
    found = benchmark(lambda: [plain_optimum(*row) for row in rows])
    # bisection of a difference that cancels: its digits end where c L reaches the rounding error
    np.testing.assert_allclose(found, optimal_interval(*(np.array(row) for row in zip(*rows, strict=True))), 1e-3)


@pytest.mark.benchmark(group="gain")
def test_gain_of_a_million_points(benchmark: BenchmarkFixture, points: Points) -> None:
    rates, costs, intervals = points
    assert (benchmark(gain, rates, costs, optimal_interval(rates, costs), intervals) > -1e-9).all()


@pytest.mark.benchmark(group="gain")
def test_gain_of_ten_thousand_points_in_plain_python(benchmark: BenchmarkFixture, points: Points) -> None:
    rates, costs, intervals = (each[:PLAIN_POINTS] for each in points)
    rows = list(zip(*(each.tolist() for each in (rates, costs, intervals, 2 * intervals)), strict=True))
    found = np.array(benchmark(lambda: [plain_gain(*row) for row in rows]))
    known = np.isfinite(found)
    wanted = np.asarray(gain(rates, costs, intervals, 2 * intervals))
    np.testing.assert_allclose(found[known], wanted[known], 1e-6, 1e-12)


@pytest.mark.benchmark(group="partial rollback")
def test_partial_rollback_of_ten_thousand_points(benchmark: BenchmarkFixture) -> None:
    intervals = np.linspace(6.0, 500.0, PLAIN_POINTS)
    found = benchmark(partial_rollback.utilization, 0.005, 5.0, 0.0, intervals, 0.2)
    assert found.shape == (PLAIN_POINTS,)


@pytest.mark.benchmark(group="partial rollback")
def test_partial_rollback_of_ten_thousand_points_in_plain_python(benchmark: BenchmarkFixture) -> None:
    intervals = np.linspace(6.0, 500.0, PLAIN_POINTS)
    found = benchmark(lambda: [plain_partial(0.005, 5.0, interval, 0.2) for interval in intervals.tolist()])
    np.testing.assert_allclose(found, partial_rollback.utilization(0.005, 5.0, 0.0, intervals, 0.2), 1e-12)


@pytest.mark.benchmark(group="decisions")
def test_optimal_interval_of_partial_rollback(benchmark: BenchmarkFixture) -> None:
    assert benchmark(partial_rollback.optimal_interval, 0.005, 5.0, 10.0, 0.1, 0.5, 50) > 5.0


@pytest.mark.benchmark(group="decisions")
def test_one_more_observation_and_recommendation(benchmark: BenchmarkFixture) -> None:
    estimator = IntervalEstimator(0.01, 3600.0).observe_time(500.0, 4).observe_checkpoint(1.0).observe_checkpoint(1.1)
    found = benchmark(lambda: estimator.observe_time(30.0).observe_checkpoint(1.05).recommend())
    assert found.low_s < found.interval_s < found.high_s
