"""Frontiers: the highest value of a node of the fidelity expression for every number of replicated tasks.

A node that more than one other node uses is *shared*: what is spent on it is decided once. Until all of its uses have
come together in one frontier, that frontier has an axis for it, with one entry for each spending that is worth
considering; then the best entry is taken, its cost is charged, and the axis is gone (variable elimination).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]
Operation = Callable[..., Values]  # np.add or np.multiply


@dataclass(frozen=True, eq=False)
class Frontier:
    """The highest value of a node by what is decided elsewhere and by the tasks that are replicated for it.

    axes     the shared nodes that are still open, ascending
    values   (entries of each axis ..., replicated tasks from 0 on); never falling along the last axis; what is spent
             on open nodes is not counted in it
    covered  the uses of shared nodes that have come together here, a bit for each
    origin   how it was made: what to do for an entry of it
    """

    axes: tuple[int, ...]
    values: Values
    covered: int
    origin: Leaf | Gated | Combined | Closed | Opened

    def at(self, chosen: Mapping[int, int]) -> Values:
        """The values by replicated tasks, for a chosen entry of every axis; where none is, the first: nothing spent."""
        return self.values[tuple(chosen.get(axis, 0) for axis in self.axes)]


@dataclass(frozen=True, eq=False)
class Leaf:
    """Replicates the first ones of its tasks."""

    tasks: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Gated:
    """Replicates a task, without which its input is worth nothing."""

    task: int
    of: Frontier


@dataclass(frozen=True, eq=False)
class Combined:
    """Splits what is spent between two frontiers."""

    operation: Operation
    left: tuple[Frontier, float]
    right: tuple[Frontier, float]


@dataclass(frozen=True, eq=False)
class Opened:
    """Stands for a shared node, which is paid for where its axis is closed."""


@dataclass(frozen=True, eq=False)
class Closed:
    """Takes an entry of an axis, and pays for it."""

    axis: int
    of: Frontier
    shared: Shared


@dataclass(frozen=True, eq=False)
class Shared:
    """A shared node: its own frontier, and the spendings that are worth considering."""

    frontier: Frontier
    costs: npt.NDArray[np.intp]


def leaf(tasks: tuple[int, ...], weights: tuple[float, ...], budget: int) -> Frontier:
    """The sum of the weights of replicated tasks that are taken in the order given."""
    values = np.concatenate([[0.0], np.cumsum(weights)])
    return Frontier((), values[: budget + 1], 0, Leaf(tasks))


def gated(task: int, of: Frontier, budget: int) -> Frontier:
    """The value of a task's output, from its effective input."""
    nothing = np.zeros((*of.values.shape[:-1], 1))
    values = np.concatenate([nothing, of.values], axis=-1)
    return Frontier(of.axes, values[..., : budget + 1], of.covered, Gated(task, of))


def worthwhile(frontier: Frontier) -> npt.NDArray[np.intp]:
    """The numbers of tasks that give more than one task fewer does, for at least one choice on the axes; and 0."""
    flat = frontier.values.reshape(-1, frontier.values.shape[-1])
    rises = (np.diff(flat, axis=-1) > 0).any(axis=0)
    return np.flatnonzero(np.concatenate([[True], rises]))


def opened(node: int, shared: Shared, use: int) -> Frontier:
    """A shared node as one of its users sees it: an axis, and nothing to pay yet."""
    values = shared.frontier.values[..., shared.costs, None]
    return Frontier((*shared.frontier.axes, node), values, shared.frontier.covered | use, Opened())


def fixed(shared: Frontier, spent: int, use: int) -> Frontier:
    """A shared node as its users see it if it is worth what `spent` tasks buy, and nothing to pay here."""
    values = shared.values[..., min(spent, shared.values.shape[-1] - 1), None]
    return Frontier(shared.axes, values, shared.covered | use, Opened())


def axis_widths(frontier: Frontier) -> dict[int, int]:
    """The number of entries of each axis."""
    return dict(zip(frontier.axes, frontier.values.shape, strict=False))


def cells(left: Frontier, right: Frontier, budget: int) -> int:
    """The size of the frontier that combines two."""
    spendings = min(left.values.shape[-1] + right.values.shape[-1] - 1, budget + 1)
    return math.prod((axis_widths(left) | axis_widths(right)).values(), start=spendings)


