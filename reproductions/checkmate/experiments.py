"""The experiments whose runs the measured tables and figures of `checkmate` are made of.

As in the paper, section VII: windows of 60 s, one kill of a worker at second 18 (48 on the cycle), uniform input
unless skew is the matter. Otherwise than there, protocols meet under the same load instead of 80 % of what each
sustains: 5,000 records/s, or what two cores can make and carry where the load matters (figures 8, 12 and 13).
"""

from __future__ import annotations

from itertools import product
from typing import Any

from experiments.documents.parsing import parse
from experiments.engines import BY_OWN_CLOCK, ProtocolName
from experiments.spec import Experiment
from experiments.workloads.base import WorkloadName
from experiments.workloads.catalogue import NexmarkQuery, NexmarkSpec
from reproductions.measured import repeated
from results.runs.store import Run

QUERIES = (NexmarkQuery.Q1, NexmarkQuery.Q3, NexmarkQuery.Q8, NexmarkQuery.Q12)
SHUFFLED = QUERIES[1:]
PROTOCOLS = (ProtocolName.COORDINATED, ProtocolName.UNCOORDINATED, ProtocolName.COMMUNICATION_INDUCED)
SHORT = {
    ProtocolName.NONE: "none",
    ProtocolName.COORDINATED: "COOR",
    ProtocolName.UNCOORDINATED: "UNC",
    ProtocolName.COMMUNICATION_INDUCED: "CIC",
}
WORKERS, WINDOW_S, KILL_AT_S, HEAL_AFTER_S = 2, 60.0, 18.0, 2.0
INTERVAL_S = 5.0  # of checkpoints; the paper does not give it
RATE = 5000.0
ONE_RECORD: dict[str, Any] = {"records_per_message": 1}
ONE_RECORD_RATE, ONE_RECORD_WINDOW_S = 500.0, 20.0
# At high rates the exact output takes longer than the run. So searches have short probes, which take short intervals.
LOADED_INTERVAL_S = 2.0
LOADED = ONE_RECORD | {"checkpoint_interval_s": LOADED_INTERVAL_S}
PARALLEL = (1, WORKERS)
HOT_SHARES = (0.1, 0.2, 0.3)
# No shares of what is sustained: at some 150,000 records/s the generator gives in before the query does, since they
# share two cores (docs/lab/checkmate-measured.md#who-gives-in-first).
LOAD_RATES = (60_000.0, 100_000.0)
CYCLE, CYCLIC_RATE, CYCLIC_KILL_AT_S = WorkloadName.REACHABILITY, 3000.0, 48.0


def killed(size: int) -> list[Experiment]:
    """Each query with each protocol, a worker killed; `size` runs of each."""
    kill = kill_at(KILL_AT_S)
    return repeated((on_testbed("kill", *cell, faults=kill) for cell in product(QUERIES, PROTOCOLS)), size)


def staggered(size: int) -> list[Experiment]:
    """Each query, the cyclic one too, with each protocol of own clocks, which are out of step, a worker killed."""
    kill, out_of_step = kill_at(KILL_AT_S), {"staggered": True}
    asked = product(QUERIES, BY_OWN_CLOCK)
    made = [on_testbed("staggered", *cell, engine=out_of_step, faults=kill) for cell in asked]
    return repeated([*made, *(on_cycle(protocol, "staggered-cycle", out_of_step) for protocol in BY_OWN_CLOCK)], size)


def one_record(size: int) -> list[Experiment]:
    """Each query with each protocol, on one worker and on two, at one record per message and without faults."""
    load, window_s = {"mode": "rate", "rate": ONE_RECORD_RATE}, ONE_RECORD_WINDOW_S
    asked = product(QUERIES, PROTOCOLS, PARALLEL)
    made = (on_testbed("one-record", *cell, engine=ONE_RECORD, load=load, window_s=window_s) for cell in asked)
    return repeated(made, size)


def searched(size: int) -> list[Experiment]:
    """Each query with each protocol and without, on one worker and on two: the highest rate that is sustained."""
    return repeated((_search(*cell) for cell in product(QUERIES, SHORT, PARALLEL)), size)


def _search(query: NexmarkQuery, protocol: ProtocolName, workers: int) -> Experiment:
    """At one record per message, as in the paper."""
    load = {"mode": "sustainable", "rate": RATE, "precision": 0.1, "probes": 8, "probe_s": 6 * LOADED_INTERVAL_S}
    return on_testbed("search", query, protocol, workers, LOADED, load=load, window_s=10.0)


def loaded(size: int) -> list[Experiment]:
    """Each query with each protocol, under the higher of the two loads."""
    return repeated((_under_load("load", *cell, LOAD_RATES[1]) for cell in product(QUERIES, PROTOCOLS)), size)


