"""Random topologies, to compare replication planners on.

Source: `ppa`, section VI-C and the caption of its figure 14: 5 to 10 operators; the parallelism of an operator a random
number in a range; the workloads of an operator's tasks uniform or Zipf with exponent 0.1; structured or full; no
operators or 50 % of them joins. The paper leaves open, and this chooses:

- The shape is a tree with one sink, as in all of its figures, in which every operator has at most two input streams.
  A tree of n operators has at most (n - 1) / 2 with two inputs, so 50 % joins means as many as a tree has room for.
- A source task emits 1 per second on average, and selectivity is 1: an operator emits what it receives. "Uniform" is
  an equal share for every task. Zipf ranks go to the tasks at random: which keys are heavy does not hang on an index.
- A structured topology is one-to-one, split or merge wherever the two parallelisms say so.

The shape, parallelisms and ranks depend only on the seed, not on the kind, exponent and joins. So these can be compared
on the same topologies. The joins of a smaller share are among those of a larger share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from experiments.errors import BadInput
from models.inputs import require, require_count
from models.replication.parts import PartKind
from models.topology import InputCorrelation, Partitioning, Topology, parse_topology


@dataclass(frozen=True)
class TopologySpec:
    """What random topologies have in common; ranges include both of their ends.

    operators        range of the number of operators
    parallelism      range of the number of tasks of an operator
    kind             structured or full
    zipf_exponent    skew of the workloads within an operator, 0 (uniform) to 10
    join_share       share of the operators that join their inputs, 0 to 1; never more than have two
    two_input_share  share of the operators that have two input streams, 0 to 1; never more than a tree has room for
    """

    operators: tuple[int, int] = (5, 10)
    parallelism: tuple[int, int] = (1, 10)
    kind: PartKind = PartKind.STRUCTURED
    zipf_exponent: float = 0.1
    join_share: float = 0.0
    two_input_share: float = 0.5

    def __post_init__(self) -> None:
        for field in ("operators", "parallelism"):
            low, high = getattr(self, field)
            require_count(f"{field}.low", low)
            require_count(f"{field}.high", high, low)
        if not isinstance(self.kind, PartKind):
            raise BadInput("kind", self.kind, " or ".join(map(repr, PartKind)))
        require("zipf_exponent", self.zipf_exponent, 0 <= self.zipf_exponent <= 10, "a number from 0 to 10")
        for field in ("join_share", "two_input_share"):
            require(field, getattr(self, field), 0 <= getattr(self, field) <= 1, "a share from 0 to 1")


def generate(rng: np.random.Generator, spec: TopologySpec) -> Topology:
    """Draw a topology; its operators are O1 to On, On the sink."""
    count = int(rng.integers(spec.operators[0], spec.operators[1], endpoint=True))
    downstream = _random_tree(rng, count, min(_rounded(spec.two_input_share * count), (count - 1) // 2))
    parallelism = rng.integers(spec.parallelism[0], spec.parallelism[1], endpoint=True, size=count).tolist()
    ranks = [rng.permutation(tasks) for tasks in parallelism]
    inputs = np.bincount(downstream[:-1], minlength=count)
    joins = set(rng.permutation(np.flatnonzero(inputs == 2))[: _rounded(spec.join_share * count)].tolist())
    shares = [_zipf(rank, spec.zipf_exponent) for rank in ranks]
    rates = _rates(downstream, shares)
    operators = [_operator(i, rates[i], i in joins) for i in range(count)]
    streams = [_stream(i, downstream[i], parallelism, spec.kind) for i in range(count - 1)]
    return parse_topology({"operators": operators, "streams": streams})


def _rounded(value: float) -> int:
    """To the nearest whole number, halves up."""
    return int(np.floor(value + 0.5))


def _random_tree(rng: np.random.Generator, count: int, two_inputs: int) -> list[int]:
    """The downstream neighbour of each operator (of the last one, the sink: itself), every one after its inputs.

    Uniform among the ordered trees with that many operators of two inputs and the rest of one or none. By the cycle
    lemma exactly one rotation of a sequence of numbers of inputs, which sum to count - 1, is a tree read from its root.
    """
    one_input = count - 1 - 2 * two_inputs
    inputs = rng.permutation(np.repeat([2, 1, 0], [two_inputs, one_input, two_inputs + 1]))
    inputs = np.roll(inputs, -1 - int(np.argmin(np.cumsum(inputs - 1))))
    downstream = [count - 1] * count
    open_inputs: list[int] = []
    for place, fan_in in enumerate(inputs.tolist()):
        if open_inputs:
            downstream[count - 1 - place] = open_inputs.pop()
        open_inputs.extend([count - 1 - place] * fan_in)
    return downstream


def _zipf(ranks: npt.NDArray[np.intp], exponent: float) -> npt.NDArray[np.float64]:
    """Each task's share of its operator's workload, by its rank from 0."""
    weights = (ranks + 1.0) ** -exponent
    return weights / weights.sum()


def _rates(downstream: list[int], shares: list[npt.NDArray[np.float64]]) -> list[npt.NDArray[np.float64]]:
    """The output rate of every task [1/s]."""
    totals = [0.0] * len(downstream)
    for i, below in enumerate(downstream):
        totals[i] = totals[i] or float(len(shares[i]))
        if below != i:
            totals[below] += totals[i]
    return [total * share for total, share in zip(totals, shares, strict=True)]


def _operator(index: int, rates: npt.NDArray[np.float64], joins: bool) -> dict[str, Any]:
    inputs = InputCorrelation.CORRELATED if joins else InputCorrelation.INDEPENDENT
    return {"name": f"O{index + 1}", "parallelism": rates.size, "inputs": inputs, "output_rates": rates.tolist()}


def _stream(source: int, target: int, parallelism: list[int], kind: PartKind) -> dict[str, Any]:
    up, down = parallelism[source], parallelism[target]
    partitioning = Partitioning.MERGE if up > down else Partitioning.SPLIT if up < down else Partitioning.ONE_TO_ONE
    if kind is PartKind.FULL:
        partitioning = Partitioning.FULL
    return {"from": f"O{source + 1}", "to": f"O{target + 1}", "partitioning": partitioning}
