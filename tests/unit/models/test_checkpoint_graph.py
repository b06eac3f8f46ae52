"""Recovery lines and invalid checkpoints against the paper's definitions, by brute force on every line there is."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.errors import BadInput
from models.checkpoint_graph import (
    Execution,
    checkpoint_graph,
    in_flight,
    invalid,
    on_z_cycle,
    orphans,
    record,
    recovery_line,
    rollback_steps,
)

MESSAGE = ("sender", "sent_in", "receiver", "received_in")


def execution(taken, *messages):
    """Messages as (sender, sent in, receiver, received in)."""
    columns = np.array(messages, dtype=int).reshape(-1, 4).T
    return Execution(np.array(taken), **dict(zip(MESSAGE, columns, strict=True)))


def messages_of(found):
    return list(zip(*(getattr(found, field).tolist() for field in MESSAGE), strict=True))


@st.composite
def causal(draw, most_operators=4, closed=False):
    """An execution that can happen: events in one order, each a checkpoint, a message sent, or one received."""
    operators = draw(st.integers(1, most_operators))
    who = st.integers(0, operators - 1)
    events = draw(st.lists(st.tuples(st.sampled_from("csr"), who, who), max_size=24))
    taken, pending, done = [0] * operators, [], []
    for kind, a, b in events:
        if kind == "c":
            taken[a] += 1
        elif kind == "s":
            pending.append((a, taken[a], b))
        elif pending:
            message = pending.pop((a * operators + b) % len(pending))
            done.append((*message, taken[message[2]]))
    if closed:
        taken = [count + 1 for count in taken]
    return execution(taken, *done, *((*message, taken[message[2]] + 1) for message in pending))


def all_lines(found):
    return [np.array(line) for line in product(*(range(count + 1) for count in found.taken))]


def is_consistent(found, line):
    """Definition 4, message by message."""
    return not any(
        sent_in >= line[sender] and received_in < line[receiver]
        for sender, sent_in, receiver, received_in in messages_of(found)
    )


def literal_steps(found):
    """Algorithm 1 on the graph as the paper draws it: an edge from all before the sending to all after the receipt."""
    nodes = [(i, x) for i, count in enumerate(found.taken) for x in range(count + 1)]
    after = {node: [(node[0], node[1] + 1)] for node in nodes if node[1] < found.taken[node[0]]}
    for sender, sent_in, receiver, received_in in messages_of(found):
        for x in range(sent_in + 1):
            for y in range(received_in + 1, found.taken[receiver] + 1):
                if sender != receiver:
                    after.setdefault((sender, x), []).append((receiver, y))

    def strictly_reachable(node):
        seen, stack = set(), list(after.get(node, []))
        while stack:
            if (here := stack.pop()) not in seen:
                seen.add(here)
                stack.extend(after.get(here, []))
        return seen

    roots = [(i, int(count)) for i, count in enumerate(found.taken)]
    steps = [[x for _, x in roots]]
    while marked := [root for root in roots if any(root in strictly_reachable(o) for o in roots if o != root)]:
        roots = [(i, x - 1) if (i, x) in marked else (i, x) for i, x in roots]
        steps.append([x for _, x in roots])
    return steps


def literal_z_cycle(found, operator, number):
    """Netzer and Xu: messages m1 ... mk, each next one sent in the interval of the last receipt or later."""
    messages = messages_of(found)
    path = [m for m in messages if m[0] == operator and m[1] >= number]
    seen = set(path)
    while path:
        *_, receiver, received_in = path.pop()
        if receiver == operator and received_in < number:
            return True
        following = {m for m in messages if m[0] == receiver and m[1] >= received_in} - seen
        seen |= following
        path.extend(following)
    return False


@pytest.mark.extended
@given(causal())
@settings(max_examples=300, deadline=None)
def test_the_line_is_consistent_and_no_consistent_line_goes_beyond_it(found):
    line = recovery_line(found)
    consistent = [each for each in all_lines(found) if is_consistent(found, each)]
    assert is_consistent(found, line)
    assert line.tolist() == np.max(consistent, axis=0).tolist()


@pytest.mark.extended
@given(causal())
@settings(max_examples=200, deadline=None)
def test_steps_are_those_of_the_literal_algorithm_and_end_at_the_line(found):
    steps = [step.tolist() for step in rollback_steps(found)]
    assert steps == literal_steps(found)
    assert steps[-1] == recovery_line(found).tolist()


@pytest.mark.extended
@given(causal(most_operators=3))
@settings(max_examples=300, deadline=None)
def test_invalid_is_what_no_consistent_line_holds(found):
    held = {(i, x) for line in all_lines(found) if is_consistent(found, line) for i, x in enumerate(line.tolist())}
    nodes = [(i, x) for i, count in enumerate(found.taken) for x in range(count + 1)]
    assert invalid(found).tolist() == [node not in held for node in nodes]


@pytest.mark.extended
@given(causal(most_operators=3))
@settings(max_examples=300, deadline=None)
def test_z_cycles_are_the_zigzag_paths_from_a_checkpoint_to_itself(found):
    nodes = [(i, x) for i, count in enumerate(found.taken) for x in range(count + 1)]
    assert on_z_cycle(found).tolist() == [literal_z_cycle(found, *node) for node in nodes]


@pytest.mark.extended
@given(causal(closed=True))
@settings(max_examples=300, deadline=None)
def test_with_a_last_checkpoint_at_every_operator_invalid_means_on_a_z_cycle(found):
    assert (invalid(found) == on_z_cycle(found)).all()


@pytest.mark.extended
@given(causal())
@settings(max_examples=200, deadline=None)
def test_the_checkpoint_graph_is_causal_and_initial_states_are_always_valid(found):
    graph = checkpoint_graph(found).toarray() > 0
    reach = graph.copy()
    for _ in range(len(reach)):
        reach |= (reach.astype(int) @ graph.astype(int)) > 0
    assert not reach.diagonal().any()
    assert not invalid(found)[found.first].any()


@given(causal())
@settings(max_examples=100, deadline=None)
def test_every_message_is_undone_seen_by_both_in_flight_or_orphan(found):
    for line in all_lines(found)[:50]:
        orphan, flying = orphans(found, line), in_flight(found, line)
        for k, (sender, sent_in, receiver, received_in) in enumerate(messages_of(found)):
            sent, received = sent_in < line[sender], received_in < line[receiver]
            assert (orphan[k], flying[k]) == (received and not sent, sent and not received)
    assert not orphans(found, recovery_line(found)).any()


def test_a_domino_on_a_ring_falls_to_the_initial_states():
    """Between any two checkpoints every operator hears of its neighbour's next interval before its own ends."""
    rounds = 5
    ring = [(i, x, (i + 1) % 3, x) for i in range(3) for x in range(rounds)]
    ring += [(2, x + 1, 0, x) for x in range(rounds)]
    found = execution([rounds] * 3, *ring)
    assert recovery_line(found).tolist() == [0, 0, 0]
    assert invalid(found).sum() == 3 * rounds


