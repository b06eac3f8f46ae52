"""Bursts: several workers die one after the other, and others come one by one, each when nothing else can happen."""

from random import Random

from models.recovery.problem import recovery_problem
from models.recovery.schedule import Arrival, incremental_schedule
from models.topology import parse_topology
from testbed.core.by_batch.cutting import Batching
from testbed.core.coordinator.coordinator import Coordinator
from testbed.protocols import PROTOCOLS
from testbed.recovery import QueryCentric
from testbed.recovery.query_partitions import queries_of
from testbed.simulation import CrashMoment, Fault, Simulation
from tests.unit.testbed.queries.hashtag_queries import FIFTEEN, exact, inputs, laid_out

SECOND = 10**9
WORKERS, PARTITIONS_EACH = 10, 4  # room for 40 partitions, of which `FIFTEEN` has 31


class Overloaded(Exception):
    """A worker has more partitions than it may have."""


class Late(Exception):
    """A query whose partitions are all there has not put everything out, and nothing else can happen."""


def available(layout, down):
    """The queries of which no partition is down."""
    return frozenset(name for name, partitions in queries_of(layout).items() if partitions.isdisjoint(down))


class BurstSimulation(Simulation):
    """Looks, at every arrival, at what has come out so far of each query that is available."""

    def __init__(
        self, spec, seed, workers, capacity, planner, faults, priorities=None, recovery=None, standby=0, limits=None
    ):
        layout, given = laid_out(spec), inputs(spec, 30, 10.0, 6)
        self.capacity, self.wanted, self.arrivals = capacity, exact(spec, given), []
        recovery = recovery or QueryCentric(capacity, planner, priorities)
        options = {"slots": workers, "standby": standby, "faults": faults, "expected": self.wanted}
        options["batching"] = Batching(SECOND, 1)
        options["limits"] = limits
        # Hosts take minutes, and streams take milliseconds.
        super().__init__(layout, PROTOCOLS["batch-aligned"], given, seed, recovery=recovery, returns=0.0, **options)

    def _return(self):
        self.arrivals.append(self.look(self.coordinator.down))
        super()._return()

    def look(self, lost):
        """Each query that depends on nothing lost has put out all that it has to."""
        there = available(self.layout, lost)
        for query in there:
            if self.published_by(query) != self.wanted_of(query):
                raise Late(query)
        return there

    @property
    def is_early(self):
        """Whether a query was recovered before the last worker came."""
        return len(set().union(*self.arrivals)) > len(self.arrivals[0])

    def published_by(self, query):
        return {row: n for row, n in self.outcome.published.items() if f"q{row[-1]}.0" == query}

    def wanted_of(self, query):
        return {row: n for row, n in self.wanted.items() if f"q{row[-1]}.0" == query}

    def _coordinate(self):
        super()._coordinate()
        for worker in self.workers:
            hosted = set(worker.partitions) | {number for number, _ in worker.orders}
            if len(hosted) > self.capacity:
                raise Overloaded(f"{worker.name} has {len(hosted)} partitions and may have {self.capacity}")


def burst(seed, most, within):
    """Two workers or more, up to `most`, one after the other and all within a few steps."""
    random = Random(seed)
    first = Fault(CrashMoment.ANY, random.randrange(within), late=True)
    spread = random.choice((1, 20))
    others = random.randrange(1, most)
    return [first, *(Fault(CrashMoment.ANY, random.randrange(spread), late=True) for _ in range(others))]


def fifteen_in_bursts(seed, planner=None, kind=BurstSimulation, faults=None, **options):
    """A run of fifteen queries on ten workers, with the burst of its seed unless other faults are given."""
    return kind(FIFTEEN, seed, WORKERS, PARTITIONS_EACH, planner, faults or burst_of_fifteen(seed), **options)


def burst_of_fifteen(seed):
    """Up to nine of the ten workers are lost."""
    return burst(seed, WORKERS - 1, 1200)


def topology_of(layout, priorities=None):
    """The layout in the form in which models read a topology: each partition is an operator."""
    names = [each.name for each in layout.partitions]
    given = priorities or {}
    operators = [
        {"name": name, "parallelism": 1, "priorities": [float(given.get(name.split(".")[0], 1))]} for name in names
    ]
    ends = sorted({(names[channel.sender], names[channel.receiver]) for channel in layout.channels})
    streams = [{"from": sender, "to": receiver, "partitioning": "one-to-one"} for sender, receiver in ends]
    return parse_topology({"operators": operators, "streams": streams})


def arrivals_after(layout, recovery, workers, lost, standby=0):
    """The coordinator after a number of its workers were lost, and then the available queries after each arrival."""
    coordinator = Coordinator(layout, PROTOCOLS["batch-aligned"], workers, recovery=recovery)
    for number in range(workers + standby):
        coordinator.on_joined(f"w{number}")
    for number in lost:
        coordinator.on_lost(f"w{number}")
    found, down = [available(layout, coordinator.down)], set(coordinator.down)
    for number in range(len(lost)):
        coordinator.on_joined(f"new-{number}")
        found.append(available(layout, coordinator.down))
    return down, found


def planned(layout, down, workers, capacity, arriving, planner, priorities=None):
    """The same by the model: after which arrival each query is recovered; 0 stands for what the burst left."""
    names = [f"{each.name}.0" for each in layout.partitions]
    up = len(names) - len(down)
    topology = topology_of(layout, priorities)
    problem = recovery_problem(topology, [names[number] for number in down], float(workers * capacity - up))
    arrivals = [Arrival(float(number), float(capacity)) for number in range(1, arriving + 1)]
    times = incremental_schedule(problem, arrivals, planner).recovered_at_s
    return {name.removesuffix(".0"): at_s for name, at_s in times.items()}
