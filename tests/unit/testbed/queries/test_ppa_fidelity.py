"""Output fidelity against accuracy: what the queries of `ppa` still find when partitions are absent.

What an absent partition takes away is taken from the input, and the output computed by the definition.
"""

from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from experiments.workloads.base import WorkloadName
from experiments.workloads.ppa_queries import Binding, IncidentsSpec, Top100Spec
from models.accuracy import accuracy_of
from models.fidelity import score
from testbed.queries import as_messages
from testbed.topology import topology_of
from tests.unit.testbed.queries.ppa_queries import exact, laid_out, made

AGREES = 0.05
SITE = Top100Spec(window_s=10.0, slide_s=5.0, stream_seed=5)
SITE_EVENTS, SITE_RATE = 80_000, 4000.0
ROADS = IncidentsSpec(
    window_s=30.0, slide_s=10.0, users=2000, segments=400, events_per_incident=240, stream_seed=5, jam_share=0.8
)
ROADS_EVENTS, ROADS_RATE = 150_000, 240.0


def quality(spec, absent):
    """The model's quality of tentative output without these partitions, all sources being equally fast."""
    topology = topology_of(laid_out(spec), {})
    return score(topology, topology.mask(absent))


def results(spec, events):
    """Key and value of each result by the end of its window."""
    rows = exact(spec, events)
    schema = laid_out(spec).channels[-1].schema
    columns = [pa.array(column, pa.int64()) for column in zip(*rows, strict=True)]
    found = {}
    for key, value in as_messages(spec, pa.RecordBatch.from_arrays(columns, schema=schema), spec.sources):
        found.setdefault(key.partition("|")[0], []).append((key.partition("|")[2], value))
    return found


@cache
def whole(spec, count, rate):
    """All events, and their results."""
    events = made(spec, count, rate)
    return events, results(spec, events)


def mean_accuracy(workload, spec, left, wanted):
    emitted = results(spec, left)
    found = [accuracy_of(workload, emitted.get(window, ()), exact) for window, exact in wanted.items()]
    assert len(found) >= 3
    return np.mean(found)


def of_servers(spec, events, lost):
    return events.filter(pa.array(np.isin(events["position"].to_numpy() % spec.sources, list(lost), invert=True)))


@pytest.mark.parametrize("lost", [{0}, {2, 5}, {0, 1, 2, 3}, {1, 2, 3, 4, 6, 7}])
def test_of_bound_entries_as_many_are_found_as_the_model_says(lost):
    events, wanted = whole(SITE, SITE_EVENTS, SITE_RATE)
    found = mean_accuracy(WorkloadName.TOP_100, SITE, of_servers(SITE, events, lost), wanted)
    assert found == pytest.approx(quality(SITE, {f"requests.{each}" for each in lost}).output_fidelity, abs=AGREES)


def test_of_spread_entries_many_more_are_found():
    spec = SITE.model_copy(update={"binding": Binding.SPREAD})
    events, wanted = whole(spec, SITE_EVENTS, SITE_RATE)
    lost = {0, 1, 2, 3}
    found = mean_accuracy(WorkloadName.TOP_100, spec, of_servers(spec, events, lost), wanted)
    assert found > quality(spec, {f"requests.{each}" for each in lost}).output_fidelity + 0.3


def without(events, speeds, distinct):
    """The events without the locations of some regions, and without the reports of others."""
    region = events["position"].to_numpy() % ROADS.sources
    location = pc.greater_equal(events["speed"], 0).to_numpy(zero_copy_only=False)
    absent = (location & np.isin(region, list(speeds))) | (~location & np.isin(region, list(distinct)))
    return events.filter(pa.array(~absent))


LOSSES = [({0}, set()), (set(), {1, 2}), ({0}, {1}), ({0, 1}, {2}), ({3}, {3})]


def found_and_predicted(speeds, distinct):
    events, wanted = whole(ROADS, ROADS_EVENTS, ROADS_RATE)
    found = mean_accuracy(WorkloadName.INCIDENTS, ROADS, without(events, speeds, distinct), wanted)
    absent = {f"speeds.{each}" for each in speeds} | {f"distinct.{each}" for each in distinct}
    return found, quality(ROADS, absent)


@pytest.mark.extended
@pytest.mark.parametrize(("speeds", "distinct"), LOSSES)
def test_a_join_finds_as_many_incidents_as_output_fidelity_says(speeds, distinct):
    found, model = found_and_predicted(speeds, distinct)
    assert found == pytest.approx(model.output_fidelity, abs=AGREES)


@pytest.mark.extended
@pytest.mark.parametrize(("speeds", "distinct"), LOSSES[:-1])
def test_a_join_finds_fewer_than_internal_completeness_says_unless_both_inputs_lose_the_same(speeds, distinct):
    found, model = found_and_predicted(speeds, distinct)
    assert found < model.internal_completeness - 2 * AGREES


@pytest.mark.extended
def test_operators_narrower_than_the_source_find_more_than_the_model_says_if_both_inputs_lose_the_same():
    """The model takes losses of joined inputs to be independent."""
    narrow = ROADS.model_copy(update={"parallelism": (4, 2, 2)})
    events, wanted = whole(ROADS, ROADS_EVENTS, ROADS_RATE)
    found = mean_accuracy(WorkloadName.INCIDENTS, narrow, without(events, {0}, {0}), wanted)
    assert found > quality(narrow, {"events.0"}).output_fidelity + AGREES