def test_a_checkpoint_past_the_line_need_not_be_on_a_z_cycle():
    """O1 has not yet taken the checkpoint that would make what O2 heard from its open interval valid."""
    found = execution([1, 1], (0, 1, 1, 0))
    assert recovery_line(found).tolist() == [1, 0]
    assert invalid(found).tolist() == [False, False, False, True]
    assert not on_z_cycle(found).any()
    later = execution([2, 1], (0, 1, 1, 0))
    assert recovery_line(later).tolist() == [2, 1]
    assert not invalid(later).any()


def test_a_z_cycle_before_the_line():
    """c(1, 1): what follows it is received before c(2, 1), whose interval before it sent to before c(1, 1)."""
    found = execution([2, 2], (0, 1, 1, 0), (1, 0, 0, 0))
    assert recovery_line(found).tolist() == [2, 2]
    assert on_z_cycle(found).tolist() == [False, True, False, False, False, False]
    assert invalid(found).sum() == 1


def test_without_messages_everything_is_valid():
    found = execution([3, 0, 2])
    assert recovery_line(found).tolist() == [3, 0, 2]
    assert rollback_steps(found)[0].tolist() == [3, 0, 2]
    assert not invalid(found).any()
    assert not invalid(execution([0])).any()


def test_a_message_that_was_never_received_is_in_flight():
    found = execution([1, 1], (0, 0, 1, 2))
    assert recovery_line(found).tolist() == [1, 1]
    assert in_flight(found, recovery_line(found)).tolist() == [True]


