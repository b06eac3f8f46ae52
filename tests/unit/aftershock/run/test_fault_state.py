"""Which services faults hold down, and what of the injector ends a run, from hand-made plans and journals."""

import pytest

from aftershock.run.fault_state import GRACE_NS, FaultState, Held
from experiments.fault_kinds import FaultKind

S = 10**9


def entry(event, at_s, kind="broker-kill"):
    return {"event": event, "kind": kind, "at_ns": at_s * S, "fault": 0, "host": "gateway", "left": {}}


def taken(*journal):
    faults = FaultState()
    for each in journal:
        faults.take(each)
    return faults


@pytest.mark.parametrize(
    ("journal", "at_ns", "held"),
    [
        ([], 104 * S, set()),
        ([entry("striking", 106)], 500 * S, {"broker"}),
        ([entry("striking", 106), entry("healed", 120)], 120 * S + GRACE_NS - 1, {"broker"}),
        ([entry("striking", 106), entry("healed", 120)], 120 * S + GRACE_NS, set()),
        ([entry("striking", 106), entry("healed", 120), entry("striking", 150)], 400 * S, {"broker"}),
        ([entry("striking", 150, "master-kill")], 400 * S, {"spark-master"}),
        ([entry("striking", 150, "kill"), {"event": "armed", "at_ns": 1}], 400 * S, set()),
    ],
)
def test_services_are_held_from_the_strike_until_soon_after_the_heal(journal, at_ns, held):
    assert taken(*journal).held_services(at_ns) == held


def test_an_injector_that_ended_before_it_disarmed_has_died():
    armed, disarmed = {"event": "armed"}, {"event": "disarmed"}
    assert taken(armed).failure(running=True) is None
    assert taken(armed, disarmed).failure(running=False) is None
    assert "the injector died (killed)" in str(taken(armed).failure(running=False))
    failed = {"event": "failed", "error": "worker-1 does not answer"}
    for running in (True, False):
        assert "worker-1 does not answer" in str(taken(armed, failed, disarmed).failure(running=running))


def test_what_faults_hold_by_the_journal():
    def entry(event, fault, kind, host="worker-1"):
        return {"event": event, "fault": fault, "kind": kind, "host": host, "left": {}}

    journal = [
        {"event": "armed"},
        entry("striking", 0, "kill"),
        entry("injected", 0, "kill"),
        entry("absorbed", 1, "kill"),
        entry("striking", 2, "pause", "b"),  # not proved when its injector was killed
    ]
    assert taken(*journal).held == [Held("worker-1", FaultKind.KILL), Held("b", FaultKind.PAUSE)]
    assert taken(*journal, entry("ended", 2, "pause", "b"), entry("healed", 0, "kill")).held == []
    disproved = entry("healed", 0, "kill") | {"left": {"hosts down": 1}}
    assert Held("worker-1", FaultKind.KILL) in taken(*journal, disproved).held
    struck_again = [entry("striking", 3, "kill"), entry("healed", 0, "kill")]
    assert taken(*journal, *struck_again).held[-1] == Held("worker-1", FaultKind.KILL)
