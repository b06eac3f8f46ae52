"""What must hold in every state of the coordinator and its workers, and what at the end."""

from __future__ import annotations

from testbed.core.coordinator.coordinator import Phase
from tests.unit.testbed.recovery.abstract import Life, Wrong
from tests.unit.testbed.recovery.asked import AskedCoordinator


class Invariants:
    """Each raises `Wrong`."""

    def __init__(self, asked: AskedCoordinator, most_checkpoints: int) -> None:
        self._asked, self._most = asked, most_checkpoints
        self._partitions, self._channels = asked.layout.partitions, asked.layout.channels
        self._out_at = {c.id: [c.id for c in self._partitions[c.sender].outputs].index(c.id) for c in self._channels}
        self._in_at = {c.id: [c.id for c in self._partitions[c.receiver].inputs].index(c.id) for c in self._channels}

    def check(self, state):
        known = self._asked.known[state.coordinator]
        if not known.keys <= state.store:
            raise Wrong(f"{sorted(known.keys - state.store)} may be restored and is deleted")
        hosts = {worker.name: worker for worker in state.workers}
        current = [hosts.get(name) for name in known.hosts]
        for channel in self._channels:
            for worker in state.workers:
                sender = worker.lives[channel.sender]
                if sender is not None:
                    self._check_sent(state, known, channel, sender, current[channel.receiver])
        for number, worker in enumerate(current):
            if worker is not None and number not in state.hurt:
                self._check_placed(state, known, number, worker)

    def _check_sent(self, state, known, channel, sender: Life, host):
        """What is sent in an epoch is all that the receiver lacks, unless a later life of it is being restored."""
        out = sender.outs[self._out_at[channel.id]]
        if host is None or channel.receiver in state.hurt:
            return
        receiver = host.lives[channel.receiver]
        end = None if receiver is None else receiver.ins[self._in_at[channel.id]]
        if end is not None and end.epoch == out.epoch and out.since > end.had:
            raise Wrong(f"channel {channel.id} begins after {out.since} and its receiver has {end.had}")
        adopted = end is not None and end.epoch >= out.epoch
        if sender.runs and out.sends and not adopted and known.lives[channel.receiver] <= out.epoch:
            raise Wrong(f"channel {channel.id} is used in epoch {out.epoch} and its receiver has {end}")

    def _check_placed(self, state, known, number, worker):
        """A partition where the coordinator has it."""
        life = worker.lives[number]
        if life is not None and life.epoch == known.lives[number] and life.kept > max(known.stable, life.began):
            raise Wrong(f"{number} has let go what is before {life.kept}, and {known.stable} is stable")
        if worker.orders or life is None or any(each == number for each, _ in state.told):
            return
        if not life.runs or life.epoch != known.lives[number] or life.kept < known.stable:
            raise Wrong(f"{number} is told nothing more and is {life}, with {known.stable} stable")
        for channel, out in zip(self._partitions[number].outputs, life.outs, strict=True):
            if out.down != (channel.receiver in state.hurt):
                raise Wrong(f"{number} is told nothing more and its receiver {channel.receiver} is {out}")
            both = max(known.lives[number], known.lives[channel.receiver])
            if not out.down and (out.held or out.epoch != both):
                raise Wrong(f"{number} is told nothing more and sends to {channel.receiver} by {out}, not in {both}")

    def check_end(self, state):
        """Nothing more happens without a fault."""
        known = self._asked.known[state.coordinator]
        if known.phase is not Phase.RUNNING or state.hurt or state.told:
            raise Wrong(f"stuck: {known.phase}, {sorted(state.hurt)} are to be restored, {sorted(state.told)} to go")
        if set(known.line) != {self._most}:
            raise Wrong(f"stuck: the line is {known.line}")
        hosts = {worker.name: worker for worker in state.workers}
        lives = [hosts[name].lives[number] for number, name in enumerate(known.hosts)]
        for channel in self._channels:
            out = lives[channel.sender].outs[self._out_at[channel.id]]
            end = lives[channel.receiver].ins[self._in_at[channel.id]]
            if not out.sends or out.epoch != end.epoch:
                raise Wrong(f"stuck: channel {channel.id} from {out} to {end}")
