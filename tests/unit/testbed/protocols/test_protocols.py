"""Protocols on schedules made by hand: two processes that play ping-pong, which is what makes dominoes fall."""

from dataclasses import replace

import numpy as np
import pytest

from models.checkpoint_graph import Execution, on_z_cycle, recovery_line
from testbed.core.checkpoints import Checkpoint, initial_line, last_common, rollback_propagation
from testbed.core.dataflow.graph import Dataflow
from testbed.core.dataflow.layout import lay_out
from testbed.core.frames import Frame, FrameKind
from testbed.protocols import PROTOCOLS, Runtime
from testbed.simulation import Simulation
from tests.unit.testbed.campaigns import first_and_rest
from tests.unit.testbed.small_flows import EVENTS, laid_out


class Process(Runtime):
    """Runs the hooks of a protocol and notes in which interval everything was."""

    def __init__(self, number, protocol):
        self.number, self.partitions, self.inputs, self.outputs = number, 2, (), ()
        self.interval, self.forced = 0, 0
        self.protocol = PROTOCOLS[protocol](self)

    def checkpoint(self, number=None, forced=False):
        self.interval += 1
        self.forced += forced
        self.protocol.on_checkpoint(self.interval)

    def block(self, channel): ...

    def unblock(self): ...

    def send(self, kind, channel, content): ...


def ping_pong(protocol, exchanges):
    """Each process takes a checkpoint of its own between a receipt and the next sending, as in figure 5."""
    players = [Process(number, protocol) for number in range(2)]
    layout = two_way()
    channels = {c.sender - 1: c for c in layout.channels if c.on_cycle}
    messages = []
    for turn in range(exchanges):
        sender, receiver = players[turn % 2], players[1 - turn % 2]
        piggyback = sender.protocol.before_send(numbered(channels[sender.number], receiver.number))
        sent_in = sender.interval
        receiver.protocol.on_message(Frame(FrameKind.DATA, 1, 0, turn, 0, piggyback))
        messages.append((sender.number, sent_in, receiver.number, receiver.interval))
        receiver.protocol.on_timer()
    columns = np.array(messages).T
    return players, Execution(np.array([each.interval for each in players]), *columns)


def two_way():
    """A layout with a cycle of two partitions, numbers 1 and 2."""
    flow = Dataflow("two-way")
    ping = flow.source("events", EVENTS).map("ping", lambda batch: batch)
    pong = ping.map("pong", lambda batch: batch)
    pong.feed(ping, 0)
    pong.sink("out")
    return lay_out(flow)


def numbered(channel, receiver):
    return replace(channel, receiver=receiver)


def test_uncoordinated_checkpoints_fall_like_dominoes():
    players, execution = ping_pong("uncoordinated", exchanges=40)
    assert [each.interval for each in players] == [20, 20]
    assert recovery_line(execution).max() <= 1
    assert on_z_cycle(execution).sum() >= 38


def test_communication_induced_checkpoints_stop_them_at_the_price_of_forced_ones():
    players, execution = ping_pong("communication-induced", exchanges=40)
    assert not on_z_cycle(execution).any()
    assert (execution.taken - recovery_line(execution)).max() <= 2
    assert 0 < sum(each.forced for each in players) <= 40


def checkpoint(partition, number, sent, received):
    return Checkpoint(partition, number, 1, sent, received)


def test_rollback_propagation_follows_orphans_along_the_channels():
    """Three in a row; the last has received what the second, after going back, has not sent."""
    flow = Dataflow("row")
    flow.source("a", EVENTS).map("b", lambda batch: batch).sink("c")
    layout = lay_out(flow)
    a, b, c = ([each] for each in initial_line(layout))
    a += [checkpoint(0, 1, {0: 3}, {})]
    b += [checkpoint(1, 1, {1: 2}, {0: 2}), checkpoint(1, 2, {1: 5}, {0: 4})]
    c += [checkpoint(2, 1, {}, {1: 2}), checkpoint(2, 2, {}, {1: 3})]
    assert [each.number for each in rollback_propagation([a, b, c], layout.channels)] == [1, 1, 1]
    a[1] = checkpoint(0, 1, {0: 4}, {})
    assert [each.number for each in rollback_propagation([a, b, c], layout.channels)] == [1, 2, 2]


def test_the_last_common_round_is_that_of_all():
    taken = [[checkpoint(p, n, {}, {}) for n in numbers] for p, numbers in enumerate([(0, 1, 3, 4), (0, 1, 3)])]
    assert [each.number for each in last_common(taken, ())] == [3, 3]


@pytest.mark.parametrize("seeds", first_and_rest(range(6), 2))
def test_a_piggyback_that_comes_again_teaches_and_forces_nothing(seeds):
    """A protocol that reads it every time ends with the same checkpoints."""

    class Forgetful(PROTOCOLS["communication-induced"]):
        def on_message(self, frame):
            self._heard.clear()
            super().on_message(frame)

    for seed in seeds:
        layout, inputs = laid_out("cyclic")
        runs = [Simulation(layout, each, inputs, seed).run() for each in (Forgetful, Forgetful.__base__)]
        assert runs[0] == runs[1], f"seed {seed}"
        assert runs[0].tally.forced


def test_a_snapshot_of_a_protocol_brings_it_back():
    """After going back it piggybacks what it did then."""
    players, _ = ping_pong("communication-induced", exchanges=9)
    channel = numbered(two_way().channels[1], 1)
    snapshot, before = players[0].protocol.snapshot(), players[0].protocol.before_send(channel)
    players[0].protocol.on_timer()
    assert players[0].protocol.before_send(channel) != before
    players[0].protocol.on_recovery(snapshot)
    assert players[0].protocol.before_send(channel) == before
