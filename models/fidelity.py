"""Quality of tentative output: output fidelity, and internal completeness beside it.

Source: Su, Zhou, "Tolerating Correlated Failures in Massively Parallel Stream Processing Engines" (`ppa`), section
III-A; the equation numbers below are theirs. Where the paper propagates information loss IL, this propagates
completeness 1 - IL: a product of small losses keeps its digits, and the results stay within 0 and 1.

A failure set is a boolean vector over the tasks of a topology, true where a task has failed; every function takes an
array of shape (..., tasks) and scores all of its failure sets at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from models.topology import InputCorrelation, Partitioning, Topology, TopologyOperator, TopologyStream

MOST_AT_ONCE = 2_000_000  # tasks of failure sets that are scored together: some 50 MB, for any number of sets

Failures = npt.NDArray[np.bool_]
Completeness = npt.NDArray[np.float64]


class Quality(NamedTuple):
    """The quality of tentative output, both between 0 and 1."""

    output_fidelity: float
    internal_completeness: float


@dataclass(frozen=True)
class _InputStream:
    """An input stream of an operator: how complete it is for each task, and how fast without failures [1/s]."""

    completeness: Callable[[Completeness], Completeness]
    rates: npt.NDArray[np.float64]


class Scorer:
    """Scores failure sets of one topology; what depends on the topology alone is computed once, here."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self._output_rates = topology.values("output_rates")
        self._inputs = {o.name: [self._input(s) for s in topology.inputs_of[o.name]] for o in topology.operators}
        self._sinks = np.r_[tuple(topology.span[operator.name] for operator in topology.sinks)]

    def completeness(self, failed: Failures) -> Completeness:
        """1 - IL of every task's output, (..., tasks): eqs. 1 to 3; 0 for a failed task."""
        return self._propagate(failed, lambda operator: operator.inputs)

    def output_fidelity(self, failed: Failures) -> npt.NDArray[np.float64]:
        """OF of eq. 4, (...): the share of the sinks' output, weighted by rate, that is not lost."""
        rows = failed.reshape(-1, failed.shape[-1])
        chunks = np.array_split(rows, 1 + rows.size // MOST_AT_ONCE)
        return np.concatenate([self._output_fidelity(chunk) for chunk in chunks]).reshape(failed.shape[:-1])

    def _output_fidelity(self, failed: Failures) -> npt.NDArray[np.float64]:
        weights = self._output_rates[self._sinks]
        return np.clip(self.completeness(failed)[..., self._sinks] @ (weights / weights.sum()), 0.0, 1.0)

    def internal_completeness(self, failed: Failures) -> npt.NDArray[np.float64]:
        """IC, (...): tuples that all tasks process under the failure, over those that they process without it.

        Losses propagate as for independent inputs in every operator. A source task processes what it emits.
        """
        complete = self._propagate(failed, lambda operator: InputCorrelation.INDEPENDENT)
        processed = [self._processed(operator) for operator in self.topology.operators]
        weights = np.concatenate(processed)
        return np.clip(complete @ (weights / weights.sum()), 0.0, 1.0)

    def _processed(self, operator: TopologyOperator) -> npt.NDArray[np.float64]:
        """What each task of an operator processes without failures [1/s]."""
        streams = self._inputs[operator.name]
        if not streams:
            return np.asarray(operator.output_rates)
        return np.sum([stream.rates for stream in streams], axis=0)

    def _propagate(self, failed: Failures, kind: Callable[[TopologyOperator], InputCorrelation]) -> Completeness:
        complete = np.where(failed, 0.0, 1.0)
        for operator in self.topology.operators:
            streams = self._inputs[operator.name]
            if not streams:
                continue
            found = [stream.completeness(complete) for stream in streams]
            if kind(operator) is InputCorrelation.CORRELATED:
                effective = reduce(np.multiply, found)  # their widths differ: one value may serve all tasks
            else:
                rates = np.stack([stream.rates for stream in streams])
                shares = rates / rates.sum(axis=0)
                effective = sum(part * share for part, share in zip(found, shares, strict=True))
            complete[..., self.topology.span[operator.name]] *= effective
        return complete

    def _input(self, stream: TopologyStream) -> _InputStream:
        """Eq. 1: the mean of the upstream tasks' completeness, weighted by the rates of their substreams."""
        up, down = self.topology.span[stream.source], self.topology.span[stream.target]
        width, rates = down.stop - down.start, self._output_rates[up]
        if stream.partitioning is Partitioning.FULL:  # every task sees the same mix, so one product serves all of them
            weights = rates / rates.sum()
            each = np.full(width, rates.sum() / width)
            return _InputStream(lambda complete: (complete[..., up] @ weights)[..., None], each)
        sources, targets = self.topology.links(stream)
        sources, targets = sources - up.start, targets - down.start
        substreams = rates[sources] / np.bincount(sources)[sources]
        totals = np.asarray(np.bincount(targets, substreams), dtype=float)
        if width >= rates.size:  # one-to-one and split: every task has one upstream task
            return _InputStream(lambda complete: complete[..., up][..., sources], totals)
        shares, firsts = substreams / totals[targets], np.searchsorted(targets, np.arange(width))
        return _InputStream(lambda complete: np.add.reduceat(complete[..., up] * shares, firsts, axis=-1), totals)


def score(topology: Topology, failed: Failures) -> Quality:
    """Output fidelity and internal completeness of one failure set, (tasks,)."""
    scorer = Scorer(topology)
    return Quality(float(scorer.output_fidelity(failed)), float(scorer.internal_completeness(failed)))


def worst_case(replicated: npt.NDArray[np.bool_]) -> Failures:
    """The failure set by which a replication plan is judged: every task that is not replicated has failed."""
    return ~replicated
