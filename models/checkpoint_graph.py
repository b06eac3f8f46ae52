"""Checkpoint graph, recovery line and invalid checkpoints of a recorded execution under independent checkpoints.

Source: Siachamis et al., "CheckMate: Evaluating Checkpointing Protocols for Streaming Dataflows" (`checkmate`), section
III-B with algorithm 1; Wang et al. 1995 for the graph; Netzer and Xu 1995 for Z-cycles.

Operator i takes the checkpoints c(i, 0), c(i, 1), ...: number 0 is its initial state, which is always there. Interval x
of an operator lies between c(i, x) and c(i, x + 1); the interval after its last checkpoint is open. A line is one
checkpoint number for each operator, (operators,). Vectors over checkpoints go operator by operator, by number.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import csgraph

from experiments.errors import BadInput

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Execution:
    """What was recorded: how many checkpoints each operator took, and in which intervals messages went.

    taken                    (operators,) checkpoints of each operator, its initial state not counted
    sender, receiver         (messages,) operators, from 0
    sent_in, received_in     (messages,) intervals of the sender and of the receiver, from 0; a message that was never
                             received has the number past the receiver's last interval, taken + 1

    Raises `BadInput` naming the first of these that is out of range or whose length differs.
    """

    taken: Numbers
    sender: Numbers
    sent_in: Numbers
    receiver: Numbers
    received_in: Numbers

    def __post_init__(self) -> None:
        for field in ("taken", "sender", "sent_in", "receiver", "received_in"):
            object.__setattr__(self, field, _whole_numbers(field, getattr(self, field)))
        if not self.taken.size:
            raise BadInput("taken", "no operators", "one count or more")
        for field in ("sent_in", "receiver", "received_in"):
            if getattr(self, field).shape != self.sender.shape:
                raise BadInput(field, getattr(self, field).size, f"one for each of {self.sender.size} messages")
        _require_below("sender", self.sender, self.taken.size)
        _require_below("receiver", self.receiver, self.taken.size)
        _require_below("sent_in", self.sent_in, self.taken[self.sender] + 1)
        _require_below("received_in", self.received_in, self.taken[self.receiver] + 2)

    @cached_property
    def first(self) -> Numbers:
        """Where the checkpoints of each operator begin in a vector over all checkpoints."""
        return np.cumsum(self.taken + 1) - self.taken - 1

    @cached_property
    def number(self) -> Numbers:
        """The number of every checkpoint at its operator."""
        return np.arange(self.taken.sum() + self.taken.size) - np.repeat(self.first, self.taken + 1)

    @property
    def last(self) -> Numbers:
        """Where the last checkpoint of each operator is in a vector over all checkpoints."""
        return self.first + self.taken


def record(
    operators: int,
    checkpoints: tuple[npt.ArrayLike, npt.ArrayLike],
    sent: tuple[npt.ArrayLike, npt.ArrayLike],
    received: tuple[npt.ArrayLike, npt.ArrayLike],
) -> Execution:
    """The execution of timed events: each argument is (operators, times), messages in the same order in both.

    Times are on one clock; a message that was never received has the time inf. At equal times the checkpoint is first.
    Raises `BadInput` for an unknown operator, a time that is not finite, or a message received before it was sent.
    """
    owner, taken_at = _events("checkpoints", operators, checkpoints)
    sender, sent_at = _events("sent", operators, sent)
    receiver, received_at = _events("received", operators, received)
    if sent_at.shape != received_at.shape:
        raise BadInput("received", received_at.size, f"one for each of {sent_at.size} messages")
    early = received_at < sent_at
    if early.any():
        raise BadInput("received", float(received_at[early][0]), f"at or after it was sent ({sent_at[early][0]:g})")
    taken = np.bincount(owner, minlength=operators)
    received_in = _intervals(owner, taken_at, receiver, received_at) + np.isinf(received_at)
    return Execution(taken, sender, _intervals(owner, taken_at, sender, sent_at), receiver, received_in)


def checkpoint_graph(execution: Execution) -> sparse.csr_array:
    """The checkpoint graph, (checkpoints, checkpoints): section III-B.

    An edge leads to the next checkpoint of the operator, and from the last checkpoint before a message was sent to the
    first after it was received. The paper draws the latter from every checkpoint before to every one after, which these
    paths imply. A path is causal, so the graph has no cycle: a Z-cycle does not show in it.
    """
    closed = execution.received_in < execution.taken[execution.receiver]
    sources = (execution.first[execution.sender] + execution.sent_in)[closed]
    targets = (execution.first[execution.receiver] + execution.received_in + 1)[closed]
    return _with_next(execution, sources, targets)


def rollback_steps(execution: Execution) -> list[Numbers]:
    """The root sets of algorithm 1 as lines, from the latest checkpoints to the recovery line.

    Each step costs as much as `recovery_line` as a whole, which is the way to the line itself.
    """
    graph = checkpoint_graph(execution)
    line = execution.taken.copy()
    steps = [line]
    while True:
        roots = execution.first + line
        marked = _reachable(graph, np.unique(graph[roots].indices))[roots]
        if not marked.any():
            return steps
        line = line - marked
        steps.append(line)


def recovery_line(execution: Execution) -> Numbers:
    """The latest consistent line, which is the one that algorithm 1 finds.

    A failure undoes every open interval, and with an interval the later ones of its operator and those that received a
    message from it; what is not undone is kept. That is one search of the graph of intervals.
    """
    undone = _reachable(_interval_graph(execution), execution.last)
    return np.minimum.reduceat(np.where(undone, execution.number, undone.size), execution.first)


def orphans(execution: Execution, line: npt.ArrayLike) -> Mask:
    """The messages, (messages,), received before the line and sent after it: a consistent line has none.

    Raises `BadInput` unless the line has a checkpoint that was taken for each operator.
    """
    sent, received = _before(execution, line)
    return received & ~sent


def in_flight(execution: Execution, line: npt.ArrayLike) -> Mask:
    """The messages, (messages,), sent before the line and not received before it: to be replayed from the log.

    Raises `BadInput` unless the line has a checkpoint that was taken for each operator.
    """
    sent, received = _before(execution, line)
    return sent & ~received


def on_z_cycle(execution: Execution) -> Mask:
    """The checkpoints, (checkpoints,), that no consistent line can hold, however the execution goes on.

    Rolling back to c(i, x) undoes interval x; a Z-cycle means that this undoes interval x - 1 too. As x follows x - 1
    anyway, it is so when both are in one strongly connected component of the graph of intervals.
    """
    _, component = csgraph.connected_components(_interval_graph(execution), directed=True, connection="strong")
    cycle = np.r_[False, component[1:] == component[:-1]]
    return cycle & (execution.number > 0)


def invalid(execution: Execution) -> Mask:
    """The checkpoints, (checkpoints,), that take part in no consistent line of the checkpoints that there are.

    They are those on a Z-cycle and those past the recovery line. The paper has invalid if and only if on a Z-cycle:
    that holds when every operator ends with a checkpoint. Else a message from an open interval makes what follows its
    receipt invalid, for this failure though not for good.
    """
    line = recovery_line(execution)
    return on_z_cycle(execution) | (execution.number > np.repeat(line, execution.taken + 1))


def _before(execution: Execution, line: npt.ArrayLike) -> tuple[Mask, Mask]:
    """Which messages were sent, and which were received, before the checkpoints of a line."""
    numbers = _whole_numbers("line", line)
    if numbers.shape != execution.taken.shape:
        raise BadInput("line", numbers.size, f"one checkpoint for each of {execution.taken.size} operators")
    _require_below("line", numbers, execution.taken + 1)
    return execution.sent_in < numbers[execution.sender], execution.received_in < numbers[execution.receiver]


def _interval_graph(execution: Execution) -> sparse.csr_array:
    """Which interval's undoing undoes which: the node of interval x is the checkpoint x that it begins with."""
    received = execution.received_in <= execution.taken[execution.receiver]
    sources = (execution.first[execution.sender] + execution.sent_in)[received]
    targets = (execution.first[execution.receiver] + execution.received_in)[received]
    return _with_next(execution, sources, targets)


