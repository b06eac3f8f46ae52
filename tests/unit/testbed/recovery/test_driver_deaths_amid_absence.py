"""Drivers die while survivors go on without absent input, while that is corrected, and while copies are promoted.

The simulation demands, of all lives under all drivers: exact output is a part of what a run without faults puts out;
exact output passes every batch that had tentative output; checkpoints have what every exact life has at their border;
and no tentative output is of a batch that was out before.
"""

from collections import Counter

import pytest

from testbed.recovery import STRATEGIES
from testbed.simulation.driver_deaths import DriverMoment
from tests.unit.testbed.campaigns import parts
from tests.unit.testbed.recovery.dying_drivers import AMID_ABSENCE, going_on
from tests.unit.testbed.runs import oracle

LARGER = ("joined", "windowed", "spread")
GOES_ON = [name for name, strategy in STRATEGIES.items() if strategy.why_not_tentative() is None]
WITHOUT_COPIES = [name for name in GOES_ON if name != "partially-active"]
SHARE = 50
MOMENTS = {moment for moment, _ in AMID_ABSENCE}


def met(flow, strategy, seeds):
    """When drivers died in these runs, each of which put out all that is exact; and how many of the runs had what."""
    deaths, found = Counter(), Counter()
    for seed in seeds:
        run = going_on(flow, strategy, seed)
        outcome = run.run()
        assert outcome.published == oracle(flow), f"seed {seed}"
        deaths += run.deaths
        found.update(tentative=bool(outcome.tentative), promoted=bool(outcome.promoted), fenced=bool(run.fenced))
        found.update(again=run.deaths.total() > 1, resumed=bool(run.resumed))
    return deaths, found


def some_and_all(name, rich, names, seeds):
    """`make unit` runs seeds under which much happens, of one name; `make test-all` runs all of each."""
    every = [pytest.param(each, range(seeds), marks=pytest.mark.extended) for each in names]
    return [pytest.param(name, rich), *every]


@pytest.mark.parametrize(("flow", "seeds"), some_and_all("tiny", (0, 14, 16, 17), ["tiny"], 60))
def test_a_second_driver_goes_on_exactly_amid_tentative_output_and_copies(flow, seeds):
    deaths, found = met(flow, "partially-active", seeds)
    assert deaths.keys() >= MOMENTS
    assert all(found[each] for each in ("tentative", "promoted", "again", "resumed", "fenced"))


@pytest.mark.parametrize(("flow", "seeds"), some_and_all("spread", (2, 3), LARGER, 24))
def test_a_second_driver_goes_on_exactly_with_every_kind_of_dataflow(flow, seeds):
    deaths, found = met(flow, "partially-active", seeds)
    assert deaths.keys() >= {DriverMoment.TENTATIVE, DriverMoment.PROMOTING}
    assert found["tentative"]


@pytest.mark.parametrize(("strategy", "seeds"), some_and_all("passive", (2, 3), WITHOUT_COPIES, 24))
def test_a_second_driver_goes_on_exactly_without_copies(strategy, seeds):
    deaths, found = met("joined", strategy, seeds)
    assert deaths.keys() >= {DriverMoment.TENTATIVE, DriverMoment.CORRECTING}
    assert found["tentative"]


@pytest.mark.slow
@pytest.mark.parametrize("part", parts(10))
@pytest.mark.parametrize("strategy", GOES_ON)
def test_two_thousand_schedules_in_which_drivers_die_amid_absence(strategy, part):
    deaths, found = met("joined", strategy, range(part * SHARE, (part + 1) * SHARE))
    assert deaths.total() > SHARE / 4
    assert found["tentative"] > SHARE / 20
