"""The experiments whose runs the measured tables and figures of `checkmate` are made of.

As in the paper, section VII: windows of 60 s, one kill of a worker at second 18 (48 on the cycle), uniform input
unless skew is the matter. Otherwise than there, most runs without skew have one rate for all, which a machine with two
cores can make and carry, instead of 80 % of what each protocol sustains: so protocols meet under the same load, and
nothing has to be searched for before. How long a checkpoint takes (figure 8) depends on the load, so it is measured at
80 %.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from experiments.documents.parsing import parse
from experiments.engines import ProtocolName
from experiments.spec import Experiment
from experiments.workloads.catalogue import NexmarkQuery
from reproductions.measured import cells, repeated
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
PARALLEL = (1, WORKERS)
HOT_SHARES, LOAD_SHARES = (0.1, 0.2, 0.3), (0.5, 0.8)
CYCLIC_RATE, CYCLIC_KILL_AT_S = 3000.0, 48.0
CYCLIC_PROTOCOLS = PROTOCOLS[1:]


def killed(size: int) -> list[Experiment]:
    """Each query with each protocol, a worker killed; `size` runs of each."""
    kill = kill_at(KILL_AT_S)
    return repeated((on_testbed("kill", *cell, faults=kill) for cell in product(QUERIES, PROTOCOLS)), size)


def one_record(size: int) -> list[Experiment]:
    """Each query with each protocol, on one worker and on two, at one record per message and without faults."""
    load, window = {"mode": "rate", "rate": ONE_RECORD_RATE}, {"window_s": ONE_RECORD_WINDOW_S}
    asked = product(QUERIES, PROTOCOLS, PARALLEL)
    made = (on_testbed("one-record", *cell, engine=ONE_RECORD, load=load, **window) for cell in asked)
    return repeated(made, size)


def searched(size: int) -> list[Experiment]:
    """Each query with each protocol and without, on one worker and on two: the highest rate that is sustained."""
    return repeated((_search(*cell) for cell in product(QUERIES, SHORT, PARALLEL)), size)


def _search(query: NexmarkQuery, protocol: ProtocolName, workers: int) -> Experiment:
    """At one record per message, so that the query gives in long before the generator does."""
    load = {"mode": "sustainable", "rate": RATE, "precision": 0.1, "probes": 8, "probe_s": 6 * INTERVAL_S}
    return on_testbed("search", query, protocol, workers, ONE_RECORD, load=load, window_s=10.0)


def loaded(size: int) -> list[Experiment]:
    """Each query with each protocol, at 80 % of what the protocol sustains."""
    return _at_shares(size, "load", LOAD_SHARES[1:], queries=QUERIES, hot_shares=(0.0,))


def skewed(size: int) -> list[Experiment]:
    """Shuffled queries, skewed, at half and at 80 % of what the protocol sustains without skew.

    COOR keeps no older line. With one, its output would be an interval later than that of UNC and CIC, at any skew.
    """
    return _at_shares(size, "skew", LOAD_SHARES, coordinated={"spare_lines": 0})


def skewed_and_killed(size: int) -> list[Experiment]:
    """Shuffled queries, skewed, at half of what the protocol sustains without skew, a worker killed."""
    return _at_shares(size, "skew-kill", LOAD_SHARES[:1], faults=kill_at(KILL_AT_S))


def _at_shares(
    size: int,
    purpose: str,
    shares: tuple[float, ...],
    queries: tuple[NexmarkQuery, ...] = SHUFFLED,
    hot_shares: tuple[float, ...] = HOT_SHARES,
    coordinated: dict[str, Any] | None = None,
    **fields: Any,
) -> list[Experiment]:
    """Experiments at shares of the rate that is sustainable without skew; where that is not known, the search for it.

    `coordinated` has engine settings for COOR alone.
    """
    searches = repeated((_search(*cell, WORKERS) for cell in product(queries, PROTOCOLS)), size)
    found: list[Experiment] = []
    for search, run in cells(searches):
        rate = sustainable_rate(run)
        if rate is None:
            found.append(search)
            continue
        query, protocol = search.workload.query, search.engine.protocol_run
        engine = ONE_RECORD | (coordinated or {}) if protocol is ProtocolName.COORDINATED else ONE_RECORD
        for hot, share in product(hot_shares, shares):
            load = {"mode": "rate", "rate": round(share * rate)}
            ending = (f"-hot{hot * 100:.0f}" if hot else "") + _load_ending(share)
            settings = {"hot_share": hot, "name_ending": ending, "load": load}
            made = on_testbed(purpose, query, protocol, engine=engine, **settings, **fields)
            found.append(made.model_copy(update={"seed": search.seed}))
    return found


def _load_ending(share: float) -> str:
    """How the name ends of an experiment whose load is this share of what is sustainable."""
    return f"-load{share * 100:.0f}"


def load_of(experiment: Experiment) -> dict[str, float]:
    """`load_share`, the load as a share of what is sustainable without skew, and `load_rate` [records/s].

    Empty if the load is no such share, as that of a search.
    """
    shares = (share for share in LOAD_SHARES if experiment.name.endswith(_load_ending(share)))
    return {"load_share": share, "load_rate": experiment.load.rate} if (share := next(shares, None)) else {}


def sustainable_rate(run: Run | None) -> float | None:
    """The highest rate that a search has found to be sustained [records/s], if it did."""
    rates = run.table("runs")["sustainable_rate"].dropna() if run else []
    return float(rates.iat[0]) if len(rates) else None


def cyclic(size: int) -> list[Experiment]:
    """The cyclic query with both protocols that can run it, a worker killed at second 48."""
    return repeated((on_cycle(protocol) for protocol in CYCLIC_PROTOCOLS), size)


def on_cycle(protocol: ProtocolName) -> Experiment:
    """The cyclic query with a protocol; raises `BadInput` for one that can't run it."""
    return _experiment(
        f"checkmate-cycle-{SHORT[protocol].lower()}-w{WORKERS}",
        protocol,
        WORKERS,
        workload={"name": "reachability"},
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