def _with_next(execution: Execution, sources: Numbers, targets: Numbers) -> sparse.csr_array:
    """The graph of these edges and of those to the next checkpoint of the same operator."""
    nodes = execution.number.size
    earlier = np.setdiff1d(np.arange(nodes), execution.last)
    edges = (np.r_[sources, earlier], np.r_[targets, earlier + 1])
    return sparse.csr_array((np.ones(edges[0].size), edges), shape=(nodes, nodes))


def _reachable(graph: sparse.csr_array, starts: Numbers) -> Mask:
    """The nodes that some start reaches, starts included: a search from one more node that leads to all of them."""
    nodes = graph.shape[0]
    indices = np.r_[graph.indices, starts].astype(graph.indices.dtype)
    indptr = np.r_[graph.indptr, indices.size].astype(graph.indptr.dtype)
    rooted = sparse.csr_array((np.ones(indices.size), indices, indptr), shape=(nodes + 1, nodes + 1))
    found = np.zeros(nodes + 1, dtype=bool)
    found[csgraph.breadth_first_order(rooted, nodes, return_predecessors=False)] = True
    return found[:nodes]


def _intervals(owner: Numbers, taken_at: np.ndarray, operator: Numbers, at: np.ndarray) -> Numbers:
    """The interval of each event: how many checkpoints its operator had taken by then."""
    kind = np.r_[np.zeros(owner.size, dtype=int), np.ones(operator.size, dtype=int)]
    who, when = np.r_[owner, operator], np.r_[taken_at, at]
    order = np.lexsort((kind, when, who))
    before = np.cumsum(kind[order] == 0)
    earlier_owners = np.cumsum(np.bincount(owner, minlength=who.max(initial=0) + 1))
    counts = np.empty(who.size, dtype=np.int64)
    counts[order] = before - np.r_[0, earlier_owners][who[order]]
    return counts[owner.size :]


def _events(field: str, operators: int, events: tuple[npt.ArrayLike, npt.ArrayLike]) -> tuple[Numbers, np.ndarray]:
    who, when = _whole_numbers(field, events[0]), np.asarray(events[1], dtype=float)
    if who.shape != when.shape:
        raise BadInput(field, when.size, f"one time for each of {who.size} operators")
    _require_below(field, who, operators)
    known = np.isfinite(when) | (np.isposinf(when) & (field == "received"))
    if not known.all():
        raise BadInput(field, float(when[~known][0]), "finite times, or inf for a message that was never received")
    return who, when


def _whole_numbers(field: str, values: npt.ArrayLike) -> Numbers:
    found = np.asarray(values)
    if found.ndim != 1 or (found.size and not np.issubdtype(found.dtype, np.integer)):
        raise BadInput(field, f"an array of {found.dtype} of shape {found.shape}", "a flat array of whole numbers")
    _require_below(field, found, np.iinfo(np.int64).max)
    return found.astype(np.int64)


def _require_below(field: str, values: npt.NDArray[np.integer], bound: int | Numbers) -> None:
    out = (values < 0) | (values >= bound)
    if out.any():
        bad = int(np.flatnonzero(out)[0])
        raise BadInput(field, int(values[bad]), f"0 to {int(np.broadcast_to(bound, values.shape)[bad]) - 1}")
