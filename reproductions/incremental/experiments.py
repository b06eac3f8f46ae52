"""The experiments whose runs the measured figures of `incremental` are made of.

As in the paper, section 7 and appendix C: topologies 1 and 2 with one partition for each operator, checkpoints every
10 s, 8 of 10 hosts killed. Otherwise than there, a cloud's time for a new host is scaled, and the load is a tenth or
less, which a machine with two cores can carry. Hosts get partitions one after the other, in the order of their
addresses. So partition i of topology 2 is on host i modulo 10, of which the first has the source.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from itertools import product
from typing import Any, NamedTuple

from experiments.documents.parsing import parse
from experiments.engines import ProtocolName
from experiments.recovery_modes import RecoveryMode
from experiments.spec import Experiment
from experiments.workloads.hashtags import HashtagsSpec, HashtagTopology
from reproductions.measured import repeated


class Waits(StrEnum):
    """What a recovery waits for, as figure 12 names it."""

    NOTHING = "BestCase"  # so many hosts stand by as die
    ROOM = "Incremental"  # for room for the next query
    ALL = "Blocking"  # for the last host


class Place(StrEnum):
    """Which hosts die together."""

    UPSTREAM = "upstream"  # that of the source, and that of the operators of queries 0, 5 and 10: all queries are lost
    DOWNSTREAM = "downstream"  # two that have sinks only: six queries are lost, and the others are not concerned
    ANYWHERE = "anywhere"  # drawn by the seed


class Order(StrEnum):
    """How figure 18 names the processing."""

    TUPLES = "Tuple-based"  # records as they come, without output buffers; here also without checkpoints
    BATCHES = "Batch:100ms"


class Shape(NamedTuple):
    """What runs of one topology share: hosts, how many of them die for figure 12, load [tweets/s], scale of time.

    An executor takes 7 s of CPU time to start. On two cores, the hosts must come further apart than that: otherwise
    the first slot waits for the last host's start, and recovery query by query has no time to gain.
    """

    number: int
    name: HashtagTopology
    hosts: int
    lost: int
    rate: float
    time_scale: float
    window_s: float


TOPOLOGY_1 = Shape(1, HashtagTopology.TWO_WINDOWS, hosts=5, lost=3, rate=200.0, time_scale=1 / 15, window_s=150.0)
TOPOLOGY_2 = Shape(2, HashtagTopology.FIFTEEN_QUERIES, hosts=10, lost=8, rate=100.0, time_scale=0.25, window_s=210.0)
SHAPES = {each.name: each for each in (TOPOLOGY_1, TOPOLOGY_2)}
BURST_AT_S, SPREAD_S, INTERVAL_S = 25.0, 2.0, 10.0
FEW, SOME, MANY = 2, 4, 8  # hosts that die
HOSTS_AT = {Place.UPSTREAM: (1, 2), Place.DOWNSTREAM: (3, 7)}
KILLS, KILL_AT_S, KILL_EVERY_S, KILL_BACK_S = (1, 2, 3), 50.0, 4.0, 12.0
REPLAY_RATE, REPLAY_WINDOW_S = 16_000.0, 90.0  # so that a replay takes longer than until the next kill
SMALL_LOST, SMALL_HOSTS, SMALL_AT_S, SMALL_WINDOW_S, NEVER_S = (0, 1), 2, 20.0, 80.0, 3600.0
COST_WINDOW_S, COST_RATES, ORDER_INTERVAL_S, BATCH_S = 60.0, (1000.0, 2000.0), 20.0, 0.1
INTERVALS_S, INTERVAL_RATE = (1.0, 5.0, 10.0, 20.0), 40_000.0  # as in the paper, each interval sustains it


def available(size: int) -> list[Experiment]:
    """Both topologies, the same hosts lost, with each kind of waiting."""
    return repeated((_burst(shape, shape.lost, waits) for shape, waits in product(SHAPES.values(), Waits)), size)


def arrived(size: int) -> list[Experiment]:
    """Those of `available` in which hosts come one by one; the plan of blocking recovery has the same delays."""
    return repeated((_burst(shape, shape.lost, Waits.ROOM) for shape in SHAPES.values()), size)


def few_lost(size: int) -> list[Experiment]:
    """Topology 2, two hosts lost in either place, recovered incrementally and blocking."""
    settings = product((Waits.ROOM, Waits.ALL), HOSTS_AT)
    return repeated((_burst(TOPOLOGY_2, FEW, *setting) for setting in settings), size)


def few_lost_incremental(size: int) -> list[Experiment]:
    """Those of `few_lost` that are recovered incrementally."""
    return repeated((_burst(TOPOLOGY_2, FEW, Waits.ROOM, place) for place in HOSTS_AT), size)


def more_lost(size: int) -> list[Experiment]:
    """Topology 2, four and eight hosts lost, recovered incrementally and blocking."""
    waits = (Waits.ROOM, Waits.ALL)
    return repeated((_burst(TOPOLOGY_2, *each) for each in product((SOME, MANY), waits)), size)


def replayed(size: int) -> list[Experiment]:
    """Topology 1 under source replay, one to three hosts killed, each while the input is replayed for the one before.

    As many hosts stand by as die, so that nothing waits for a host. The paper's kills are 60 s apart at 200 tuples/s,
    at which a replay here takes no time.
    """
    return repeated((_killed_one_by_one(kills) for kills in KILLS), size)


def too_small(size: int) -> list[Experiment]:
    """Spark at 80 % of what two hosts sustain, with both of them and with one that is left; and a search on one."""
    left = _small(SMALL_HOSTS - SMALL_LOST[-1], lost=0)
    return repeated((*(_small(SMALL_HOSTS, lost) for lost in SMALL_LOST), left), size)


def ordered(size: int) -> list[Experiment]:
    """Figure 17's topology without faults: batches in order, and records as they come, at full load and at others."""
    loads: list[dict[str, Any]] = [{"mode": "saturating"}, *({"mode": "rate", "rate": rate} for rate in COST_RATES)]
    return repeated((_undisturbed(order, ORDER_INTERVAL_S, load) for order, load in product(Order, loads)), size)