def skewed(rate: float, size: int) -> list[Experiment]:
    """Shuffled queries, skewed, under a load [records/s]. What is compared runs one after the other.

    COOR keeps no older line. With one, its output would be an interval later than that of UNC and CIC, at any skew.
    """
    without = {ProtocolName.COORDINATED: {"spare_lines": 0}}
    asked = product(HOT_SHARES, SHUFFLED, PROTOCOLS)
    made = (_under_load("skew", query, protocol, rate, hot, without.get(protocol)) for hot, query, protocol in asked)
    return repeated(made, size)


def skewed_and_killed(size: int) -> list[Experiment]:
    """Shuffled queries, skewed, under the lower of the two loads, a worker killed."""
    kill, asked = kill_at(KILL_AT_S), product(SHUFFLED, PROTOCOLS, LOAD_RATES[:1], HOT_SHARES)
    return repeated((_under_load("skew-kill", *cell, faults=kill) for cell in asked), size)


def _under_load(
    purpose: str,
    query: NexmarkQuery,
    protocol: ProtocolName,
    rate: float,
    hot_share: float = 0.0,
    engine: dict[str, Any] | None = None,
    **fields: Any,
) -> Experiment:
    ending = (f"-hot{hot_share * 100:.0f}" if hot_share else "") + f"-load{rate / 1000:.0f}k"
    settings: dict[str, Any] = {"hot_share": hot_share, "name_ending": ending, "load": {"mode": "rate", "rate": rate}}
    return on_testbed(purpose, query, protocol, engine=LOADED | (engine or {}), **settings, **fields)


def workload_of(experiment: Experiment) -> NexmarkSpec:
    """The workload of an experiment on NexMark; raises `TypeError` for one on another workload."""
    if not isinstance(experiment.workload, NexmarkSpec):
        raise TypeError(f"{experiment.name} is not on NexMark")
    return experiment.workload


def load_in_words(rate: float) -> str:
    """A load [records/s] as titles and verdicts tell it."""
    return f"{rate:,.0f} records/s"


def sustainable_rate(run: Run | None) -> float | None:
    """The highest rate that a search has found to be sustained [records/s], if it did."""
    rates: list[float] = run.table("runs")["sustainable_rate"].dropna().tolist() if run else []
    return float(rates[0]) if rates else None


def cyclic(size: int) -> list[Experiment]:
    """The cyclic query with both protocols that can run it, a worker killed at second 48."""
    return repeated((on_cycle(protocol) for protocol in BY_OWN_CLOCK), size)


def on_cycle(protocol: ProtocolName, purpose: str = "cycle", engine: dict[str, Any] | None = None) -> Experiment:
    """The cyclic query with a protocol; raises `BadInput` for one that can't run it."""
    return _experiment(
        f"checkmate-{purpose}-{SHORT[protocol].lower()}-w{WORKERS}",
        protocol,
        WORKERS,
        engine,
        workload={"name": CYCLE.value},
        load={"mode": "rate", "rate": CYCLIC_RATE},
        faults=kill_at(CYCLIC_KILL_AT_S),
    )


def kill_at(at_s: float) -> dict[str, Any]:
    """The loss of one worker at this second of the window."""
    return {"events": [{"at": at_s, "targets": ["worker-1"], "heal_after": HEAL_AFTER_S}]}


def on_testbed(
    purpose: str,
    query: NexmarkQuery,
    protocol: ProtocolName,
    workers: int = WORKERS,
    engine: dict[str, Any] | None = None,
    hot_share: float = 0.0,
    name_ending: str = "",
    **fields: Any,
) -> Experiment:
    """One query of NexMark with one protocol, under uniform load unless told; `engine` adds engine settings."""
    name = f"checkmate-{purpose}-{query}-{SHORT[protocol].lower()}-w{workers}{name_ending}"
    hot = dict.fromkeys(("hot_auctions", "hot_bidders", "hot_sellers"), hot_share)
    workload = {"name": "nexmark", "query": query, "window_s": 10, "slide_s": 10} | hot
    return _experiment(name, protocol, workers, engine, workload=workload, **fields)


def _experiment(
    name: str, protocol: ProtocolName, workers: int, engine: dict[str, Any] | None = None, **fields: Any
) -> Experiment:
    """An experiment on the testbed with a partition for each worker, every operator by itself as in the paper."""
    usual = {"name": "dataflow", "partitions": workers, "chaining": False}
    usual |= {"protocol": protocol, "checkpoint_interval_s": INTERVAL_S}
    document: dict[str, Any] = {
        "name": name,
        "window_s": WINDOW_S,
        "cluster": {"workers": workers},
        "engine": usual | (engine or {}),
        "load": {"mode": "rate", "rate": RATE},
    }
    return parse(Experiment, document | fields, "experiment")
