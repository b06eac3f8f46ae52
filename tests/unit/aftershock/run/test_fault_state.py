"""Which services faults hold down, and what of the injector ends a run, from hand-made plans and journals."""

from dataclasses import replace

import pytest

from aftershock.run.fault_state import GRACE_NS, FaultState, Held
from experiments.fault_kinds import FaultKind
from journal.events.common import Failed
from journal.events.injector import INJECTOR, Armed, Disarmed
from tests.unit.example_events import named

S = 10**9


def about(name, at_s, kind="broker-kill"):
    return named(INJECTOR, name, at_s * S, kind=FaultKind(kind), host="gateway")


def taken(*journal):
    faults = FaultState()
    for each in journal:
        faults.take(each)
    return faults


@pytest.mark.parametrize(
    ("journal", "at_ns", "held"),
    [
        ([], 104 * S, set()),
        ([about("striking", 106)], 500 * S, {"broker"}),
        ([about("striking", 106), about("healed", 120)], 120 * S + GRACE_NS - 1, {"broker"}),
        ([about("striking", 106), about("healed", 120)], 120 * S + GRACE_NS, set()),
        ([about("striking", 106), about("healed", 120), about("striking", 150)], 400 * S, {"broker"}),
        ([about("striking", 150, "master-kill")], 400 * S, {"spark-master"}),
        ([about("striking", 150, "kill"), Armed(1)], 400 * S, set()),
    ],
)
def test_services_are_held_from_the_strike_until_soon_after_the_heal(journal, at_ns, held):
    assert taken(*journal).held_services(at_ns) == held


def test_an_injector_that_ended_before_it_disarmed_has_died():
    armed, disarmed = Armed(1), Disarmed()
    assert taken(armed).failure(running=True) is None
    assert taken(armed, disarmed).failure(running=False) is None
    assert "the injector died (killed)" in str(taken(armed).failure(running=False))
    failed = Failed("worker-1 does not answer")
    for running in (True, False):
        assert "worker-1 does not answer" in str(taken(armed, failed, disarmed).failure(running=running))


def test_what_faults_hold_by_the_journal():
    def about(name, fault, kind, host="worker-1"):
        return named(INJECTOR, name, fault=fault, kind=FaultKind(kind), host=host)

    journal = [
        Armed(3),
        about("striking", 0, "kill"),
        about("injected", 0, "kill"),
        about("absorbed", 1, "kill"),
        about("striking", 2, "pause", "b"),  # not proved when its injector was killed
    ]
    assert taken(*journal).held == [Held("worker-1", FaultKind.KILL), Held("b", FaultKind.PAUSE)]
    assert taken(*journal, about("ended", 2, "pause", "b"), about("healed", 0, "kill")).held == []
    disproved = replace(about("healed", 0, "kill"), left={"hosts down": 1})
    assert Held("worker-1", FaultKind.KILL) in taken(*journal, disproved).held
    struck_again = [about("striking", 3, "kill"), about("healed", 0, "kill")]
    assert taken(*journal, *struck_again).held[-1] == Held("worker-1", FaultKind.KILL)
