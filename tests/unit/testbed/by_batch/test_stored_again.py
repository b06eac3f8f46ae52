"""A partition that went back stores a checkpoint again that the recovery line has from before."""

import pytest

from testbed.core.checkpoints import Checkpoint, last_common
from testbed.core.coordinator.history import History
from testbed.operators import Delivery
from tests.unit.testbed.small_flows import laid_out

LAYOUT, _ = laid_out("tiny", Delivery.EXACTLY_ONCE)
EVERYONE = [each.number for each in LAYOUT.partitions]


def stored(partition, number, epoch):
    of = LAYOUT.partitions[partition]
    sent, received = ({each.id: number for each in channels} for channels in (of.outputs, of.inputs))
    return Checkpoint(partition, number, epoch, sent, received, (f"{of.name}/state-{number}-{epoch}",))


def with_a_line_of_ones():
    """No partition has an earlier checkpoint; the previous line is the one at the beginning."""
    history = History(LAYOUT, last_common, spare_lines=1, by_borders=True)
    for partition in EVERYONE:
        history.add(stored(partition, 1, 1))
    assert {each.number for each in history.line} == {1}
    return history


def replaced(history, checkpoint):
    of = history.taken[checkpoint.partition]
    before = history.keys()
    of[:] = [*(each for each in of if each.number != checkpoint.number), checkpoint]
    return sorted(before - history.keys())


def test_the_line_keeps_its_checkpoint_and_goes_on():
    history = with_a_line_of_ones()
    kept = {key for at in history.line for key in at.state_keys}
    assert not kept & set(history.add(stored(0, 1, 2)))
    for partition in EVERYONE:
        history.add(stored(partition, 2, 2))
    assert {each.number for each in history.stable} == {1}
    assert history.needed_by_stable() == kept <= history.keys()


def test_if_it_were_replaced_the_line_would_lose_it(monkeypatch):
    monkeypatch.setattr(History, "_replace", replaced)
    with pytest.raises(ValueError, match="not in list"):
        with_a_line_of_ones().add(stored(0, 1, 2))
