"""The paper's dynamic programming: candidate plans grown by whole MC-trees.

Source: `ppa`, section IV-A, algorithm 1. Where it prints something else than it means:

- `tr not in CP`, for an MC-tree and a plan, is "not a subset of".
- Line 12 removes a plan whose possible expansions are all taken; for the plan that holds every MC-tree it takes the
  maximum of an empty set. That plan stays.
- Theorem 1 promises that no plan as good is smaller; the last line does not say how to break ties: the smallest wins.
  Output fidelities that differ by less than `ROUNDING` count as ties.
- Definition 2 chooses R tasks. The plan has at most R: less where no more of them complete another MC-tree.

The plan is optimal. A replicated task that is on no MC-tree of replicated tasks adds nothing, so some optimal plan is a
union of MC-trees; added one by one, those that bring a new task make plans of growing size, each of which is reached.
A tree with a new task always adds output. So only plans to which no tree can be added within the budget are scored.
Where rates span so much (about 1e12) that a tree adds less than rounding, such a plan takes that tree all the same.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from experiments.errors import BadInput
from models.fidelity import Scorer, worst_case
from models.replication.mc_trees import count_mc_trees, mc_trees
from models.replication.plan import ReplicationPlan, require_budget
from models.topology import Topology

MOST_TREES = 20_000
MOST_STEPS = 50_000_000  # bytes of MC-trees that are merged into candidates: some seconds, some 100 MB
SCORED_AT_ONCE = 4_096
ROUNDING = 1e-12  # relative; output fidelities that differ by less are equal

Packed = npt.NDArray[np.uint8]  # sets of tasks, a bit for each: (sets, bytes)


def plan(topology: Topology, budget: int) -> ReplicationPlan:
    """A plan that is optimal to a relative `ROUNDING`; with as few tasks as any if every MC-tree adds more than that.

    Takes time exponential in the number of MC-trees. Raises `BadInput` for a negative budget, for a topology with more
    than `MOST_TREES` MC-trees, and where the candidates would take more than `MOST_STEPS`.
    """
    require_budget(topology, budget)
    if (trees := sum(count_mc_trees(topology).values())) > MOST_TREES:
        raise BadInput("topology", f"{trees} MC-trees", f"at most {MOST_TREES} for dp; exact has no such limit")
    plans = _complete_plans(_packed(topology), min(budget, len(topology.tasks)))
    return ReplicationPlan(_best(Scorer(topology), plans, len(topology.tasks)), optimal=True)


def _packed(topology: Topology) -> Packed:
    """The MC-trees, each set of tasks once."""
    return np.stack([_packed_set(tree, len(topology.tasks)) for tree in dict.fromkeys(mc_trees(topology))])


def _packed_set(tree: frozenset[int], tasks: int) -> Packed:
    mask = np.zeros(tasks, dtype=bool)
    mask[list(tree)] = True
    return np.packbits(mask)


def _complete_plans(trees: Packed, budget: int) -> list[bytes]:
    """The unions of trees to which no other can be added within the budget, the smallest first; packed."""
    usable = trees[_sizes(trees) <= budget]
    by_usage: list[dict[bytes, None]] = [{} for _ in range(budget + 1)]
    by_usage[0][bytes(trees.shape[1])] = None
    complete, steps = [], 0
    for usage, candidates in enumerate(by_usage[:-1]):
        steps += len(candidates) * usable.size
        if steps > MOST_STEPS:
            raise BadInput("budget", budget, "one with fewer candidate plans for dp; exact has no such limit")
        for candidate in candidates:
            larger = usable | np.frombuffer(candidate, dtype=np.uint8)
            sizes = _sizes(larger)
            affordable = (sizes > usage) & (sizes <= budget)
            for expanded, size in zip(larger[affordable], sizes[affordable].tolist(), strict=True):
                by_usage[size][expanded.tobytes()] = None
            if not affordable.any():
                complete.append(candidate)
        candidates.clear()
    return [*complete, *by_usage[-1]]


def _sizes(packed: Packed) -> npt.NDArray[np.intp]:
    return np.bitwise_count(packed).sum(axis=1, dtype=np.intp)


def _best(scorer: Scorer, plans: list[bytes], tasks: int) -> npt.NDArray[np.bool_]:
    """The first of the plans of the highest output fidelity."""
    packed = np.frombuffer(b"".join(plans), dtype=np.uint8).reshape(len(plans), -1)
    masks = np.unpackbits(packed, axis=1, count=tasks).astype(bool)
    chunks = [masks[start : start + SCORED_AT_ONCE] for start in range(0, len(masks), SCORED_AT_ONCE)]
    fidelity = np.concatenate([scorer.output_fidelity(worst_case(chunk)) for chunk in chunks])
    return masks[np.argmax(fidelity >= fidelity.max() * (1.0 - ROUNDING))]
