"""The experiments whose runs the measured tables and figures of `checkmate` are made of.

As in the paper, section VII: windows of 60 s, one kill of a worker at second 18 (48 on the cycle), uniform input
unless skew is the matter. Otherwise than there, runs without skew have one rate for all, which a machine with two
cores can make and carry, instead of 80 % of what each protocol sustains: so protocols meet under the same load, and
nothing has to be searched for before.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

from experiments.engines import Protocol
from experiments.parsing import parse
from experiments.spec import Experiment
from experiments.workloads import NexmarkQuery

QUERIES = (NexmarkQuery.Q1, NexmarkQuery.Q3, NexmarkQuery.Q8, NexmarkQuery.Q12)
SHUFFLED = QUERIES[1:]
PROTOCOLS = (Protocol.COORDINATED, Protocol.UNCOORDINATED, Protocol.COMMUNICATION_INDUCED)
SHORT = {
    Protocol.NONE: "none",
    Protocol.COORDINATED: "COOR",
    Protocol.UNCOORDINATED: "UNC",
    Protocol.COMMUNICATION_INDUCED: "CIC",
}
WORKERS, WINDOW_S, KILL_AT_S, HEAL_AFTER_S = 2, 60.0, 18.0, 2.0
INTERVAL_S = 5.0  # of checkpoints; the paper does not give it
RATE = 5000.0
ONE_RECORD_RATE, ONE_RECORD_WINDOW_S = 500.0, 20.0
PARALLEL = (1, WORKERS)


def killed(size: int) -> list[Experiment]:
    """Each query with each protocol, a worker killed; `size` runs of each."""
    kill = kill_at(KILL_AT_S)
    return repeated((on_testbed("kill", *cell, faults=kill) for cell in product(QUERIES, PROTOCOLS)), size)


def one_record(size: int) -> list[Experiment]:
    """Each query with each protocol, on one worker and on two, at one record per message and without faults."""
    load, window = {"mode": "rate", "rate": ONE_RECORD_RATE}, {"window_s": ONE_RECORD_WINDOW_S}
    asked = product(QUERIES, PROTOCOLS, PARALLEL)
    made = (on_testbed("one-record", *cell, records_per_message=1, load=load, **window) for cell in asked)
    return repeated(made, size)


def kill_at(at_s: float) -> dict[str, Any]:
    """The loss of one worker at this second of the window."""
    return {"events": [{"at": at_s, "targets": ["worker-1"], "heal_after": HEAL_AFTER_S}]}


def repeated(experiments: Iterable[Experiment], size: int) -> list[Experiment]:
    """Each of them `size` times, under seeds from 1; all under one seed before any under the next."""
    once = list(experiments)
    return [each.model_copy(update={"seed": seed}) for seed in range(1, size + 1) for each in once]


def on_testbed(
    purpose: str,
    query: NexmarkQuery,
    protocol: Protocol,
    workers: int = WORKERS,
    records_per_message: int | None = None,
    hot_share: float = 0.0,
    name_ending: str = "",
    **fields: Any,
) -> Experiment:
    """One query of NexMark with one protocol, under uniform load unless told."""
    name = f"checkmate-{purpose}-{query}-{SHORT[protocol].lower()}-w{workers}{name_ending}"
    hot = dict.fromkeys(("hot_auctions", "hot_bidders", "hot_sellers"), hot_share)
    workload = {"name": "nexmark", "query": query, "window_s": 10, "slide_s": 10} | hot
    return _experiment(name, protocol, workers, records_per_message, workload=workload, **fields)


def _experiment(
    name: str, protocol: Protocol, workers: int, records_per_message: int | None = None, **fields: Any
) -> Experiment:
    """An experiment on the testbed with a partition for each worker."""
    engine = {"protocol": protocol, "checkpoint_interval_s": INTERVAL_S, "records_per_message": records_per_message}
    document: dict[str, Any] = {
        "name": name,
        "window_s": WINDOW_S,
        "cluster": {"workers": workers},
        "engine": {"name": "dataflow", "partitions": workers} | engine,
        "load": {"mode": "rate", "rate": RATE},
    }
    return parse(Experiment, document | fields, "experiment")