def throughputs(size: int) -> list[Experiment]:
    """The same in batches, at full load, by checkpoint interval."""
    made = (_undisturbed(Order.BATCHES, interval_s, {"mode": "saturating"}) for interval_s in INTERVALS_S)
    return repeated(made, size)


def latencies(size: int) -> list[Experiment]:
    """The same in batches, at one rate, by checkpoint interval."""
    load = {"mode": "rate", "rate": INTERVAL_RATE}
    return repeated((_undisturbed(Order.BATCHES, interval_s, load) for interval_s in INTERVALS_S), size)


def waits_for(experiment: Experiment) -> Waits:
    """What the recovery of one of these experiments waits for."""
    engine = experiment.engine
    if engine.recovery_run is RecoveryMode.BLOCKING:
        return Waits.ALL
    return Waits.NOTHING if engine.standby_run else Waits.ROOM


def shape_of(experiment: Experiment) -> Shape:
    """The topology of one of these experiments; raises `TypeError` for one without."""
    if not isinstance(experiment.workload, HashtagsSpec):
        raise TypeError(f"{experiment.name} counts no hashtags")
    return SHAPES[experiment.workload.topology]


def place_of(experiment: Experiment) -> Place:
    """Where the hosts are that die."""
    dying = set(experiment.faults.hosts)
    return next((place for place, at in HOSTS_AT.items() if dying == _named(at)), Place.ANYWHERE)


def _named(numbers: Iterable[int]) -> set[str]:
    return {f"worker-{number}" for number in numbers}


def hosts_lost(experiment: Experiment) -> int:
    """How many hosts die."""
    faults = experiment.faults
    return sum(burst.hosts for burst in faults.bursts) + sum(len(event.targets) for event in faults.events)


