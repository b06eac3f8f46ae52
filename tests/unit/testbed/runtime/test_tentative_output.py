"""Tentative output on its way out, and what the journal tells of it."""

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from experiments.errors import BadInput
from journal.events.testbed import TESTBED, PartitionsAbsent, PartitionTentative
from journal.reader import events
from journal.writer import Journal
from testbed.core.control import Ready, TurnedTentative
from testbed.core.coordinator.coordinator import Coordinator
from testbed.core.effects import PublishTentative
from testbed.operators import Delivery
from testbed.protocols import PROTOCOLS
from testbed.queries import as_messages
from testbed.recovery import STRATEGIES
from testbed.runtime.connectors.sinks import published
from testbed.runtime.job import OutputKind, OutputSpec
from testbed.runtime.server.missing_input import MissingInput
from testbed.runtime.slot.outputs import MOST_UNWRITTEN, Outputs
from tests.unit.testbed.recovery.small_layouts import two_sources
from tests.unit.testbed.runtime.backgrounds import AtOnce, Later
from tests.unit.testbed.small_job import JOB, rows

BIDS = pa.record_batch(
    {"position": [0], "at_ns": [5_000_000], "auction": [1], "bidder": [2], "euros_milli": [3000], "extra": ["x"]}
)


def outputs_of(folder, background):
    """The outputs of a slot whose sinks write files, and the layout of one sink."""
    job = replace(JOB, output=OutputSpec(OutputKind.FILES, Delivery.EXACTLY_ONCE, str(folder / "output")))
    sink = job.layout().partitions[-1]
    outputs = Outputs(job, background, lambda *_: None, lambda number: None)
    outputs.open(sink)
    return outputs, sink


def test_tentative_results_have_their_batch_and_a_folder_of_their_own(tmp_path):
    outputs, sink = outputs_of(tmp_path, AtOnce())
    outputs.write_tentative(sink, PublishTentative(7, (rows(1, 2),)))
    outputs.write_tentative(sink, PublishTentative(8, (rows(3),)))
    outputs.publish(sink.number, 1, [rows(4)])
    found = [each.to_pylist() for each in published(tmp_path / "output-tentative")]
    assert found == [[{"number": 1, "batch": 7}, {"number": 2, "batch": 7}], [{"number": 3, "batch": 8}]]
    assert [each.to_pylist() for each in published(tmp_path / "output")] == [[{"number": 4}]]


def test_a_run_without_tentative_output_opens_none(tmp_path):
    outputs, sink = outputs_of(tmp_path, AtOnce())
    outputs.publish(sink.number, 1, [rows(4)])
    assert not Path(tmp_path / "output-tentative").exists()


def test_a_sink_is_not_done_while_tentative_results_are_under_way(tmp_path):
    background = Later()
    outputs, sink = outputs_of(tmp_path, background)
    assert outputs.is_out(sink.number)
    for batch in range(40):
        outputs.write_tentative(sink, PublishTentative(batch, (rows(batch),)))
    assert (outputs.is_out(sink.number), outputs.is_full(sink.number)) == (False, False), (
        "few records, whatever batches"
    )
    outputs.write_tentative(sink, PublishTentative(40, (rows(*range(MOST_UNWRITTEN - 40)),)))
    assert not outputs.is_full(sink.number), "the first is being written"
    outputs.write_tentative(sink, PublishTentative(41, (rows(1),)))
    assert (outputs.is_out(sink.number), outputs.is_full(sink.number)) == (False, True)
    for _ in range(2):
        background.go_on()
    assert (outputs.is_out(sink.number), outputs.is_full(sink.number)) == (True, False)


def test_tentative_results_that_wait_come_out_before_the_exact_ones_that_take_their_place(tmp_path):
    """The first is being written when the second comes; then the sink is restored, and publishes both batches."""
    background, seen = Later(), []
    outputs, sink = outputs_of(tmp_path, background)
    for batch in (7, 8):
        outputs.write_tentative(sink, PublishTentative(batch, (rows(batch),)))
    outputs.open(sink)
    outputs.publish(sink.number, 9, [rows(7), rows(8)])

    def tentative():
        return [row["batch"] for each in published(tmp_path / "output-tentative") for row in each.to_pylist()]

    for act, then in background.take():
        done = act()
        seen.append((tentative(), len(published(tmp_path / "output"))))
        then(done)
    assert seen[-1] == ([7, 8], 1)
    assert ([7], 0) in seen, "the first was not written before the second came"
    assert all(found == [7, 8] for found, exact in seen if exact)
    assert outputs.is_out(sink.number)


def test_the_messages_of_tentative_results_have_the_batch():
    tentative = BIDS.append_column("batch", pa.array([9]))
    (exact,) = (json.loads(value) for _, value in as_messages(JOB.workload, BIDS, 1))
    (found,) = (json.loads(value) for _, value in as_messages(JOB.workload, tentative, 1))
    assert found == exact | {"batch": 9}


def test_kafka_has_a_topic_for_them():
    output = OutputSpec(OutputKind.KAFKA, Delivery.EXACTLY_ONCE)
    assert (output.topic, output.tentative.topic) == ("output", "tentative-output")


def test_a_job_whose_survivors_do_not_go_on_refuses_tentative_output():
    with pytest.raises(BadInput, match="off with recovery global"):
        replace(JOB, tentative=True)


def test_the_journal_tells_who_is_absent_and_who_goes_on_without(tmp_path):
    layout, recovery = two_sources(0, 1, 2), STRATEGIES["passive"]()
    coordinator = Coordinator(layout, PROTOCOLS["batch-aligned"], 3, recovery=recovery, tentative=True)
    missing = MissingInput(layout, coordinator, Journal(tmp_path / "query.jsonl"))

    def heard(message):
        missing.hear(message)
        coordinator.on_message(message)
        missing.look()

    for worker in ("w0", "w1", "w2"):
        coordinator.on_joined(worker)
        missing.look()
    for number in range(3):
        heard(Ready(number, 1))
    coordinator.on_lost("w0")
    heard(TurnedTentative(2, 0, 7))
    heard(TurnedTentative(2, 1, 7))
    coordinator.on_joined("w3")
    missing.look()
    told = list(events(tmp_path / "query.jsonl", TESTBED))
    assert [each.partitions for each in told if isinstance(each, PartitionsAbsent)] == [("a.0",), ()]
    assert [(e.partition, e.epoch, e.batch) for e in told if isinstance(e, PartitionTentative)] == [("c.2", 1, 7)]
