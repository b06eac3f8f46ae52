"""Output fidelity and internal completeness: the paper's example, hand-derived values, limits, plain equations."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.fidelity import Scorer, score, worst_case
from models.topology import InputCorrelation
from tests.unit.models.small_topologies import build, topologies


def figure_2(inputs):
    """The rates are chosen so that the second stream loses 2/5 with t22: the figure is lost, its results are not."""
    return build(
        {"O1": [1.0, 2.0], "O2": [3.0, 2.0], "O3": {"parallelism": 1, "inputs": inputs}}, "O1 full O3", "O2 full O3"
    )


def test_the_papers_example_of_a_correlated_operator_loses_two_fifths():
    topology = figure_2("correlated")
    assert score(topology, topology.mask(["O2.1"])).output_fidelity == pytest.approx(1 - 2 / 5, rel=1e-15)


def test_the_papers_example_of_an_independent_operator_loses_a_quarter():
    topology = figure_2("independent")
    assert score(topology, topology.mask(["O2.1"])).output_fidelity == pytest.approx(1 - 1 / 4, rel=1e-15)


def test_a_merge_weighs_its_inputs_by_rate():
    """B.0 reads A.0 and A.1 (1 of 4 lost), B.1 reads A.2; the sinks emit 3 and 1."""
    topology = build({"A": [1.0, 3.0, 5.0], "B": [3.0, 1.0]}, "A merge B")
    assert Scorer(topology).completeness(topology.mask(["A.0"]))[3:].tolist() == [0.75, 1.0]
    assert score(topology, topology.mask(["A.0"])).output_fidelity == pytest.approx((3 * 0.75 + 1) / 4)


def test_an_output_rate_is_shared_evenly_over_the_tasks_downstream():
    """C.0 reads half of A.0, at 3 of 6 per second, and all of B.0, at 2: without A.0 it keeps 2 of 5."""
    topology = build({"A": [6.0], "B": [2.0, 9.0], "C": 2}, "A split C", "B one-to-one C")
    found = Scorer(topology).completeness(topology.mask(["A.0"]))[3:]
    assert found.tolist() == pytest.approx([2 / 5, 9 / 12])


def test_losses_multiply_where_joins_meet():
    """J keeps 1/2 of A and 3/4 of B; K joins J with B again."""
    topology = build(
        {
            "A": [1.0, 1.0],
            "B": [1.0, 3.0],
            "J": {"parallelism": 1, "inputs": "correlated"},
            "K": {"parallelism": 1, "inputs": "correlated"},
        },
        *("A full J", "B full J", "J full K", "B full K"),
    )
    assert score(topology, topology.mask(["A.0", "B.0"])).output_fidelity == pytest.approx(1 / 2 * 3 / 4 * 3 / 4)


def test_the_sinks_are_weighed_by_their_rates():
    topology = build({"A": {"parallelism": 1, "output": True, "output_rates": [4.0]}, "B": [1.0, 3.0]}, "A full B")
    assert score(topology, topology.mask(["B.1"])).output_fidelity == pytest.approx(5 / 8)
    assert score(topology, topology.mask(["A.0"])).output_fidelity == 0.0


def test_internal_completeness_counts_what_tasks_process_and_takes_joins_for_unions():
    """Sources process what they emit, 3 and 5; the join reads 8 and would process 8; it gets 6 of them."""
    topology = figure_2("correlated")
    assert score(topology, topology.mask(["O2.1"])).internal_completeness == pytest.approx((3 + 3 + 6) / (3 + 5 + 8))
    assert score(topology, topology.mask(["O3.0"])).internal_completeness == pytest.approx(8 / 16)


def test_internal_completeness_of_a_chain():
    """A's two tasks emit 1 and 3; B reads both by merge; C reads all of B, which emits 10."""
    topology = build({"A": [1.0, 3.0], "B": [10.0], "C": [7.0]}, "A merge B", "B one-to-one C")
    processed_of = (3 + 3 + 10 * 3 / 4) / (4 + 4 + 10)
    assert score(topology, topology.mask(["A.0"])).internal_completeness == pytest.approx(processed_of)


def information_loss(topology, failed, join_losses=True):
    """Eqs. 1 to 3, one task and one substream at a time; IL of every task's output, and what it processes [1/s]."""
    rates, loss, processed = topology.values("output_rates"), {}, {}
    for operator in topology.operators:
        span = topology.span[operator.name]
        for task in range(span.start, span.stop):
            streams = []
            for stream in topology.inputs_of[operator.name]:
                pairs = list(zip(*(ends.tolist() for ends in topology.links(stream)), strict=True))
                substreams = [up for up, down in pairs if down == task]
                rate = {up: rates[up] / sum(source == up for source, _ in pairs) for up in substreams}
                total = sum(rate.values())
                streams.append((total, sum(rate[up] * loss[up] for up in substreams) / total))
            processed[task] = sum(rate for rate, _ in streams) if streams else rates[task]
            if failed[task]:
                loss[task] = 1.0
            elif not streams:
                loss[task] = 0.0
            elif operator.inputs is InputCorrelation.CORRELATED and join_losses:
                loss[task] = 1.0 - np.prod([1.0 - lost for _, lost in streams])
            else:
                loss[task] = sum(rate * lost for rate, lost in streams) / sum(rate for rate, _ in streams)
    every = range(len(topology.tasks))
    return np.array([loss[t] for t in every]), np.array([processed[t] for t in every])