def order_of(experiment: Experiment) -> Order:
    """How one of the experiments without faults processes."""
    return Order.TUPLES if experiment.engine.protocol_run is ProtocolName.NONE else Order.BATCHES


def _burst(shape: Shape, lost: int, waits: Waits, place: Place = Place.ANYWHERE) -> Experiment:
    """Only hosts that have partitions at the start can be drawn: so the same ones die in the best case."""
    standby = lost if waits is Waits.NOTHING else 0
    recovery = RecoveryMode.BLOCKING if waits is Waits.ALL else RecoveryMode.QUERY_CENTRIC
    faults = {
        "hosts": dict.fromkeys(sorted(_named(HOSTS_AT.get(place, range(1, shape.hosts + 1)))), ()),
        "time_scale": shape.time_scale,
        "bursts": [{"at": BURST_AT_S, "hosts": lost, "spread": SPREAD_S}],
    }
    return _hashtags(
        f"burst-t{shape.number}-lost{lost}-{place.value}-{waits.value.lower()}",
        shape,
        {"recovery": recovery, "standby": standby, "checkpoint_interval_s": INTERVAL_S, "partitions": 1},
        workers=shape.hosts + standby,
        load={"mode": "rate", "rate": shape.rate},
        window_s=shape.window_s,
        faults=faults,
    )


def _killed_one_by_one(kills: int) -> Experiment:
    """A partition of each operator for each host: under this strategy no slot may be idle."""
    events = [
        {"at": KILL_AT_S + KILL_EVERY_S * i, "targets": [f"worker-{i + 1}"], "heal_after": KILL_BACK_S}
        for i in range(kills)
    ]
    hosts = TOPOLOGY_1.hosts
    return _hashtags(
        f"replay-kills{kills}",
        TOPOLOGY_1,
        {"recovery": RecoveryMode.SOURCE_REPLAY, "partitions": hosts, "standby": KILLS[-1]},
        workers=hosts + KILLS[-1],
        load={"mode": "rate", "rate": REPLAY_RATE},
        window_s=REPLAY_WINDOW_S,
        faults={"events": events},
    )


def _undisturbed(order: Order, interval_s: float, load: dict[str, Any]) -> Experiment:
    in_batches = {"protocol": ProtocolName.BATCH_ALIGNED, "batch_length_s": BATCH_S}
    engine = in_batches if order is Order.BATCHES else {"protocol": ProtocolName.NONE}
    at = f"{load['rate']:g}" if "rate" in load else "full"
    return _hashtags(
        f"order-{order.name.lower()}-c{interval_s:g}-{at}",
        TOPOLOGY_1,
        engine | {"checkpoint_interval_s": interval_s, "partitions": 2},
        workers=2,
        load=load,
        window_s=COST_WINDOW_S,
    )


def _hashtags(name: str, shape: Shape, engine: dict[str, Any], workers: int, **fields: Any) -> Experiment:
    document: dict[str, Any] = {
        "name": f"incremental-{name}",
        "cluster": {"workers": workers, "worker_cores": 1},
        "workload": {"name": "hashtags", "topology": shape.name},
        "engine": {"name": "dataflow", "protocol": ProtocolName.BATCH_ALIGNED} | engine,
    }
    return parse(Experiment, document | fields, "experiment")


def _small(hosts: int, lost: int) -> Experiment:
    events = [{"at": SMALL_AT_S, "targets": ["worker-1"], "heal_after": NEVER_S}] * lost
    document: dict[str, Any] = {
        "name": f"incremental-small-lost{lost}" if hosts == SMALL_HOSTS else f"incremental-small-hosts{hosts}",
        "window_s": SMALL_WINDOW_S,
        "cluster": {"workers": hosts, "worker_cores": 1},
        "engine": {"checkpoint_interval_s": 2.0, "recovery": RecoveryMode.TASK},
        "load": {"mode": "sustainable", "share": 0.8, "precision": 0.1, "probes": 8},
        "faults": {"events": events},
    }
    return parse(Experiment, document, "experiment")
