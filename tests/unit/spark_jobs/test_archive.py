"""What the archive says when there is nothing to save."""

import pytest

from experiments.engines import EngineName, EngineSpec
from experiments.errors import EnvironmentFailure
from experiments.loads import LoadSpec
from experiments.workloads.catalogue import WordCountSpec
from journal.events.common import DriverStarted
from journal.events.query import QueryFailed, QueryReady
from journal.events.testbed import Finished
from journal.writer import Journal
from spark_jobs.tables.archive import archive, committed_offsets
from tests.unit.example_events import batch_committed, report


@pytest.mark.parametrize("events", [[], [DriverStarted(), QueryReady(()), QueryFailed("boom")]])
def test_a_query_that_committed_nothing_is_named_in_one_line(tmp_path, events):
    journal = Journal(tmp_path / "query.jsonl")
    for event in events:
        journal.record(event)
    with pytest.raises(EnvironmentFailure, match=r"^the query committed nothing in this run; see [^\n]*$"):
        archive(None, tmp_path, "127.0.0.1:1", WordCountSpec(), EngineSpec(), LoadSpec())
    assert list(tmp_path.iterdir()) == [tmp_path / "query.jsonl"]


def test_the_last_commit_says_how_far_the_query_has_read(tmp_path):
    journal = Journal(tmp_path / "query.jsonl")
    for end in (5, 9):
        source = {"startOffset": None, "endOffset": {"input": {"0": end}}}
        journal.record(batch_committed(sources=[source]))
    journal.record(QueryFailed("boom"))
    assert committed_offsets(tmp_path, EngineName.STRUCTURED_STREAMING) == {"input": {"0": 9}}


def test_the_testbed_has_read_what_its_end_says(tmp_path):
    journal = Journal(tmp_path / "query.jsonl")
    journal.record(report(positions={"persons.0": 4, "auctions.0": 4}))
    assert committed_offsets(tmp_path, EngineName.DATAFLOW) == {}
    journal.record(Finished({"persons.0": 9, "auctions.0": 8, "persons.1": 7}))
    assert committed_offsets(tmp_path, EngineName.DATAFLOW) == {"input": {"0": 8, "1": 7}}
