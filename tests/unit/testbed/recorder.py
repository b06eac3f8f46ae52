"""Records a simulated run as `models.checkpoint_graph` takes it, so that the two can be held against each other."""

import numpy as np

from models.checkpoint_graph import Execution
from testbed.simulation import Observer

NEVER = -1


class Recorder(Observer):
    """What survives of a run: of every partition its checkpoints, of every channel in which intervals its data went.

    `at_recovery` gets for each recovery what was recorded until then, the checkpoints that the coordinator knew, and
    the line that it chose.
    """

    def __init__(self, layout):
        self.layout = layout
        self.epoch = 0
        self.number = [0] * len(layout.partitions)
        self.sent_in = [[] for _ in layout.channels]
        self.received_in = [[] for _ in layout.channels]
        self.last_known = [0] * len(layout.partitions)
        self.at_recovery = []

    def recording(self, protocol):
        """The same protocol, but everything is recorded at the moment when it counts."""
        recorder = self

        class Recording(protocol):
            def before_send(self, channel):
                if self.runtime.partition.epoch == recorder.epoch:
                    sent_in = recorder.sent_in[channel.id]
                    messages = self.runtime.partition.sending.sent[channel.id] - len(sent_in)
                    sent_in += [recorder.number[channel.sender]] * messages
                return super().before_send(channel)

            def on_message(self, frame):
                super().on_message(frame)
                if self.runtime.partition.epoch == recorder.epoch:
                    recorder.received_in[frame.channel] += [recorder.number[self.runtime.number]] * frame.messages
                    assert frame.sequence == len(recorder.received_in[frame.channel])

            def on_checkpoint(self, number):
                super().on_checkpoint(number)
                if self.runtime.partition.epoch == recorder.epoch:
                    recorder.number[self.runtime.number] = number

        return Recording

    def known(self, checkpoint):
        self.last_known[checkpoint.partition] = checkpoint.number

    def recovering(self, epoch, line):
        self.epoch = epoch
        self.at_recovery.append((self.execution(self.last_known), [each.number for each in line]))
        for each in line:
            self.number[each.partition] = self.last_known[each.partition] = each.number
            for channel, count in each.sent.items():
                del self.sent_in[channel][count:]
            for channel, count in each.received.items():
                del self.received_in[channel][count:]

    def execution(self, taken=None):
        """The execution with these last checkpoints, of all partitions by default all that were taken."""
        taken = self.number if taken is None else taken
        rows = []
        for channel in self.layout.channels:
            received = self.received_in[channel.id]
            for i, sent_in in enumerate(self.sent_in[channel.id]):
                arrived = min(received[i], taken[channel.receiver]) if i < len(received) else NEVER
                rows.append((channel.sender, min(sent_in, taken[channel.sender]), channel.receiver, arrived))
        sender, sent_in, receiver, received_in = np.array(rows, dtype=np.int64).reshape(-1, 4).T
        last = np.array(taken)
        received_in = np.where(received_in == NEVER, last[receiver] + 1, received_in)
        return Execution(last, sender, sent_in, receiver, received_in)
