"""The abstract partitions of the enumeration do what real ones do, order by order."""

import copy
from dataclasses import replace

import pytest

from testbed.core.checkpoints import initial_line
from testbed.core.control import Rejoin, Restore
from testbed.core.effects import Store, Tell
from tests.unit.testbed.lone_partitions import lone_by_batch
from tests.unit.testbed.recovery import abstract, interleavings
from tests.unit.testbed.recovery.exploring import Explored
from tests.unit.testbed.recovery.small_layouts import chain


class Twins:
    """For each abstract partition that was met a real one that has followed the same orders."""

    def __init__(self, layout):
        self._layout, self._found, self.compared = layout, {}, 0

    def restored(self, layout, order):
        life = abstract.restored(layout, order)
        if (layout.number, life) not in self._found:
            self._keep(layout, life, self._restored(layout, order))
        return life

    def followed(self, layout, life, order):
        after = abstract.followed(layout, life, order)
        if (layout.number, life, order) not in self._found:
            real = self._copied(layout, self._of(layout, life))
            real.on_order(order)
            answers = [each.message for each in real.take_effects() if isinstance(each, Tell)]
            assert [each.epoch for each in answers] == [order.epoch] * isinstance(order, Rejoin)
            self._found[layout.number, life, order] = real
            self._keep(layout, after, real)
        return after

    def _of(self, layout, life):
        """The twin of a partition; that of one that has taken a checkpoint since is made to take it."""
        if (layout.number, life) not in self._found:
            real = self._copied(layout, self._of(layout, life._replace(at=life.at - 1)))
            real.checkpoint(life.at)
            real.take_effects()
            self._keep(layout, life, real)
        return self._found[layout.number, life]

    def _keep(self, layout, life, real):
        assert facts(real) == expected(layout, life)
        self.compared += 1
        self._found.setdefault((layout.number, life), real)

    def _restored(self, layout, order):
        initial = initial_line(self._layout)[layout.number]
        real, objects = lone_by_batch(self._layout, layout), {}
        if order.number:
            real.restore(Restore(0, initial, ()), {})
            real.checkpoint(order.number)
            (store,) = (each for each in real.take_effects() if isinstance(each, Store))
            initial = replace(initial, number=order.number, state_keys=store.checkpoint.state_keys)
            objects = {key: b"".join(map(bytes, content())) for key, content in store.objects.items()}
        real.restore(Restore(order.epoch, initial, ()), objects)
        real.take_effects()
        return real

    def _copied(self, layout, real):
        return copy.deepcopy(real, {id(each): each for each in (layout, *layout.inputs, *layout.outputs)})


def facts(real):
    """What a real partition knows of its life and its channels."""
    return (
        (real.epoch, real.running, real.sending.retained.number),
        [real.intake.epoch(channel.id) for channel in real.inputs],
        [real.sending.epoch(channel.id) for channel in real.outputs],
        (set(real.sending.unheard), set(real.sending.awaiting_go)),
    )


def expected(layout, life):
    down, held = (
        {channel.id for channel, end in zip(layout.outputs, life.outs, strict=True) if getattr(end, what)}
        for what in ("down", "held")
    )
    ins, outs = [each.epoch for each in life.ins], [each.epoch for each in life.outs]
    return (life.epoch, life.runs, life.kept), ins, outs, (down, held)


@pytest.mark.parametrize("strategy", ["global", "passive"])
def test_an_abstract_partition_does_what_a_real_one_does(strategy, monkeypatch):
    layout = chain(0, 1, 0)
    twins = Twins(layout)
    monkeypatch.setattr(interleavings, "restored", twins.restored)
    monkeypatch.setattr(interleavings, "followed", twins.followed)
    Explored(layout, strategy, 2, most_checkpoints=1, faults=1, spare_lines=0)
    assert twins.compared > 50, f"{twins.compared} compared"
