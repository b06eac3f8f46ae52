"""The topology of a dataflow, as the models of replication know it."""

import pytest

from models.fidelity import Scorer, score
from models.topology import Partitioning
from testbed.topology import topology_of
from tests.unit.testbed.queries.hashtag_queries import FIFTEEN
from tests.unit.testbed.queries.hashtag_queries import laid_out as hashtags_laid_out
from tests.unit.testbed.small_flows import laid_out


def streams(flow):
    topology = topology_of(laid_out(flow)[0], {})
    return {stream.name: stream.partitioning for stream in topology.streams}


@pytest.mark.parametrize("flow", ["tiny", "joined", "windowed", "spread", "chain"])
def test_partitions_are_tasks_of_the_same_name_and_channels_are_links(flow):
    layout, _ = laid_out(flow)
    topology = topology_of(layout, {})
    assert set(topology.tasks) == {each.name for each in layout.partitions}
    names = [each.name for each in layout.partitions]
    links = {
        (topology.tasks[a], topology.tasks[b])
        for stream in topology.streams
        for a, b in zip(*topology.links(stream), strict=True)
    }
    assert links == {(names[channel.sender], names[channel.receiver]) for channel in layout.channels}


def test_how_streams_are_partitioned():
    split = streams("spread")
    assert split["events > wide"] is Partitioning.SPLIT
    assert split["wide > count"] is Partitioning.FULL
    assert streams("chain")["events > double"] is Partitioning.ONE_TO_ONE


@pytest.mark.parametrize(
    ("lost", "sums", "pairs"), [(["right.0"], 1, 0), (["left.0"], 0.5, 0.5), (["left.0", "right.0"], 0.5, 0)]
)
def test_a_join_needs_both_of_its_inputs(lost, sums, pairs):
    """Both sinks emit equally much."""
    topology = topology_of(laid_out("windowed")[0], {})
    found = score(topology, topology.mask(lost))
    assert found.output_fidelity == pytest.approx((sums + pairs) / 2)


def test_who_reads_several_inputs_without_joining_them_needs_none_of_the_others():
    topology = topology_of(hashtags_laid_out(FIFTEEN), {})
    complete = Scorer(topology).completeness(topology.mask(["o4.0"]))  # which o9 reads, and o5
    assert complete[topology.tasks.index("q9.0")] == pytest.approx(0.5)
    assert complete[topology.tasks.index("q4.0")] == 0


def test_rates_are_those_of_the_partitions_if_all_are_known():
    layout, _ = laid_out("tiny")
    known = {"events.0": 8.0, "count.0": 3.0, "count.1": 1.0}
    topology = topology_of(layout, known)
    assert topology.operator["count"].output_rates == (3.0, 1.0)
    assert score(topology, topology.mask(["count.0"])).output_fidelity == pytest.approx(0.25)
    assert topology_of(layout, known | {"count.1": 0.0}).operator["count"].output_rates == (1.5, 1.5)
    assert topology_of(layout, {"events.0": 8.0, "count.1": 3.0}).operator["count"].output_rates == (3.0, 3.0)
    assert topology_of(layout, {"events.0": 8.0}).operator["count"].output_rates == (1.0, 1.0)
