"""Which services faults hold down, and what of the injector ends a run, from hand-made plans and journals."""

import pytest

from aftershock.troubles import GRACE_NS, held_services, injector_failure

S = 10**9


def entry(event, at_s, kind="broker-kill"):
    return {"event": event, "kind": kind, "at_ns": at_s * S}


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
    assert held_services(journal, at_ns) == held


def test_an_injector_that_ended_before_it_disarmed_has_died():
    armed, disarmed = {"event": "armed"}, {"event": "disarmed"}
    assert injector_failure([armed], running=True) is None
    assert injector_failure([armed, disarmed], running=False) is None
    assert "the injector died (killed)" in str(injector_failure([armed], running=False))
    failed = {"event": "failed", "error": "worker-1 does not answer"}
    for running in (True, False):
        assert "worker-1 does not answer" in str(injector_failure([armed, failed, disarmed], running=running))
