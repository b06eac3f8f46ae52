"""Errors planted in the protocol `output-log`: the simulation notices each of them within a few seeds."""

from dataclasses import replace

import pytest

from testbed.core.checkpoints import last_common
from testbed.core.coordinator.history import History
from testbed.operators.count_windows import CountWindows
from testbed.operators.parts import Known
from testbed.output_log.objects import Chain
from testbed.output_log.partition import LoggedPartition
from testbed.output_log.recorded import RecordedOperator
from testbed.output_log.snapshots import LogSnapshots
from testbed.protocols.output_logged import OutputLogged
from tests.unit.testbed.output_log.planted import (
    as_printed,
    behind_its_own_border,
    closed_forgotten,
    input_from_own_border,
    is_noticed,
    parts_without_their_state,
    sent_again,
)
from tests.unit.testbed.output_log.protocol_runs import simulated, wanted

pytestmark = pytest.mark.extended

SEEDS = 16


def first_object_dropped(snapshots, core, states, epoch, number, forced, real=LogSnapshots.take):
    effect = real(snapshots, core, states, epoch, number, forced)
    keys = effect.checkpoint.state_keys
    checkpoint = replace(effect.checkpoint, state_keys=keys[1:] if len(keys) > 2 else keys)
    snapshots._pending[number].checkpoint = checkpoint
    return replace(effect, checkpoint=checkpoint)


def known_taken_again(recorded, found, real=RecordedOperator.load):
    real(recorded, found)
    recorded._known_until = 0


def watermark_of_the_line(chain, number):
    return chain.objects[-1].end


def undone_up_to_own(history, partitions, passed, *, real=History.recover):
    history._by_borders = False
    return real(history, partitions, passed)


PLANTS = [
    (Known, "new", as_printed),
    (CountWindows, "ignore", closed_forgotten),
    (CountWindows, "parts_of", parts_without_their_state),
    (LogSnapshots, "_input_from", input_from_own_border),
    (LogSnapshots, "take", first_object_dropped),
    (OutputLogged, "find_line", staticmethod(last_common)),
    (LoggedPartition, "_end_batch", sent_again),
    (RecordedOperator, "resume", behind_its_own_border),
    (RecordedOperator, "load", known_taken_again),
    (Chain, "border", watermark_of_the_line),
    (History, "recover", undone_up_to_own),
]


def noticed(seed):
    return any(is_noticed(simulated(name, seed, refusals=0.2).run, wanted(name)) for name in ("rare", "filtered"))


@pytest.mark.parametrize(("where", "name", "planted"), PLANTS, ids=[f"{a.__name__}.{b}" for a, b, _ in PLANTS])
def test_a_planted_error_is_noticed(monkeypatch, where, name, planted):
    monkeypatch.setattr(where, name, planted)
    assert any(noticed(seed) for seed in range(SEEDS))


def test_nothing_is_noticed_without_one():
    assert not any(noticed(seed) for seed in range(4))
