"""The rates by which plans of figures 12 and 13 of `ppa` are made: those of the dataflow, and of a run."""

import json
from pathlib import Path

import pandas as pd
import pytest

from models.fidelity import score
from reproductions.ppa.tentative_queries import (
    COUNTED_S,
    RATE,
    Query,
    alone,
    layout_of_query,
    rates_of,
    topology_of_query,
)
from testbed.core.by_batch.cutting import Batching
from testbed.protocols import PROTOCOLS
from testbed.simulation import Simulation
from tests.unit.testbed.queries.ppa_queries import ROADS, SITE, inputs, laid_out
from tests.unit.testbed.queries.put_out import put_out

RUN = next((Path(__file__).parents[3] / "published" / "runs").glob("ppa-top100-*"))


def driven(query, seconds):
    found = put_out(layout_of_query(query), alone(query).workload, round(RATE * seconds), RATE)
    return {name: count / seconds for name, count in found.items()}


@pytest.mark.extended
@pytest.mark.parametrize("query", Query)
def test_rates_are_those_of_the_dataflow(query):
    assert driven(query, COUNTED_S) == rates_of(query)


@pytest.mark.parametrize("query", Query)
def test_a_short_drive_comes_near_them(query):
    """As near as the number of incidents allows."""
    found, known = driven(query, 20), rates_of(query)
    assert found.keys() == known.keys()
    rare = {name for name in known if name.startswith(("distinct", "jams", "all-jams"))}
    for name in known.keys() - rare - {"out.0"}:
        assert found[name] == pytest.approx(known[name], rel=0.03)
    for name in rare:
        assert found[name] == pytest.approx(known[name], rel=0.4)


@pytest.mark.parametrize(("spec", "count", "rate"), [(SITE, 800, 100.0), (ROADS, 1440, 120.0)], ids=["Q1", "Q2"])
def test_what_is_driven_puts_out_what_the_simulated_dataflow_does(spec, count, rate):
    options = {"seed": 1, "batching": Batching(10**9 // 4, 2)}
    simulation = Simulation(laid_out(spec), PROTOCOLS["batch-aligned"], inputs(spec, count, rate, 12), **options)
    simulation.run()
    partitions = [each for worker in simulation.workers for each in worker.partitions.values()]
    simulated = {each.layout.name: each.tally.records_out or each.tally.records_in for each in partitions}
    assert put_out(laid_out(spec), spec, count, rate) == simulated


def test_a_run_measured_the_same_before_its_first_loss():
    """Fidelity under the rates that the run had put out by then, and under ours. The run has longer windows, on which
    only the rates of `top` and `out` could depend, which have one partition each."""
    experiment = json.loads((RUN / "experiment.json").read_text(encoding="utf-8"))
    wanted = alone(Query.BOUND).workload.model_dump(mode="json")
    assert experiment["workload"] == wanted | {"window_s": 10.0}
    assert experiment["load"]["rate"] == RATE
    rows = pd.read_parquet(RUN / "tables" / "tentative.parquet")
    rows = rows[rows["absent"] != ""].drop_duplicates("absent")
    assert len(rows) >= 3
    topology = topology_of_query(Query.BOUND)
    for row in rows.itertuples():
        ours = score(topology, topology.mask(row.absent.split(",")))
        assert ours.output_fidelity == pytest.approx(row.output_fidelity, abs=0.005)
        assert ours.internal_completeness == pytest.approx(row.internal_completeness, abs=0.005)