def combined(
    operation: Operation,
    left: tuple[Frontier, float],
    right: tuple[Frontier, float],
    budget: int,
    go_on: Callable[[], None],
) -> Frontier:
    """The best split of every spending between two frontiers, each taken times its weight.

    `go_on` is called again and again; what it raises stops this.
    """
    axes = tuple(sorted({*left[0].axes, *right[0].axes}))
    one, other = (_along(axes, frontier) * weight for frontier, weight in (left, right))
    few, many = (one, other) if one.shape[-1] <= other.shape[-1] else (other, one)
    size = min(few.shape[-1] + many.shape[-1] - 1, budget + 1)
    values = np.zeros((*np.broadcast_shapes(few.shape[:-1], many.shape[:-1]), size))
    for spent in range(few.shape[-1]):
        go_on()
        rest = values[..., spent : spent + many.shape[-1]]
        np.maximum(rest, operation(few[..., spent, None], many[..., : rest.shape[-1]]), out=rest)
    return Frontier(axes, values, left[0].covered | right[0].covered, Combined(operation, left, right))


def closed(axis: int, of: Frontier, shared: Shared, budget: int, go_on: Callable[[], None]) -> Frontier:
    """The best entry of an axis, paid for, at every spending; `go_on` as for `combined`."""
    at = of.axes.index(axis)
    by_entry = np.moveaxis(of.values, at, 0)
    width = by_entry.shape[-1]
    values = np.zeros((*by_entry.shape[1:-1], min(width + int(shared.costs[-1]), budget + 1)))
    for entry, cost in zip(by_entry, shared.costs, strict=True):
        go_on()
        rest = values[..., cost:]
        np.maximum(rest[..., :width], entry[..., : rest.shape[-1]], out=rest[..., :width])
        np.maximum(rest[..., width:], entry[..., -1:], out=rest[..., width:])
    return Frontier(of.axes[:at] + of.axes[at + 1 :], values, of.covered, Closed(axis, of, shared))


def chosen_tasks(frontier: Frontier, spent: int, also: Mapping[int, tuple[Frontier, int]]) -> list[int]:
    """The tasks that a frontier without axes replicates for a spending, and no more of them than its value takes.

    `also` are the shared nodes, by number, that were `fixed`, with their own frontiers and what is spent on them.
    """
    found: list[int] = []
    entries: dict[int, int] = {}
    pending = [*(also[node] for node in sorted(also)), (frontier, spent)]
    while pending:
        of, spent = pending.pop()
        by_spent = of.at(entries)
        spent = int(np.argmax(by_spent == by_spent[min(spent, by_spent.size - 1)]))
        match of.origin:
            case Leaf(tasks):
                found.extend(tasks[:spent])
            case Gated(task, source) if spent:
                found.append(task)
                pending.append((source, spent - 1))
            case Combined(operation, (left, left_weight), (right, right_weight)):
                few, many = left.at(entries) * left_weight, right.at(entries) * right_weight
                first = _split(operation, few, many, spent)
                pending += [(left, first), (right, spent - first)]
            case Closed(axis, source, shared):
                entries[axis] = _entry(source, axis, shared, entries, spent)
                cost = int(shared.costs[entries[axis]])
                pending += [(shared.frontier, cost), (source, spent - cost)]
    return found


def _along(axes: tuple[int, ...], frontier: Frontier) -> Values:
    index = tuple(slice(None) if axis in frontier.axes else None for axis in axes)
    return frontier.values[(*index, slice(None))]


def _split(operation: Operation, left: Values, right: Values, spent: int) -> int:
    """What the left one of two frontiers gets of a spending."""
    first = np.arange(max(spent - right.size + 1, 0), min(spent, left.size - 1) + 1)
    return int(first[np.argmax(operation(left[first], right[spent - first]))])


def _entry(source: Frontier, axis: int, shared: Shared, entries: Mapping[int, int], spent: int) -> int:
    """The entry of an axis that is best at a spending."""
    affordable = range(int(np.searchsorted(shared.costs, spent, side="right")))
    by_entry = [source.at({**entries, axis: entry}) for entry in affordable]
    left = [spent - int(shared.costs[entry]) for entry in affordable]
    return int(np.argmax([values[min(rest, values.size - 1)] for values, rest in zip(by_entry, left, strict=True)]))
