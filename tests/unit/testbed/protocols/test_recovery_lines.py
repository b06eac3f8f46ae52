"""The lines that the coordinator chooses against those of `models.checkpoint_graph`, and useless checkpoints.

Messages have many records each, or one, and travel in ranges.
"""

import pytest

from models.checkpoint_graph import in_flight, on_z_cycle, orphans, recovery_line
from testbed.core.partition.partition import PartitionLimits
from tests.unit.testbed.campaigns import first_and_rest
from tests.unit.testbed.recorder import Recorder
from tests.unit.testbed.runs import simulated
from tests.unit.testbed.small_flows import laid_out

LOGGED = ("uncoordinated", "communication-induced")
RANGES = PartitionLimits(frames_in_flight=1, records_per_message=1, messages_in_range=4)
LIMITS = pytest.mark.parametrize("limits", [PartitionLimits(), RANGES], ids=["of many records", "in ranges"])


def recorded(flow, protocol, seed, **options):
    """The record of a run, and what came out of it."""
    recorder = Recorder(laid_out(flow)[0])
    return recorder, simulated(flow, protocol, seed, observer=recorder, **options).run()


@pytest.mark.parametrize("seeds", first_and_rest(range(12), 2))
@pytest.mark.parametrize("protocol", LOGGED)
@pytest.mark.parametrize("flow", ["tiny", "joined", "cyclic"])
@LIMITS
def test_every_recovery_goes_to_the_latest_consistent_line(limits, flow, protocol, seeds):
    lines = 0
    for seed in seeds:
        for execution, line in recorded(flow, protocol, seed, limits=limits)[0].at_recovery:
            assert line == recovery_line(execution).tolist(), f"seed {seed}"
            lines += any(line)
    assert lines > 5 / 12 * len(seeds)


@pytest.mark.parametrize("seeds", first_and_rest(range(30), 10))
def test_a_coordinated_line_has_neither_orphans_nor_anything_in_flight(seeds):
    lines = 0
    for seed in seeds:
        for execution, line in recorded("tiny", "coordinated", seed)[0].at_recovery:
            assert not (orphans(execution, line) | in_flight(execution, line)).any(), f"seed {seed}"
            lines += any(line)
    assert lines > len(seeds) / 6


@pytest.mark.parametrize("seeds", first_and_rest(range(12), 3))
@LIMITS
def test_communication_induced_checkpoints_are_never_useless_and_uncoordinated_ones_are(limits, seeds):
    useless, forced = dict.fromkeys(LOGGED, 0), {"without faults": 0, "with faults": 0}
    for protocol in LOGGED:
        for seed in seeds:
            recorder, outcome = recorded("cyclic", protocol, seed, limits=limits, faults=())
            useless[protocol] += int(on_z_cycle(recorder.execution()).sum())
            forced["without faults"] += outcome.tally.forced
    for seed in seeds:
        recorder, outcome = recorded("cyclic", "communication-induced", seed, limits=limits)
        useless["communication-induced"] += int(on_z_cycle(recorder.execution()).sum())
        forced["with faults"] += outcome.tally.forced
    assert useless["communication-induced"] == 0
    assert useless["uncoordinated"] > 0
    assert all(forced.values()), forced
