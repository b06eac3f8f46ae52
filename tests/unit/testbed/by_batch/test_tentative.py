"""What a partition takes in while input is missing, frame by frame."""

import pytest

from testbed.core.by_batch.cutting import BORDER
from testbed.core.by_batch.tentative import TentativeIntake
from testbed.core.effects import Grant
from testbed.core.frames import Frame, FrameKind
from testbed.core.partition.counts_and_watermarks import Tally
from tests.unit.testbed.small_flows import laid_out


class Receiver:
    """The intake of a partition with two inputs, which are the channels `one` and `other`."""

    def __init__(self):
        layout, _ = laid_out("tiny")
        (partition,) = (each for each in layout.partitions if each.name == "out.0")
        self.one, self.other = (channel.id for channel in partition.inputs)
        self.effects = []
        self.intake = TentativeIntake(partition, Tally(), self.effects)
        self.intake.restore_at(1, {self.one: 0, self.other: 0}, -1)
        self._sent = {self.one: 0, self.other: 0}

    def data(self, channel, epoch=1, kind=FrameKind.DATA):
        self._sent[channel] += kind is FrameKind.DATA
        self.intake.accept(Frame(kind, epoch, channel, self._sent[channel], 0))

    def border(self, channel, batch, epoch=1, kind=FrameKind.BORDER):
        self.intake.accept(Frame(kind, epoch, channel, self._sent[channel], 0, BORDER.pack(batch)))

    def run(self):
        """Process all that can be; returns which channel each frame came from, and its kind."""
        taken = []
        while (channel := self.intake.next()) is not None:
            self.intake.begin()
            taken.append((channel, self.intake.head(channel).kind))
            self.intake.take(channel)
        return taken

    @property
    def granted(self):
        return sum(each.messages for each in self.effects if isinstance(each, Grant))


@pytest.fixture
def receiver():
    return Receiver()


DATA, BORDER_KIND = FrameKind.DATA, FrameKind.BORDER


def test_a_channel_from_which_nothing_will_come_is_not_waited_for(receiver):
    receiver.data(receiver.one)
    receiver.border(receiver.one, 0)
    assert receiver.run() == []
    receiver.intake.miss([receiver.other])
    assert receiver.run() == [(receiver.one, DATA), (receiver.one, BORDER_KIND)]
    assert receiver.intake.tentative


def test_what_an_absent_sender_has_sent_still_counts(receiver):
    for channel in (receiver.one, receiver.other):
        receiver.border(channel, 0)
    receiver.intake.miss([receiver.other])
    assert len(receiver.run()) == 2
    assert not receiver.intake.tentative


def test_with_all_inputs_absent_nothing_incomplete_is_run(receiver):
    receiver.border(receiver.one, 0)
    receiver.intake.miss([receiver.one, receiver.other])
    assert receiver.run() == []


def test_a_batch_that_was_chosen_and_not_begun_waits_for_a_sender_that_is_back(receiver):
    receiver.border(receiver.one, 0)
    receiver.intake.miss([receiver.other])
    assert receiver.intake.next() == receiver.one
    receiver.intake.rejoin(2, [receiver.other])
    assert receiver.intake.next() is None
    assert not receiver.intake.tentative
    receiver.border(receiver.other, 0, epoch=2)
    assert len(receiver.run()) == 2
    assert not receiver.intake.tentative


def test_a_border_that_comes_before_its_batch_is_begun_makes_it_complete(receiver):
    receiver.border(receiver.one, 0)
    receiver.intake.miss([receiver.other])
    assert receiver.intake.next() == receiver.one
    receiver.border(receiver.other, 0)
    assert len(receiver.run()) == 2
    assert not receiver.intake.tentative


def test_a_tentative_border_makes_the_receiver_tentative(receiver):
    receiver.border(receiver.one, 0)
    receiver.border(receiver.other, 0, kind=FrameKind.TENTATIVE_BORDER)
    receiver.run()
    assert receiver.intake.tentative


def test_tentative_frames_that_were_not_processed_go_when_their_sender_is_back(receiver):
    receiver.data(receiver.other, kind=FrameKind.TENTATIVE)
    receiver.border(receiver.other, 0, kind=FrameKind.TENTATIVE_BORDER)
    receiver.intake.rejoin(2, [receiver.other])
    receiver.data(receiver.other, epoch=2)
    receiver.border(receiver.other, 0, epoch=2)
    receiver.border(receiver.one, 0)
    assert FrameKind.TENTATIVE not in [kind for _, kind in receiver.run()]
    assert not receiver.intake.tentative


def test_exact_records_of_a_batch_that_became_tentative_are_not_taken_twice(receiver):
    receiver.data(receiver.other)
    receiver.intake.rejoin(2, [receiver.other])
    receiver.data(receiver.other, epoch=2, kind=FrameKind.TENTATIVE)
    receiver.border(receiver.other, 0, epoch=2, kind=FrameKind.TENTATIVE_BORDER)
    receiver.border(receiver.one, 0)
    assert [kind for channel, kind in receiver.run() if channel == receiver.other] == [
        FrameKind.TENTATIVE,
        FrameKind.TENTATIVE_BORDER,
    ]


def test_who_comes_back_is_waited_for_again_once_it_is_at_the_batch(receiver):
    receiver.intake.miss([receiver.other])
    for batch in range(3):
        receiver.border(receiver.one, batch)
    receiver.run()
    receiver.intake.rejoin(2, [receiver.other])
    receiver.effects.clear()
    receiver.data(receiver.other, epoch=2)
    receiver.border(receiver.other, 1, epoch=2)  # too late
    assert receiver.granted == 2
    receiver.border(receiver.one, 3)
    assert len(receiver.run()) == 1  # without the one that lags behind
    receiver.border(receiver.other, 4, epoch=2)
    receiver.border(receiver.one, 4)
    assert [channel for channel, _ in receiver.run()] == [receiver.one, receiver.other]
    receiver.border(receiver.one, 5)
    assert receiver.run() == []
