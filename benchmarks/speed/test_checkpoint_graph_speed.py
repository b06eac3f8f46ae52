"""Recovery line and invalid checkpoints of a long execution: 100 operators, 100,000 checkpoints, 1,000,000 messages.

Run by hand: .venv/bin/pytest benchmarks/speed/test_checkpoint_graph_speed.py
"""

from collections import defaultdict

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from models.checkpoint_graph import Execution, invalid, record, recovery_line

OPERATORS = 100


def long_execution(checkpoints: int, messages: int) -> Execution:
    """Checkpoints at random times; messages down a chain of operators, a hundredth of them back up."""
    rng = np.random.default_rng(1)
    owner, taken_at = np.arange(checkpoints) % OPERATORS, rng.uniform(0, 1000, checkpoints)
    sender, sent_at = rng.integers(0, OPERATORS - 1, messages), rng.uniform(0, 1000, messages)
    receiver = np.where(rng.random(messages) < 0.01, np.maximum(sender - 1, 0), sender + 1)
    received_at = sent_at + rng.exponential(0.01, messages)
    return record(OPERATORS, (owner, taken_at), (sender, sent_at), (receiver, received_at))


@pytest.fixture(scope="module")
def execution() -> Execution:
    """A million messages among a hundred thousand checkpoints."""
    return long_execution(100_000, 1_000_000)


def plain_recovery_line(execution: Execution) -> list[int]:
    """Undo open intervals, and with each what received from it and what follows it, one interval at a time."""
    following = defaultdict[tuple[int, int], list[tuple[int, int]]](list)
    messages = zip(execution.sender, execution.sent_in, execution.receiver, execution.received_in, strict=True)
    for sender, sent_in, receiver, received_in in messages:
        if received_in <= execution.taken[receiver]:
            following[int(sender), int(sent_in)].append((int(receiver), int(received_in)))
    line = [int(count) + 1 for count in execution.taken]
    stack = [(i, int(count)) for i, count in enumerate(execution.taken)]
    while stack:
        operator, number = stack.pop()
        for each in range(number, line[operator]):
            stack.extend(following[operator, each])
        line[operator] = min(line[operator], number)
    return line


def test_recovery_line(benchmark: BenchmarkFixture, execution: Execution) -> None:
    line = benchmark(recovery_line, execution)
    assert line.shape == (OPERATORS,)


def test_recovery_line_in_plain_python(benchmark: BenchmarkFixture, execution: Execution) -> None:
    line = benchmark.pedantic(plain_recovery_line, (execution,), rounds=1)
    assert line == recovery_line(execution).tolist()


def test_invalid_checkpoints(benchmark: BenchmarkFixture, execution: Execution) -> None:
    assert benchmark(invalid, execution).any()
