"""The paper's dynamic programming: candidate plans grown by whole MC-trees.

Source: `ppa`, section IV-A, algorithm 1. Where it prints something else than it means:

- `tr not in CP`, for an MC-tree and a plan, is "not a subset of".
- Line 12 removes a plan whose possible expansions are all taken; for the plan that holds every MC-tree it takes the
  maximum of an empty set. That plan stays.
- Theorem 1 promises that no plan as good is smaller; the last line does not say how to break ties: the smallest wins.
- Definition 2 chooses R tasks. The plan has at most R: less where no more of them complete another MC-tree.

The plan is optimal. A replicated task that is on no MC-tree of replicated tasks adds nothing, so some optimal plan is a
union of MC-trees; added one by one, those that bring a new task make plans of growing size, each of which is reached.
A tree with a new task always adds output. So only plans to which no tree can be added within the budget are scored.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from experiments.errors import BadInput
from models.fidelity import Scorer, worst_case
from models.replication.mc_trees import count_mc_trees, mc_trees
from models.replication.plan import ReplicationPlan, require_budget
from models.topology import Topology

MOST_TREES = 20_000
MOST_EXPANSIONS = 5_000_000  # pairs of a plan and an MC-tree that are looked at: a few seconds
SCORED_AT_ONCE = 4_096
ROUNDING = 1e-12  # relative; output fidelities that differ by less are equal


def plan(topology: Topology, budget: int) -> ReplicationPlan:
    """An optimal plan with as few tasks as any.

    Takes time exponential in the number of MC-trees. Raises `BadInput` for a negative budget, for a topology with more
    than `MOST_TREES` MC-trees, and where the candidates would take more than `MOST_EXPANSIONS` steps.
    """
    require_budget(topology, budget)
    if (trees := sum(count_mc_trees(topology).values())) > MOST_TREES:
        raise BadInput("topology", f"{trees} MC-trees", f"at most {MOST_TREES} for dp; exact has no such limit")
    plans = _complete_plans({_bits(tree) for tree in mc_trees(topology)}, min(budget, len(topology.tasks)))
    return ReplicationPlan(_best(topology, plans), optimal=True)


def _bits(tasks: Iterable[int]) -> int:
    return sum(1 << task for task in tasks)


def _complete_plans(trees: set[int], budget: int) -> list[int]:
    """The unions of trees to which no other can be added within the budget, the smallest first; a bit for each task."""
    usable = sorted(tree for tree in trees if tree.bit_count() <= budget)
    by_usage: list[dict[int, None]] = [{} for _ in range(budget + 1)]
    by_usage[0][0] = None
    complete, expansions = [], 0
    for candidates in by_usage:
        expansions += len(candidates) * len(usable)
        if expansions > MOST_EXPANSIONS:
            raise BadInput("budget", budget, "one with fewer candidate plans for dp; exact has no such limit")
        for candidate in candidates:
            larger = {candidate | tree for tree in usable} - {candidate}
            affordable = [plan for plan in larger if plan.bit_count() <= budget]
            for expanded in affordable:
                by_usage[expanded.bit_count()][expanded] = None
            if not affordable:
                complete.append(candidate)
        candidates.clear()
    return complete


def _best(topology: Topology, plans: list[int]) -> npt.NDArray[np.bool_]:
    scorer, tasks = Scorer(topology), len(topology.tasks)
    fidelities = [
        scorer.output_fidelity(worst_case(_masks(plans[start : start + SCORED_AT_ONCE], tasks)))
        for start in range(0, len(plans), SCORED_AT_ONCE)
    ]
    fidelity = np.concatenate(fidelities)
    best = int(np.argmax(fidelity >= fidelity.max() * (1.0 - ROUNDING)))
    return _masks([plans[best]], tasks)[0]


def _masks(plans: list[int], tasks: int) -> npt.NDArray[np.bool_]:
    """Plans as boolean vectors, (plans, tasks)."""
    width = (tasks + 7) // 8
    packed = np.frombuffer(b"".join(plan.to_bytes(width, "little") for plan in plans), dtype=np.uint8)
    return np.unpackbits(packed.reshape(-1, width), axis=1, count=tasks, bitorder="little").astype(bool)
