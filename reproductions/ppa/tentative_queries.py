"""The queries of `ppa`, figures 12 and 13, as they are run here, and how much each of their partitions puts out.

Plans weigh partitions by what they put out. That is a property of query and load, and known before any run: a test
drives the dataflow with the first `COUNTED_S` seconds of its input and compares. The time is so long because of the
incidents, of which there are ten a second in four regions: after 40 s, as long as a run lasts before its hosts are
killed, the share of a region would be uncertain by .02 (standard deviation), after 600 s by .006.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from experiments.documents.parsing import parse
from experiments.spec import Experiment
from experiments.workloads.ppa_queries import Binding

if TYPE_CHECKING:
    from models.topology import Topology
    from testbed.core.dataflow.layout import Layout


class Query(StrEnum):
    """The queries of the paper; entries of Q1 are bound to servers, or every server gives them out."""

    BOUND = "Q1"
    SPREAD = "Q1, entries spread"
    INCIDENTS = "Q2"


RATE = 2000.0  # events of all partitions together [1/s]
WORKLOADS: dict[Query, dict[str, Any]] = {
    Query.BOUND: {"name": "top-100", "window_s": 5, "slide_s": 1, "binding": Binding.BOUND},
    Query.SPREAD: {"name": "top-100", "window_s": 5, "slide_s": 1, "binding": Binding.SPREAD},
    Query.INCIDENTS: {
        **{"name": "incidents", "window_s": 5, "slide_s": 1, "users": 1000, "segments": 500},
        **{"events_per_incident": 200, "jam_share": 1},
    },
}
SOURCES = {Query.BOUND: 8, Query.SPREAD: 8, Query.INCIDENTS: 4}
COUNTED_S = 600
PUT_OUT: dict[Query, dict[str, tuple[int, ...]]] = {  # records in `COUNTED_S`, by operator; a sink: what it takes in
    Query.BOUND: {
        "requests": (150_000,) * 8,
        "slices": (180_846, 188_770, 170_739, 188_927),
        "merged": (369_616, 359_666),
        "top": (60_000,),
        "out": (60_000,),
    },
    Query.SPREAD: {
        "requests": (150_000,) * 8,
        "slices": (220_323, 220_300, 220_600, 220_042),
        "merged": (402_704, 402_379),
        "top": (60_000,),
        "out": (60_000,),
    },
    Query.INCIDENTS: {
        "events": (300_000,) * 4,
        "speeds": (74_991, 74_987, 74_969, 74_993),
        "distinct": (1_524, 1_448, 1_556, 1_472),
        "jams": (5_525, 5_220, 5_690, 5_346),
        "all-jams": (21_781,),
        "out": (21_781,),
    },
}


def rates_of(query: Query) -> dict[str, float]:
    """The output of each partition by its name [records/s]."""
    return {f"{name}.{at}": n / COUNTED_S for name, each in PUT_OUT[query].items() for at, n in enumerate(each)}


def topology_of_query(query: Query) -> Topology:
    """The dataflow with these rates, as the models know it."""
    from testbed.topology import topology_of  # here, since the list of reproductions does without the testbed

    return topology_of(layout_of_query(query), rates_of(query))


def layout_of_query(query: Query) -> Layout:
    """The partitions that the testbed runs for the query."""
    from testbed.experiment_layout import layout_of

    return layout_of(alone(query))


def alone(query: Query) -> Experiment:
    """The query on the testbed, and nothing said of hosts, load and faults."""
    engine = {"name": "dataflow", "partitions": SOURCES[query]}
    return parse(Experiment, {"name": "ppa-quality", "workload": WORKLOADS[query], "engine": engine}, "experiment")
