"""Processes with an output log are killed at drawn moments, and what they put out together is exact."""

import os
import signal
from multiprocessing import get_context
from random import Random

import pytest

from tests.integration.testbed.logged_averages import average, prices, write_averages

# Each process is forked from one that has all imports behind it: they would take longer than what is tested.
PROCESSES = get_context("forkserver")
PROCESSES.set_forkserver_preload([write_averages.__module__])


def expected():
    operator, _ = average()
    return [f"{row['item']} {row['at_ns']} {row['average']}" for row in operator.process(0, prices()).to_pylist()]


def lived(root, arrived, kill_after):
    """Run one process until it has emitted this number of rows (0: to its end), then kill it.

    Returns what it said of its restore: records to replay, entries read, damaged segments.
    """
    receiving, sending = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=write_averages, args=(root, len(arrived), sending))
    process.start()
    sending.close()
    with receiving, os.fdopen(os.dup(receiving.fileno()), encoding="utf-8") as lines:
        restored = lines.readline().split()
        for line in lines:
            number, row = line.rstrip("\n").split(" ", 1)
            assert int(number) == len(arrived) + 1
            arrived.append(row)
            kill_after -= 1
            if kill_after == 0:
                process.kill()
                break
    process.join()
    assert process.exitcode == (-signal.SIGKILL if kill_after == 0 else 0)
    return [int(each) for each in restored[1:]]


def killed(root, kills, seed):
    random, arrived, replayed = Random(seed), [], 0
    per_life = 2 * len(expected()) // (3 * kills)
    for _ in range(kills):
        replay, _, _ = lived(root, arrived, random.randint(1, per_life))
        replayed += replay > 0
    lived(root, arrived, kill_after=0)
    return arrived, replayed


def test_killed_processes_lose_and_repeat_nothing(tmp_path):
    arrived, replayed = killed(tmp_path, 8, seed=1)
    assert arrived == expected()
    assert replayed >= 6


@pytest.mark.extended
def test_two_hundred_kills(tmp_path):
    for seed in range(10):
        arrived, replayed = killed(tmp_path / str(seed), 20, seed)
        assert arrived == expected()
        assert replayed >= 18
