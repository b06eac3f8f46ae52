"""What the archive says when there is nothing to save."""

import pytest

from experiments.errors import EnvironmentFailure
from experiments.workloads import WordCountSpec
from journal.writer import Journal
from spark_jobs.tables.archive import archive, committed_offsets


@pytest.mark.parametrize("events", [[], ["driver-started", "ready", "query-failed"]])
def test_a_query_that_committed_nothing_is_named_in_one_line(tmp_path, events):
    journal = Journal(tmp_path / "query.jsonl")
    for event in events:
        journal.write(event)
    with pytest.raises(EnvironmentFailure, match=r"^the query committed nothing in this run; see [^\n]*$"):
        archive(None, tmp_path, "127.0.0.1:1", WordCountSpec())
    assert list(tmp_path.iterdir()) == [tmp_path / "query.jsonl"]


def test_the_last_commit_says_how_far_the_query_has_read(tmp_path):
    journal = Journal(tmp_path / "query.jsonl")
    for end in (5, 9):
        journal.write("progress", progress={"sources": [{"startOffset": None, "endOffset": {"input": {"0": end}}}]})
    journal.write("query-failed")
    assert committed_offsets(tmp_path) == {"input": {"0": 9}}
