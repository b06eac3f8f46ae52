"""Errors planted in what is special about ranges: running in lockstep with single messages notices each of them."""

import pytest

from experiments.errors import AftershockError
from testbed.core import ranges
from testbed.core.effects import Send
from testbed.core.partition import intake
from testbed.core.partition.counts_and_watermarks import Watermarks
from testbed.core.partition.intake import Intake
from testbed.core.partition.readings import Reading
from testbed.core.partition.sending import Sending
from tests.unit.testbed.ranges.lockstep import Differs, in_lockstep

SEEDS = 12
CIC = ("joined", "communication-induced")


def joined_across_checkpoints(head, frame):
    """Messages of both sides of a sender's checkpoint are processed at one go: the forced checkpoint comes too late."""
    return frame.is_range


def credit_by_frame(taking_in, channel, messages=1, real=Intake.return_credit):
    real(taking_in, channel)


def sent_without_regard_to_credit(sending, link):
    while link.waiting and link.credit > 0:
        frame = link.waiting.popleft()
        link.credit -= frame.messages
        sending._effects.append(Send(frame))


def credit_taken_by_frame(sending, link):
    while link.waiting and link.credit > 0:
        link.credit -= 1
        sending._effects.append(Send(link.waiting.popleft()))


def piggyback_of_before(sending, link, batch, real=Sending._send):
    """A range carries what was to be said before the last checkpoint."""
    protocol = sending._protocol

    class Stale:
        logs = protocol.logs

        def before_send(self, channel):
            said = protocol.before_send(channel)
            stale = getattr(sending, "stale", said) if sending.sends_ranges else said
            sending.stale = said
            return stale

    sending._protocol = Stale()
    real(sending, link, batch)
    sending._protocol = protocol


def one_number_for_a_range(taking_in, channel):
    link = taking_in._links[channel]
    link.queue.popleft()
    link.received += 1


def known_messages_taken_again(frame, messages, real=ranges.cut):
    """Of a range of which a part has arrived all is taken in."""
    return real(frame, messages)[0], frame


def never_advances(watermarks, channel, watermark_ns):
    return False


def one_piggyback_counted(reading, frame):
    reading.last[frame.channel] = frame.sequence
    reading.piggybacks.append((1, frame.piggyback))


def joined_in_any_order(frames, real=ranges._joined):
    return real([*reversed(frames[:-1]), frames[-1]])


PLANTS = {
    "a range is not cut at a forced checkpoint": (ranges, "_follows", joined_across_checkpoints, CIC),
    "credit is given by the frame": (Intake, "return_credit", credit_by_frame, ("chain", "coordinated")),
    "credit is taken by the frame": (Sending, "_flush", credit_taken_by_frame, ("chain", "coordinated")),
    "more is sent than there is credit": (Sending, "_flush", sent_without_regard_to_credit, ("chain", "uncoordinated")),
    "the piggyback is that of before the checkpoint": (Sending, "_send", piggyback_of_before, CIC),
    "a range has one number": (Intake, "take", one_number_for_a_range, ("chain", "uncoordinated")),
    "a part that has arrived is taken again": (intake, "cut", known_messages_taken_again, ("fused", "uncoordinated")),
    "event time moves on behind the range": (Watermarks, "would_advance", never_advances, ("windowed", "coordinated")),
    "a reading counts a range once": (Reading, "add", one_piggyback_counted, ("chain", "uncoordinated")),
    "ranges are joined in another order": (ranges, "_joined", joined_in_any_order, ("chain", "uncoordinated")),
}


def run_all(case):
    for seed in range(SEEDS):
        in_lockstep(*case, seed).run()


@pytest.mark.parametrize("plant", PLANTS)
def test_the_error_is_noticed(monkeypatch, plant):
    owner, name, error, case = PLANTS[plant]
    monkeypatch.setattr(owner, name, error)
    with pytest.raises((Differs, AftershockError)):
        run_all(case)
