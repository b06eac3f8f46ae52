"""Times until results are out end when their file has its name, and not when it was last written."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa

from benchmarks.testbed.first_tentative import TURNED, _measured
from benchmarks.testbed.reached import _reached_ns
from testbed.queries import BATCH
from testbed.runtime.connectors.sinks import Files
from testbed.runtime.job import Job
from tests.integration.testbed.kills.jobs import job_of

LONG_AGO_NS = 10**9


def job(root: Path) -> Job:
    return replace(job_of("q12", "batch-aligned", 1, root, 2, kills=1), recovery="passive", tentative=True)


def synced_late(path: Path) -> int:
    """When the file got its name; its last write was long before the sync had ended."""
    os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS))
    return path.stat().st_ctime_ns


def test_an_output_is_reached_when_the_slowest_sink_has_a_file_of_a_later_batch(tmp_path: Path) -> None:
    made = job(tmp_path)
    folders = [Path(made.output.folder) / name for name in ("out.0", "out.1")]
    for folder in folders:
        Files(folder).publish({1: [pa.record_batch({"n": [1]})], 3: [pa.record_batch({"n": [2]})]})
    moment_ns = 2 * made.batching.length_ns
    later = [synced_late(folder / "000000003.arrow") for folder in folders]
    assert _reached_ns(made, moment_ns) == max(later)
    assert _reached_ns(made, 4 * made.batching.length_ns) is None


def test_a_tentative_result_is_out_when_its_file_has_its_name(tmp_path: Path) -> None:
    made = job(tmp_path)
    folder = Path(made.output.tentative.folder) / "out.0"
    Files(folder).write([pa.record_batch({BATCH: [0]})])
    (path,) = folder.iterdir()
    out_ns = synced_late(path)
    entries = [{"event": "worker-lost", "at_ns": 3 * 10**6}, {"event": TURNED, "at_ns": 5 * 10**6}]
    found = _measured(made, SimpleNamespace(entries=entries), 10**6)
    assert (found.notice, found.turned) == (2, 2)
    assert found.first == (out_ns - 3 * 10**6) / 1e6
    assert found.lag == (out_ns - made.batching.length_ns) / 1e6
