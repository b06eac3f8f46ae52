"""Every workload's input: found by its spec, and the same at the same positions."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from experiments.errors import BadInput
from experiments.workloads.base import WorkloadName
from experiments.workloads.catalogue import GeneratedSpec, NexmarkQuery, NexmarkSpec, WordCountSpec
from workloads.inputs import INPUTS, records
from workloads.nexmark.queries import QUERIES
from workloads.queries import ORACLES
from workloads.queries import QUERIES as BY_WORKLOAD
from workloads.schedule import Schedule

SCHEDULE = Schedule(1_795_173_799_675_000_000, 5000.0, 3)


def test_every_workload_and_every_query_is_there():
    ours = set(WorkloadName) - {WorkloadName.OWN_JOB}  # the query of an own job is not known
    assert set(INPUTS) == set(ORACLES) == ours
    on_the_testbed_only = {
        WorkloadName.REACHABILITY,
        WorkloadName.WINDOW_TREE,
        WorkloadName.TOP_100,
        WorkloadName.INCIDENTS,
        WorkloadName.HASHTAGS,
        WorkloadName.CEC_PRICES,
    }
    assert set(BY_WORKLOAD) == ours - on_the_testbed_only
    assert list(QUERIES) == list(NexmarkQuery)


@pytest.fixture(scope="module", params=INPUTS)
def source(request, tmp_path_factory):
    if request.param is not WorkloadName.WORDCOUNT:
        return records(TypeAdapter(GeneratedSpec).validate_python({"name": request.param.value}), SCHEDULE)
    text = tmp_path_factory.mktemp("corpus") / "words.txt"
    text.write_text("\n".join(f"line {i} " + "x" * 90 for i in range(40)), encoding="utf-8")
    return records(WordCountSpec(corpus=str(text)), SCHEDULE)


@given(start=st.integers(0, 10**6), lengths=st.lists(st.integers(0, 60), max_size=5))
@settings(max_examples=20, deadline=None)
def test_the_input_does_not_depend_on_the_portions_in_which_it_is_asked_for(source, start, lengths):
    portions, position = [], start
    for length in lengths:
        portions += source(position, position + length)
        position += length
    assert portions == list(source(start, position))
    assert len(portions) == sum(lengths)


def test_the_passages_of_the_word_count_come_round_again(tmp_path):
    (tmp_path / "a.txt").write_text("one", encoding="utf-8")
    (tmp_path / "b.txt").write_text("two", encoding="utf-8")
    source = records(WordCountSpec(corpus=str(tmp_path)), SCHEDULE)
    assert source(1, 5) == [b"two", b"one", b"two", b"one"]


def test_a_corpus_that_is_not_there_is_named_when_the_input_is_asked_for(tmp_path):
    with pytest.raises(BadInput, match=r"workload\.corpus"):
        records(WordCountSpec(corpus=str(tmp_path / "nowhere")), SCHEDULE)


def test_seed_and_hot_items_of_the_spec_reach_the_events():
    first = 10**6  # by then no item is hot for being the only one
    plain = records(NexmarkSpec(), SCHEDULE)(first, first + 50)
    for changed in ({"stream_seed": 2}, {"hot_auctions": 0.0}, {"hot_bidders": 0.0}):
        assert records(NexmarkSpec(**changed), SCHEDULE)(first, first + 50) != plain
    assert records(NexmarkSpec(query="q8"), SCHEDULE)(first, first + 50) == plain
