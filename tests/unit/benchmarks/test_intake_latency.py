"""Latency from due time to result: when a file is out, and which records must have come out."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.testbed.intake_latency import Run, arguments, case_of, in_files, records_due
from experiments.errors import BadInput
from testbed.operators import Delivery
from testbed.runtime.connectors.sinks import Files
from testbed.runtime.connectors.sources import stream_of
from testbed.runtime.job import InputKind, JobInput
from tests.integration.testbed.kills.jobs import job_of
from workloads.nexmark.stream import events
from workloads.schedule import NS_PER_MS, Schedule

START_NS, RATE, SECOND = 1_700_000_000 * 10**9 + 12_345, 200.0, 10**9


def job(root: Path):
    made = job_of("q1", "coordinated", 1, root, 2, kills=1)
    return replace(made, input=JobInput(InputKind.GENERATED, None, START_NS, RATE))


def test_every_bid_that_is_due_in_the_window_must_come_out(tmp_path):
    begin_ns, end_ns = START_NS + SECOND + 777, START_NS + 5 * SECOND
    stream = stream_of(job(tmp_path).workload, Schedule(START_NS, RATE))
    due_ns = events(stream, 0, 2000).bids["date_time"].to_numpy() * NS_PER_MS
    wanted = np.count_nonzero((due_ns >= begin_ns) & (due_ns < end_ns))
    assert records_due(job(tmp_path), begin_ns, end_ns) == wanted == pytest.approx(4 * RATE * 0.92, abs=5)


def test_a_file_is_out_when_it_has_its_name_and_not_when_it_was_last_written(tmp_path):
    folder = Path(job(tmp_path).output.folder)
    Files(folder).write([pa.record_batch({"at_ns": [START_NS, START_NS + SECOND]})])
    (path,) = folder.iterdir()
    os.utime(path, ns=(START_NS, START_NS))  # the last write was long before the sync had ended
    (found,) = in_files(job(tmp_path), START_NS, START_NS + SECOND)
    assert found.tolist() == [path.stat().st_ctime_ns - START_NS]


def test_the_options_are_those_of_the_job(tmp_path):
    given = arguments(["--rate", "700", "--spare-lines", "0", "--protocols", "uncoordinated", "--deliveries", "plain"])
    assert (given.protocols, given.deliveries) == (["uncoordinated"], ["plain"])
    found = case_of(given, "uncoordinated", Delivery.PLAIN, 16, tmp_path)
    assert (found.protocol, found.output.delivery, found.spare_lines) == ("uncoordinated", Delivery.PLAIN, 0)
    assert (found.input.rate, found.limits.records_per_message) == (700.0, 16)
    assert arguments([]).spare_lines == 1
    with pytest.raises(BadInput, match="without checkpoints nothing is ever safe"):
        case_of(given, "none", Delivery.EXACTLY_ONCE, 16, tmp_path)


@pytest.mark.parametrize(("out", "figures"), [(99, ["7", "7", "7", "99.0%", "3"]), (98, ["nan"] * 3 + ["98.0%", "3"])])
def test_latencies_of_a_run_that_has_not_kept_up_are_not_known(out, figures):
    assert Run(np.full(out, 7e6), due=100, load=3.0).line().split() == figures
