"""The accuracy of tentative output, by the definition of each query."""

import pytest

from experiments import spec
from experiments.workloads.base import WorkloadName
from models.accuracy import accuracy, accuracy_of, predicted_by_fidelity

EXACT = [("7", '{"requests":9}'), ("3", '{"requests":8}'), ("5", '{"requests":8}'), ("1", '{"requests":2}')]


@pytest.mark.parametrize(("binding", "predicted"), [("bound", True), ("spread", False)])
def test_fidelity_predicts_it_where_one_path_counts_a_key(binding, predicted):
    workload = spec.load("ppa-top100", [f"workload.binding={binding}"]).workload
    assert predicted_by_fidelity(workload) is predicted


def test_it_is_the_share_of_the_exact_results_that_is_there():
    assert accuracy("ab", "abcd") == 0.5
    assert accuracy("abcd", "abcd") == 1
    assert accuracy("", "abcd") == accuracy("xyz", "abcd") == 0


def test_results_too_many_change_nothing_and_copies_count_once():
    assert accuracy("axyzaa", "ab") == 0.5
    assert accuracy("a", "aab") == 0.5


def test_without_exact_results_there_is_none():
    assert accuracy("ab", "") is None
    assert accuracy_of(WorkloadName.TOP_100, EXACT, []) is None


@pytest.mark.parametrize(
    ("workload", "expected"),
    [(WorkloadName.TOP_100, 0.5), (WorkloadName.INCIDENTS, 0.5), (WorkloadName.WINDOW_TREE, 0.25)],
)
def test_an_entry_and_an_incident_are_right_whatever_their_value(workload, expected):
    emitted = [("7", '{"requests":4}'), ("3", '{"requests":8}'), ("2", '{"requests":1}')]
    assert accuracy_of(workload, emitted, EXACT) == expected


def test_results_may_come_one_at_a_time():
    assert accuracy_of(WorkloadName.INCIDENTS, iter(EXACT[:1]), iter(EXACT)) == 0.25
