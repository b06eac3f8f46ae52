"""What a sender keeps for a receiver that goes back."""

import pytest

from testbed.core.by_batch.retained import Retained
from testbed.core.frames import Frame, FrameKind


def frame(channel, sequence):
    return Frame(FrameKind.DATA, 1, channel, sequence, 0)


def filled():
    """Two frames on each of two channels before checkpoint 4, two between it and checkpoint 6, one after that."""
    found = Retained((0, 1), 3)
    for sequence in range(1, 6):
        for channel in (0, 1):
            found.add(frame(channel, sequence))
        if sequence in (2, 4):
            found.mark(sequence + 2)
    return found


def numbers(retained, channel, checkpoint):
    places = range(retained.since(channel, checkpoint), retained.end(channel))
    return [retained.read(None, channel, place).sequence for place in places]


def test_what_follows_a_checkpoint_is_there_until_it_is_let_go():
    kept = filled()
    assert (numbers(kept, 0, 3), numbers(kept, 1, 4), numbers(kept, 0, 6)) == ([1, 2, 3, 4, 5], [3, 4, 5], [5])
    kept.trim(4)
    assert (kept.frames, numbers(kept, 1, 4), numbers(kept, 0, 6)) == (6, [3, 4, 5], [5])
    with pytest.raises(KeyError):
        kept.since(0, 3)


def test_a_line_that_this_sender_has_no_checkpoint_of_lets_nothing_more_go():
    kept = filled()
    kept.trim(5)
    assert (kept.frames, numbers(kept, 0, 4)) == (6, [3, 4, 5])
    kept.trim(7)
    assert (kept.frames, numbers(kept, 0, 6)) == (2, [5])
