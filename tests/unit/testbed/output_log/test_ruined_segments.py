"""Under the protocol, segments that every line needs are damaged: the partition starts again, and nothing is lost."""

from functools import partial

import pytest

from experiments.errors import EnvironmentFailure
from testbed.core.coordinator.history import History
from testbed.core.dataflow.layout import Layout
from testbed.protocols import output_logged
from testbed.protocols.output_logged import OutputLogged
from testbed.simulation import CrashMoment, Fault
from tests.unit.testbed.campaigns import parts
from tests.unit.testbed.output_log.planted import is_noticed
from tests.unit.testbed.output_log.protocol_runs import simulated, wanted

STRATEGIES = ("global", "passive", "blocking")
FIRST = {"slow": 300, "fast": 350, "filtered": 450}  # the step of the first crash: there may be a stable line
ROUNDS, SEEDS, MOST_STEPS = 40, range(3, 7), 4000


def ruined(name, seed, strategy):
    """The last crashes come while the partition that started again may not have caught up."""
    crashes = [Fault(CrashMoment.ANY, FIRST[name] + 15 * (seed % 8), ruins=True), Fault(CrashMoment.ANY, 60)]
    crashes.append(Fault(CrashMoment.ANY, 40 + seed % 30, late=True))
    policy = "opens" if seed % 2 else "targets"
    return simulated(name, seed, strategy, policy, faults=crashes)


@pytest.fixture
def lines(monkeypatch):
    """Whenever a partition starts again, the numbers of the checkpoints of the line from then on."""
    found, real = [], History._begin_anew

    def begin_anew(history, partition, lost):
        real(history, partition, lost)
        found.append([each.number for each in history.line])

    monkeypatch.setattr(History, "_begin_anew", begin_anew)
    return found


def campaign(seeds, name="slow"):
    for seed in seeds:
        assert ruined(name, seed, STRATEGIES[seed % 3]).run().published == wanted(name), f"seed {seed}"


def spared(lines):
    """How often only the partition and those that make its input started again; the others went on from the line."""
    return sum(0 in line and any(line) for line in lines)


def test_output_is_exact_though_no_line_can_be_read(lines):
    campaign(SEEDS)
    assert spared(lines) > 1


@pytest.mark.extended
@pytest.mark.parametrize("part", parts(4))
@pytest.mark.parametrize("name", ["slow", "filtered", "fast"])
def test_hundreds_of_ruined_lines(lines, name, part):
    campaign(range(part * ROUNDS, (part + 1) * ROUNDS), name)
    assert spared(lines) > ROUNDS / 8


def noticed(name, seed):
    return is_noticed(partial(ruined(name, seed, STRATEGIES[seed % 3]).run, MOST_STEPS), wanted(name))


def own_input_forgotten(layout, numbers):
    """The partitions that make the input of the partition go on from the line."""
    return frozenset(numbers)


def lost_ones_too(number, taken):
    return max((each for each in taken if each.number <= number), key=lambda each: each.number)


def lines_kept(history, partition, lost, real=History._begin_anew):
    lines = list(history._lines)
    real(history, partition, lost)
    history._lines = lines


PLANTS = [
    (Layout, "with_upstream", own_input_forgotten),
    (output_logged, "_last_up_to", lost_ones_too),
    (History, "_begin_anew", lines_kept),
]


@pytest.mark.parametrize(("where", "name", "planted"), PLANTS, ids=[name for _, name, _ in PLANTS])
def test_a_planted_error_is_noticed(monkeypatch, where, name, planted):
    monkeypatch.setattr(where, name, planted)
    assert any(noticed(flow, seed) for flow in ("fast", "slow") for seed in SEEDS)


def test_where_that_is_impossible_one_line_says_what_is_lost(monkeypatch):
    monkeypatch.setattr(OutputLogged, "begins_anew", False)
    found = []
    for seed in SEEDS:
        try:
            ruined("slow", seed, STRATEGIES[seed % 3]).run()
        except EnvironmentFailure as error:
            found.append(str(error))
    assert found
    assert all("no line of checkpoints is left for" in each and "\n" not in each for each in found)
