"""How fast a topology of 1,000 tasks is scored, with what is built for it: under 5 ms. Plain Python beside it.

.venv/bin/pytest benchmarks/speed/test_fidelity_speed.py
"""

import numpy as np
import pytest
from numpy.typing import NDArray
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.speed.plain_fidelity import plain_output_fidelity
from models.fidelity import Scorer, score
from models.topology import Topology, parse_topology

SETS, LONGEST_S = 1000, 0.005
CHAINS = {
    "structured": (100, 100, 50, 50, 150, 150, 200, 100, 60, 40),
    "full": (100,) * 10,
}


def topology_of(kind: str) -> Topology:
    """A chain of 1,000 tasks whose second half also joins the first operator's stream."""
    rng, widths = np.random.default_rng(1), CHAINS[kind]
    operators = [
        {
            "name": f"O{i}",
            "parallelism": width,
            "output_rates": rng.uniform(1, 9, width).tolist(),
            "inputs": "correlated" if i >= 5 else "independent",
        }
        for i, width in enumerate(widths)
    ]
    pairs = [(i, i + 1) for i in range(9)] + [(0, i) for i in range(6, 10)]
    streams = [
        {"from": f"O{i}", "to": f"O{j}", "partitioning": _partitioning(kind, widths[i], widths[j])} for i, j in pairs
    ]
    return parse_topology({"operators": operators, "streams": streams})


def _partitioning(kind: str, up: int, down: int) -> str:
    if kind == "full":
        return "full"
    return "one-to-one" if up == down else "merge" if up > down else "split"


@pytest.fixture(params=CHAINS)
def topology(request: pytest.FixtureRequest) -> Topology:
    """A topology of each size of `CHAINS`."""
    return topology_of(request.param)


@pytest.fixture
def failed(topology: Topology) -> NDArray[np.bool_]:
    """Sets of failed tasks, (SETS, tasks); 2 % of the tasks have failed in each."""
    return np.random.default_rng(2).random((SETS, len(topology.tasks))) < 0.02


def test_one_failure_set_with_what_is_built_for_it(
    benchmark: BenchmarkFixture, topology: Topology, failed: NDArray[np.bool_]
) -> None:
    found = benchmark(lambda: Scorer(topology).output_fidelity(failed[0]))
    assert found == pytest.approx(plain_output_fidelity(topology, failed[0].tolist()))
    assert benchmark.stats.stats.median < LONGEST_S


def test_both_qualities_of_one_failure_set(
    benchmark: BenchmarkFixture, topology: Topology, failed: NDArray[np.bool_]
) -> None:
    assert 0 < benchmark(score, topology, failed[0]).internal_completeness < 1


def test_one_failure_set_in_plain_python(
    benchmark: BenchmarkFixture, topology: Topology, failed: NDArray[np.bool_]
) -> None:
    benchmark.pedantic(plain_output_fidelity, (topology, failed[0].tolist()), rounds=3)


def test_1000_failure_sets(benchmark: BenchmarkFixture, topology: Topology, failed: NDArray[np.bool_]) -> None:
    found = benchmark(Scorer(topology).output_fidelity, failed)
    assert found[7] == pytest.approx(plain_output_fidelity(topology, failed[7].tolist()))
