"""The accuracy of tentative output as `ppa` measures it (section VI-B): which share of the exact results it has.

The query decides which results count as the same. The paper judges Q1 by the entries in its top 100, without their
counts, and Q2 by the incidents. Results of any other workload must be equal in key and value.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from typing import TypeAlias

from experiments.workloads.base import Workload, WorkloadName

OF_MANY_RECORDS = frozenset({WorkloadName.CEC_PRICES})  # though each belongs to the record that closes its window
BY_KEY = frozenset({WorkloadName.TOP_100, WorkloadName.INCIDENTS})
Result: TypeAlias = tuple[str, str]  # key and value, as in `workloads.results`


def predicted_by_fidelity(workload: Workload) -> bool:
    """Whether output fidelity says how accurate the results are.

    It says which share of the input contributes. So a result must come from one path through the dataflow: from one
    input record, or it is a key that only one path counts and whose value does not matter. A value that is computed
    from many records is wrong if one of them is missing. A key that every path counts is still there if some paths are
    missing.
    """
    of_one = workload.by_record and workload.name not in OF_MANY_RECORDS
    return of_one or (workload.name in BY_KEY and not workload.has_spread_keys)


def accuracy(emitted: Collection[Hashable], exact: Collection[Hashable]) -> float | None:
    """|emitted and exact| / |exact|, from 0 to 1; None if nothing is exact. What is there twice counts once.

    Results that should not be there at all do not lower it: this is the paper's definition.
    """
    wanted = set(exact)
    return len(wanted.intersection(emitted)) / len(wanted) if wanted else None


def accuracy_of(workload: WorkloadName, emitted: Iterable[Result], exact: Iterable[Result]) -> float | None:
    """The accuracy of the results of one window, by the definition of the workload's query."""
    return accuracy(_judged(workload, emitted), _judged(workload, exact))


def _judged(workload: WorkloadName, results: Iterable[Result]) -> set[Hashable]:
    return {key for key, _ in results} if workload in BY_KEY else set(results)
