"""Declaring, checking, laying out and drawing a dataflow."""

import pyarrow as pa
import pytest

from experiments.errors import BadInput
from testbed.core.coordinator.coordinator import Coordinator
from testbed.core.dataflow.drawing import as_text
from testbed.core.dataflow.graph import Dataflow
from testbed.core.dataflow.layout import lay_out
from testbed.operators import Aggregation, Delivery, Emit, Map, tumbling
from testbed.protocols import PROTOCOLS, by_name
from tests.unit.testbed.small_flows import COUNT, EVENTS, laid_out

LIST_KEY = pa.schema([("key", pa.list_(pa.int64())), ("at_ns", pa.int64())])
TEXT_KEY = pa.schema([("key", pa.string()), ("at_ns", pa.int64())])


def refused(*words):
    return pytest.raises(BadInput, match=".*".join(words))


def test_a_graph_without_source_or_sink_or_with_a_loose_end_is_refused():
    with refused("no source"):
        lay_out(Dataflow("empty"))
    flow = Dataflow("loose")
    stream = flow.source("events", EVENTS)
    with refused("no sink"):
        lay_out(flow)
    stream.map("unheard", lambda batch: batch)
    stream.sink("out")
    with refused("unheard leads nowhere"):
        lay_out(flow)
    flow = Dataflow("circular")
    stream = flow.source("events", EVENTS)
    circle = stream.map("circle", lambda batch: batch)
    circle.feed(circle, 0)
    stream.sink("out")
    with refused("circle leads nowhere", "operators that lead to a sink"):
        lay_out(flow)


def test_keys_and_columns_that_do_not_fit_are_refused_where_they_are_declared():
    flow = Dataflow("keys")
    left, right = flow.source("left", EVENTS), flow.source("right", TEXT_KEY)
    with refused("key", "string", "int64"):
        left.join(right, "pair", ("key", "key"))
    with refused("key", "nobody", "one of the columns"):
        left.aggregate("count", "nobody", COUNT)
    lists = flow.source("lists", LIST_KEY)
    with refused("key", "list", "single values"):
        lists.aggregate("count", "key", COUNT)
    with refused("key", "list", "single values"):
        lists.join(lists, "pair", ("key", "key"))
    with refused("column of low", "string"):
        right.aggregate("low", "key", (Aggregation("low", "min", "key"),))
    with refused("time", "absent"):
        left.aggregate("count", "key", COUNT, tumbling("absent", 10))
    with refused("function", "nobody"):
        left.map("bad", lambda batch: batch.select(["nobody"]))
    with refused("predicate", "int64"):
        left.filter("bad", lambda batch: batch.column("key"))
    assert set(flow.nodes) == {"left", "right", "lists"}


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.dictionary(pa.int32(), pa.string())], ids=str)
def test_keys_of_which_equal_ones_could_be_told_apart_are_refused(kind):
    flow = Dataflow("shares")
    stream = flow.source("shares", pa.schema([("share", kind), ("at_ns", pa.int64())]), due="at_ns")
    with refused("key", f"share of type {kind}", "not floats"):
        stream.aggregate("count", "share", COUNT)
    with refused("key", f"share of type {kind}", "not floats"):
        stream.join(stream, "pair", ("share", "share"))
    assert set(flow.nodes) == {"shares"}


def test_names_parallelism_and_inputs_are_checked():
    flow = Dataflow("names")
    stream = flow.source("events", EVENTS)
    with refused("events", "not taken"):
        flow.source("events", EVENTS)
    with refused("a/b"):
        flow.source("a/b", EVENTS)
    with refused("parallelism", "0"):
        flow.source("more", EVENTS, parallelism=0)
    with refused("inputs of stolen", "streams of the dataflow other"):
        Dataflow("other").operator("stolen", Map(lambda batch: batch), stream)
    with refused("emit"):
        stream.aggregate("count", "key", COUNT, emit=Emit.ON_CLOSE)


