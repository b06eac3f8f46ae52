"""A simulation that takes a moment, in place of the paper's interval and of costs that are measured."""

import pytest

from reproductions.checkmate import simulated
from testbed.scaling import study
from testbed.scaling.costs import Costs, Linear, OperatorCosts

FREE = Linear(0.0, 0.0)
OPERATOR = OperatorCosts(Linear(1e-2, 0.0), 1.0, Linear(400.0, 40.0), Linear(1e-3, 0.0), Linear(300.0, 40.0), FREE)
NAMES = ("bids", "euros", "count", "auctions", "persons", "wanted", "near", "pairs", "out")
COSTS = Costs(dict.fromkeys(NAMES, OPERATOR), 0.0, FREE, FREE, 0.0, Linear(0.01, 0.0), Linear(0.02, 0.0), 1e-4, 1e-4)
SMALL = {"INTERVAL_S": 0.5, "WARM_S": 0.1, "MEASURED_S": 0.3, "FAILURE_S": 2.0, "PROBE_HOOKS": 1000}


@pytest.fixture(autouse=True)
def quick_simulation(monkeypatch):
    monkeypatch.setattr(simulated, "costs", lambda spec: COSTS)
    for name, value in SMALL.items():
        monkeypatch.setattr(study, name, value)