def test_intervals_from_times():
    checkpoints = ([1, 0, 0], [4.0, 2.0, 6.0])
    found = record(2, checkpoints, ([0, 0, 1, 0], [1.0, 2.0, 3.9, 7.0]), ([1, 1, 0, 1], [4.0, 2.5, 6.5, np.inf]))
    assert found.taken.tolist() == [2, 1]
    assert messages_of(found) == [(0, 0, 1, 1), (0, 1, 1, 0), (1, 0, 0, 2), (0, 2, 1, 2)]


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=50, deadline=None)
def test_intervals_from_times_are_counts(seed):
    rng = np.random.default_rng(seed)
    owner, at = rng.integers(0, 3, 12), rng.integers(0, 20, 12).astype(float)
    sender, sent_at = rng.integers(0, 3, 30), rng.integers(0, 20, 30).astype(float)
    receiver, received_at = rng.integers(0, 3, 30), sent_at + rng.integers(0, 3, 30)
    found = record(3, (owner, at), (sender, sent_at), (receiver, received_at))
    for field, who, when in (("sent_in", sender, sent_at), ("received_in", receiver, received_at)):
        counts = [((owner == w) & (at <= t)).sum() for w, t in zip(who, when, strict=True)]
        assert getattr(found, field).tolist() == counts


GOOD = {"taken": [1, 2], "sender": [0], "sent_in": [1], "receiver": [1], "received_in": [3]}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("taken", value) for value in ([], [-1, 2], [1.5, 2.0], [[1, 2]])),
        *(("sender", value) for value in ([2], [-1], [0.0])),
        *(("sent_in", value) for value in ([2], [-1], [0, 0])),
        *(("receiver", value) for value in ([2], [-1], [])),
        *(("received_in", value) for value in ([4], [-1], [0, 1])),
    ],
)
def test_bad_executions_are_named(field, value):
    Execution(**{name: np.array(values) for name, values in GOOD.items()})
    with pytest.raises(BadInput) as caught:
        Execution(**{name: np.array(values) for name, values in (GOOD | {field: value}).items()})
    assert caught.value.field == field
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("checkpoints", {"checkpoints": ([2], [1.0])}),
        ("checkpoints", {"checkpoints": ([0], [np.nan])}),
        ("checkpoints", {"checkpoints": ([0], [np.inf])}),
        ("checkpoints", {"checkpoints": ([0], [1.0, 2.0])}),
        ("sent", {"sent": ([0], [np.inf])}),
        ("received", {"received": ([1], [0.5])}),
        ("received", {"received": ([1], [np.nan])}),
        ("received", {"received": ([1, 1], [2.0, 2.0])}),
    ],
)
def test_bad_records_are_named(field, change):
    good = {"checkpoints": ([0], [1.0]), "sent": ([0], [1.0]), "received": ([1], [2.0])}
    assert record(2, **good).taken.tolist() == [1, 0]
    with pytest.raises(BadInput) as caught:
        record(2, **good | change)
    assert caught.value.field == field


@pytest.mark.parametrize("line", [[1], [2, 0], [0, -1], [0, 0, 0], [0.0, 0.0]])
@pytest.mark.parametrize("function", [orphans, in_flight])
def test_bad_lines_are_named(function, line):
    found = execution([1, 2], (0, 0, 1, 1))
    assert function(found, [1, 1]).shape == (1,)
    with pytest.raises(BadInput) as caught:
        function(found, line)
    assert caught.value.field == "line"