def test_windows_need_an_event_time_and_no_cycle_before_them():
    flow = Dataflow("timeless")
    counted = flow.source("events", EVENTS).aggregate("count", "key", COUNT, tumbling("at_ns", 10))
    counted.sink("out")
    with refused("windows of count", "no watermark"):
        lay_out(flow)
    flow = Dataflow("behind")
    stream = flow.source("events", EVENTS, time="at_ns").map("round", lambda batch: batch)
    stream.feed(stream, 0)
    stream.aggregate("count", "key", COUNT, tumbling("at_ns", 10)).sink("out")
    with refused("windows of count", "no watermark"):
        lay_out(flow)


def test_a_cycle_takes_the_schema_of_the_port_and_is_found():
    flow = Dataflow("cycle")
    stream = flow.source("events", EVENTS).map("round", lambda batch: batch)
    with refused("feed of round", "schema"):
        stream.map("narrow", lambda batch: batch.select(["key"])).feed(stream, 0)
    with refused("feed", "port 3"):
        stream.feed(stream, 3)
    stream.feed(stream, 0)
    assert flow.on_cycle() == {"round"}
    layout, _ = laid_out("cyclic")
    assert layout.cyclic
    names = [each.operator for each in layout.partitions]
    assert {(names[c.sender], names[c.receiver]) for c in layout.channels if c.returning} == {("again", "visit")}
    assert not laid_out("joined")[0].cyclic


def test_coordinated_refuses_a_cycle_and_none_an_exactly_once_sink():
    with refused("protocol of cyclic", "coordinated", "its own marker"):
        Coordinator(laid_out("cyclic")[0], PROTOCOLS["coordinated"], slots=2)
    with refused("sink out", "exactly-once", "plain"):
        Coordinator(laid_out("chain")[0], PROTOCOLS["none"], slots=2)
    with refused("slots"):
        Coordinator(laid_out("chain")[0], PROTOCOLS["coordinated"], slots=0)
    with refused("spare_lines"):
        Coordinator(laid_out("chain")[0], PROTOCOLS["coordinated"], slots=1, spare_lines=-1)
    with refused("protocol", "paxos", "uncoordinated"):
        by_name("paxos")


def test_the_layout_joins_partitions_as_they_lie_or_by_key():
    layout, _ = laid_out("joined")
    names = [each.name for each in layout.partitions]
    ends = {(names[c.sender], names[c.receiver]) for c in layout.channels}
    assert {("left.0", "pair.0"), ("left.0", "pair.1"), ("right.0", "pair.1")} <= ends
    assert ("pair.0", "pairs.0") in ends
    assert ("pair.0", "pairs.1") not in ends
    assert [each.number for each in layout.partitions] == list(range(len(names)))
    assert [each.id for each in layout.channels] == list(range(len(layout.channels)))


def test_fewer_partitions_take_neighbours_together():
    flow = Dataflow("merge")
    flow.source("events", EVENTS, parallelism=4).sink("out", parallelism=2)
    layout = lay_out(flow)
    assert [(c.sender, c.receiver) for c in layout.channels] == [(0, 4), (1, 4), (2, 5), (3, 5)]


def test_more_partitions_share_what_their_neighbour_sends():
    flow = Dataflow("split")
    flow.source("events", EVENTS, parallelism=2).sink("out", parallelism=5)
    layout = lay_out(flow)
    assert [(c.sender, c.receiver) for c in layout.channels] == [(0, 2), (0, 3), (0, 4), (1, 5), (1, 6)]
    assert [[len(route.channels) for route in each.routes] for each in layout.partitions[:2]] == [[3], [2]]


def test_a_drawing_shows_operators_streams_keys_and_cycles():
    flow = Dataflow("drawn")
    stream = flow.source("events", EVENTS, parallelism=2).map("round", lambda batch: batch)
    stream.feed(stream, 0)
    stream.aggregate("count", "key", COUNT).sink("out", Delivery.PLAIN)
    assert as_text(flow).splitlines() == [
        "dataflow drawn",
        "  events: Source x 2",
        "  round: Map x 2 <- events, round",
        "  count: Aggregate x 2 <- round by key",
        "  out: Sink x 2 <- count",
    ]