def plain_output_fidelity(topology, failed):
    """Eq. 4."""
    loss, _ = information_loss(topology, failed)
    rates = topology.values("output_rates")
    sinks = [t for sink in topology.sinks for t in range(topology.span[sink.name].start, topology.span[sink.name].stop)]
    return 1.0 - sum(rates[t] * loss[t] for t in sinks) / sum(rates[t] for t in sinks)


def plain_internal_completeness(topology, failed):
    loss, processed = information_loss(topology, failed, join_losses=False)
    return ((1.0 - loss) * processed).sum() / processed.sum()


failure_sets = st.integers(0, 2**24 - 1)


def mask_of(topology, bits):
    return (bits >> np.arange(len(topology.tasks)) & 1).astype(bool)


@pytest.mark.extended
@settings(max_examples=150, deadline=None)
@given(topologies(operators=6, parallelism=4, tasks=24, fan_out=3), failure_sets)
def test_equals_the_equations_written_out(topology, bits):
    failed = mask_of(topology, bits)
    scorer = Scorer(topology)
    loss, _ = information_loss(topology, failed)
    assert scorer.completeness(failed) == pytest.approx(1.0 - loss, abs=1e-12)
    assert scorer.output_fidelity(failed) == pytest.approx(plain_output_fidelity(topology, failed), abs=1e-12)
    plain = plain_internal_completeness(topology, failed)
    assert scorer.internal_completeness(failed) == pytest.approx(plain, abs=1e-12)


@pytest.mark.extended
@settings(max_examples=100, deadline=None)
@given(topologies(operators=6, parallelism=4, tasks=24, fan_out=3), failure_sets, failure_sets)
def test_lies_between_0_and_1_and_never_falls_with_more_replicas(topology, bits, more_bits):
    replicated = mask_of(topology, bits)
    more = replicated | mask_of(topology, more_bits)
    scorer = Scorer(topology)
    for measure in (scorer.output_fidelity, scorer.internal_completeness):
        fewer_replicas, more_replicas = measure(worst_case(np.stack([replicated, more])))
        assert 0.0 <= fewer_replicas <= more_replicas * (1 + 1e-15) <= 1.0 + 1e-15


@settings(max_examples=100, deadline=None)
@given(topologies(operators=6, parallelism=4, tasks=24, fan_out=3), failure_sets)
def test_everything_failed_loses_all_and_nothing_failed_loses_nothing(topology, bits):
    scorer, tasks = Scorer(topology), len(topology.tasks)
    for measure in (scorer.output_fidelity, scorer.internal_completeness):
        assert measure(np.ones(tasks, dtype=bool)) == 0.0
        assert measure(np.zeros(tasks, dtype=bool)) == pytest.approx(1.0, rel=1e-14)
    failed = mask_of(topology, bits)
    assert (scorer.completeness(failed)[failed] == 0.0).all()


@settings(max_examples=50, deadline=None)
@given(topologies(operators=6, parallelism=4, tasks=24, fan_out=3), st.lists(failure_sets, min_size=6, max_size=6))
def test_many_failure_sets_score_as_each_of_them(topology, sets):
    failed = np.stack([mask_of(topology, bits) for bits in sets]).reshape(2, 3, -1)
    scorer = Scorer(topology)
    for measure in (scorer.output_fidelity, scorer.internal_completeness):
        found = measure(failed)
        assert found.shape == (2, 3)
        for at in product(range(2), range(3)):
            assert found[at] == pytest.approx(measure(failed[at]), abs=1e-14)


def test_rates_at_the_limits_of_what_is_allowed_give_finite_results():
    topology = build(
        {"A": [1e-100, 1e100], "B": {"parallelism": 2, "output_rates": [1e100, 1e-100], "inputs": "correlated"}},
        "A full B",
    )
    for bits in range(16):
        assert np.isfinite(score(topology, mask_of(topology, bits))).all()


def test_the_worst_case_fails_what_is_not_replicated():
    assert worst_case(np.array([True, False])).tolist() == [False, True]


def test_scores_of_many_failure_sets_are_those_of_each_alone(monkeypatch):
    """With any number of failure sets that are scored at once, and in any shape."""
    topology = build({"A": [1.0, 2.0, 3.0], "B": 2}, "A merge B")
    failed = np.random.default_rng(3).random((4, 3, 5)) < 0.4
    alone = [[score(topology, row).output_fidelity for row in rows] for rows in failed]
    for most in (1, 7, 20, 10**6):
        monkeypatch.setattr("models.fidelity.MOST_AT_ONCE", most)
        found = Scorer(topology).output_fidelity(failed)
        assert found.shape == (4, 3)
        assert found == pytest.approx(np.array(alone), rel=1e-15)
    assert Scorer(topology).output_fidelity(failed[:0]).shape == (0, 3)
