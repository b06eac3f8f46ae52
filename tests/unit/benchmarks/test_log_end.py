"""What fails is told with the end of its log, which is removed with the cluster of the benchmark."""

from __future__ import annotations

from secrets import token_hex
from types import SimpleNamespace

import pytest

from benchmarks.log_end import LENGTH, end_of
from benchmarks.orchestration import no_fault_overhead
from experiments.errors import EnvironmentFailure
from infra.cluster import Handle


def test_the_end_of_a_log_is_told_or_that_there_is_none(tmp_path):
    log = tmp_path / "query.log"
    assert end_of(log) == "without a word"
    log.write_text("begun\n" * LENGTH + "out of memory\n")
    assert (len(end_of(log)), end_of(log).endswith("begun\nout of memory")) == (LENGTH, True)


@pytest.mark.parametrize("run", [no_fault_overhead._by_hand, no_fault_overhead._benchmarked])
def test_a_query_that_ends_early_is_not_waited_for(run, tmp_path, monkeypatch):
    handle = Handle("run-1", "local", token_hex(8), str(tmp_path))
    log = handle.directory("gateway") / "logs" / "query.log"
    log.parent.mkdir(parents=True)
    log.write_text("out of memory\n")
    monkeypatch.setattr(no_fault_overhead, "_config", lambda *_: tmp_path / "query.json")
    monkeypatch.setattr(no_fault_overhead, "spark_conf", lambda *_: {})
    ended = SimpleNamespace(spawn=lambda *_: None, running=lambda *_: {"sampler", "injector"})
    with pytest.raises(EnvironmentFailure, match="ended before it had read all records: out of memory"):
        run(ended, handle, None, tmp_path)
