"""Recovery lines and useless checkpoints where messages travel in ranges, against `models.checkpoint_graph`."""

import pytest

from models.checkpoint_graph import on_z_cycle, recovery_line
from testbed.core.partition.partition import PartitionLimits
from tests.unit.testbed.campaigns import first_and_rest
from tests.unit.testbed.protocols.test_recovery_lines import LOGGED, recorded

LIMITS = PartitionLimits(frames_in_flight=1, records_per_message=1, messages_in_range=4)


@pytest.mark.parametrize("seeds", first_and_rest(range(12), 2))
@pytest.mark.parametrize("protocol", LOGGED)
@pytest.mark.parametrize("flow", ["tiny", "joined", "cyclic"])
def test_every_recovery_goes_to_the_line_of_the_single_messages(flow, protocol, seeds):
    lines = 0
    for seed in seeds:
        for execution, line in recorded(flow, protocol, seed, limits=LIMITS)[0].at_recovery:
            assert line == recovery_line(execution).tolist(), f"seed {seed}"
            lines += any(line)
    assert lines


@pytest.mark.parametrize("seeds", first_and_rest(range(12), 3))
def test_communication_induced_checkpoints_are_never_useless_and_uncoordinated_ones_are(seeds):
    useless, forced = dict.fromkeys(LOGGED, 0), 0
    for protocol in LOGGED:
        for seed in seeds:
            recorder, outcome = recorded("cyclic", protocol, seed, limits=LIMITS, faults=())
            useless[protocol] += int(on_z_cycle(recorder.execution()).sum())
            forced += outcome.tally.forced
    assert useless["communication-induced"] == 0
    assert useless["uncoordinated"] > 0
    assert forced > 0
