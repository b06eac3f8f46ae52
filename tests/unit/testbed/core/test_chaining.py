"""Which maps and filters a source does itself, and that nothing else changes by it."""

from dataclasses import replace

import pyarrow.compute as pc

from testbed.core.dataflow.chaining import chained
from testbed.core.dataflow.graph import Dataflow
from testbed.core.dataflow.layout import lay_out
from testbed.operators import Delivery, Filter, Map
from testbed.protocols import PROTOCOLS
from testbed.runtime.job import Job
from testbed.simulation import Simulation
from tests.unit.testbed.runs import oracle
from tests.unit.testbed.small_flows import COUNT, EVENTS, behind_source, doubled, events
from tests.unit.testbed.small_job import JOB


def kept(batch):
    return pc.greater(batch.column("key"), 0)


def names(flow):
    return list(flow.nodes)


def test_a_source_does_the_maps_and_filters_behind_it_and_they_send_nothing():
    flow = Dataflow("whole")
    behind_source(flow).sink("out")
    found = chained(flow)
    assert names(flow) == ["events", "keep", "double", "count", "out"]
    assert names(found) == ["events", "count", "out"]
    source = found.nodes["events"].element
    assert [type(each) for each in source.then] == [Filter, Map]
    assert source.output == EVENTS
    (edge,) = (edge for edge in found.edges if edge.sender == "events")
    assert (edge.receiver, edge.key, edge.schema) == ("count", "key", EVENTS)
    assert len(lay_out(flow).channels) == len(lay_out(found).channels) + 2 * 2


def test_the_results_are_those_of_the_dataflow_as_it_was_declared():
    flow = Dataflow("whole")
    behind_source(flow).sink("out", Delivery.PLAIN)
    inputs = {"events": [events(1), events(2)]}
    unchained = Simulation(lay_out(flow), PROTOCOLS["none"], inputs, seed=0).run().written
    assert oracle("fused") == unchained
    assert unchained


def test_what_others_read_too_or_what_has_another_parallelism_or_input_or_a_state_stays_by_itself():
    shared = Dataflow("shared")
    stream = shared.source("events", EVENTS)
    stream.map("double", doubled).sink("doubled")
    stream.sink("out")
    narrower = Dataflow("narrower")
    narrower.source("events", EVENTS, parallelism=2).map("double", doubled, parallelism=1).sink("out")
    fed = Dataflow("fed")
    one, other = fed.source("one", EVENTS), fed.source("other", EVENTS)
    double = one.map("double", doubled)
    other.feed(double, 0)
    double.sink("out")
    stateful = Dataflow("stateful")
    counts = stateful.source("events", EVENTS).aggregate("count", "key", COUNT)
    counts.map("same", lambda batch: batch).sink("out")
    for flow in (shared, narrower, fed, stateful):
        assert chained(flow) == flow


def test_behind_a_map_that_several_read_nothing_more_is_done_by_the_source():
    flow = Dataflow("fork")
    double = flow.source("events", EVENTS).map("double", doubled)
    double.filter("keep", kept).sink("kept")
    double.sink("out")
    found = chained(flow)
    assert names(found) == ["events", "keep", "kept", "out"]
    assert {edge.sender for edge in found.edges if edge.receiver in ("keep", "out")} == {"events"}


def test_a_job_chains_unless_it_is_told_not_to():
    def operators(job):
        return list(dict.fromkeys(each.operator for each in job.layout().partitions))

    assert operators(JOB) == ["bids", "out"]
    assert operators(Job.from_json(replace(JOB, chaining=False).to_json())) == ["bids", "euros", "out"]
