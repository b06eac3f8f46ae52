"""How fast a topology of 1,000 tasks is scored, with what is built for it: under 5 ms. Plain Python beside it.

.venv/bin/pytest benchmarks/speed/test_fidelity_speed.py
"""

import numpy as np
import pytest

from models.fidelity import Scorer, score
from models.topology import InputCorrelation, Topology, parse_topology

SETS = 1000
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


def plain_output_fidelity(topology: Topology, failed: list[bool]) -> float:
    """Eqs. 1 to 4, task by task and substream by substream."""
    rates = [rate for operator in topology.operators for rate in operator.output_rates]
    loss = [0.0] * len(rates)
    for operator in topology.operators:
        span = topology.span[operator.name]
        by_stream = []
        for stream in topology.inputs_of[operator.name]:
            sources, targets = (ends.tolist() for ends in topology.links(stream))
            fan_out = dict.fromkeys(sources, 0)
            for source in sources:
                fan_out[source] += 1
            total, lost = dict.fromkeys(targets, 0.0), dict.fromkeys(targets, 0.0)
            for source, target in zip(sources, targets, strict=True):
                rate = rates[source] / fan_out[source]
                total[target] += rate
                lost[target] += rate * loss[source]
            by_stream.append((total, lost))
        for task in range(span.start, span.stop):
            if failed[task]:
                loss[task] = 1.0
            elif by_stream and operator.inputs is InputCorrelation.CORRELATED:
                kept = 1.0
                for total, lost in by_stream:
                    kept *= 1.0 - lost[task] / total[task]
                loss[task] = 1.0 - kept
            elif by_stream:
                loss[task] = sum(lost[task] for _, lost in by_stream) / sum(total[task] for total, _ in by_stream)
    sinks = [task for sink in topology.sinks for task in range(*topology.span[sink.name].indices(len(rates)))]
    return 1.0 - sum(rates[task] * loss[task] for task in sinks) / sum(rates[task] for task in sinks)


@pytest.fixture(params=CHAINS)
def topology(request: pytest.FixtureRequest) -> Topology:
    """A topology of each size of `CHAINS`."""
    return topology_of(request.param)


@pytest.fixture
def failed(topology: Topology) -> np.ndarray:
    """Sets of failed tasks, (SETS, tasks); 2 % of the tasks have failed in each."""
    return np.random.default_rng(2).random((SETS, len(topology.tasks))) < 0.02


def test_one_failure_set_with_what_is_built_for_it(benchmark, topology, failed):
    found = benchmark(lambda: Scorer(topology).output_fidelity(failed[0]))
    assert found == pytest.approx(plain_output_fidelity(topology, failed[0].tolist()))


def test_both_qualities_of_one_failure_set(benchmark, topology, failed):
    assert 0 < benchmark(score, topology, failed[0]).internal_completeness < 1


def test_one_failure_set_in_plain_python(benchmark, topology, failed):
    benchmark.pedantic(plain_output_fidelity, (topology, failed[0].tolist()), rounds=3)


def test_1000_failure_sets(benchmark, topology, failed):
    found = benchmark(Scorer(topology).output_fidelity, failed)
    assert found[7] == pytest.approx(plain_output_fidelity(topology, failed[7].tolist()))
