"""Errors that several tests plant in what keeps an output log, and whether a simulated run notices one."""

import numpy as np

from experiments.errors import AftershockError
from testbed.core.by_batch.partition import BatchedPartition
from testbed.operators.count_windows import CountWindows


def is_noticed(run, wanted):
    """Whether a run ends with an error, or puts out something else than what is wanted."""
    try:
        return run().published != wanted
    except (AftershockError, LookupError, ValueError):
        return True


def as_printed(known, windows, positions):
    """The paper's "<": a window takes the record at t_i in again."""
    return positions >= np.array([known._until.get(window, 0) for window in windows], dtype=np.int64)


def closed_forgotten(operator, window, at):
    """Of a window that closed in the extent the records come again."""


def parts_without_their_state(operator, windows, real=CountWindows.parts_of):
    return [part[:8] + bytes(8) for part in real(operator, windows)]


def input_from_own_border(snapshots, position):
    """A checkpoint needs no input from before it."""
    return snapshots._links[-1].end.number


def sent_again(partition, batch):
    """A neighbour gets again what it already has, and stores checkpoints again."""
    BatchedPartition._end_batch(partition, batch)


def behind_its_own_border(recorded, position):
    """The input that comes from a neighbour begins earlier than the operator believes."""
