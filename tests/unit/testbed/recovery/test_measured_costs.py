"""Partitions cost the CPU that they take: what is measured, what is planned by it, and what fits nowhere."""

from random import Random

import pytest

from experiments.errors import BadInput
from testbed.recovery import QueryCentric, packing
from testbed.recovery.assignment import assigned, assigned_by_cost
from testbed.recovery.query_partitions import queries_of
from testbed.runtime.network.messages import Cost, SlotStatus
from testbed.runtime.server.measured_costs import MeasuredCosts
from tests.unit.testbed.campaigns import quick
from tests.unit.testbed.queries.hashtag_queries import FIFTEEN, laid_out
from tests.unit.testbed.recovery.bursts import arrivals_after

TEN, LIMIT = 10, 0.8


def status(cpu_s, **counts):
    """Of each partition the records, or these and the CPU time that it took itself, half of it for checkpoints."""
    given = {int(name[1:]): of if isinstance(of, tuple) else (of, 0.0) for name, of in counts.items()}
    costs = {number: Cost(False, own_s / 2, own_s / 2, records, 0, 0) for number, (records, own_s) in given.items()}
    return SlotStatus(1, cpu_s=cpu_s, costs=costs)


def measured(*reports, running=range(9)):
    costs = MeasuredCosts({})
    for at_s, worker, report in reports:
        costs.note(worker, report, at_s, running)
    return costs.cores


def test_what_a_slot_takes_beside_its_partitions_is_divided_by_their_records():
    found = measured((0, "a", status(5.0, p0=100, p1=0)), (4, "a", status(7.0, p0=400, p1=100)))
    assert found == pytest.approx({0: 0.375, 1: 0.125})


def test_a_partition_of_few_dear_records_costs_what_it_takes_itself():
    first = status(5.0, p0=(100, 1.0), p1=(0, 2.0))
    assert measured((0, "a", first), (4, "a", status(7.0, p0=(400, 1.2), p1=(100, 3.4)))) == pytest.approx(
        {0: (0.2 + 0.3) / 4, 1: (1.4 + 0.1) / 4}
    )


def test_of_a_slot_whose_clock_says_less_than_those_of_its_partitions_nothing_is_left_to_divide():
    assert measured((0, "a", status(0.0, p0=(0, 0.0))), (4, "a", status(1.9, p0=(9, 2.0)))) == {0: 0.5}


def test_a_copy_is_no_partition_of_the_slot():
    copied = [SlotStatus(1, cpu_s=float(n), costs={3: Cost(True, n, 0.0, n, 0, 0)}) for n in (0, 10)]
    assert measured((0, "a", copied[0]), (4, "a", copied[1])) == {}


def test_a_partition_that_waits_for_input_keeps_its_cost():
    reports = (0, "a", status(0.0, p0=0, p1=0)), (4, "a", status(2.0, p0=100, p1=0))
    assert measured(*reports, running={0}) == {0: 0.5}


def test_nothing_is_measured_across_an_interruption():
    costs = MeasuredCosts({0: 0.3})
    costs.note("a", status(0.0, p0=0), 0, {0})
    costs.interrupt()
    costs.note("a", status(5.0, p0=100), 5, {0})
    assert costs.cores == {0: 0.3}
    costs.note("a", status(5.1, p0=101), 5.5, {0})
    assert costs.cores == {0: 0.3}
    costs.note("a", status(5.2, p0=102), 6, {0})
    assert costs.cores == pytest.approx({0: 0.2})


def test_only_the_last_seconds_count():
    reports = [(at_s, "a", status(at_s * (0.2 if at_s < 50 else 0.5), p0=at_s)) for at_s in range(100)]
    assert measured(*reports)[0] == pytest.approx(0.5)


def test_what_a_slot_that_is_gone_took_is_remembered_and_a_restored_partition_counts_anew():
    costs = MeasuredCosts({})
    for at_s, cpu_s, count in ((0, 0.0, 0), (2, 1.0, 50)):
        costs.note("a", status(cpu_s, p0=count), at_s, {0})
    costs.forget("a")
    costs.note("b", status(9.0, p0=3), 5, {0})
    assert costs.cores == {0: 0.5}
    costs.note("b", status(9.2, p0=30), 6, {0})
    assert costs.cores == {0: pytest.approx(0.2)}


def test_a_slot_that_processes_nothing_measures_nothing():
    assert measured((0, "a", status(0.0, p0=5)), (1, "a", status(0.1, p0=5))) == {}
    assert measured((0, "a", status(0.0, p0=5)), (1, "a", status(0.1, p0=2))) == {}


def measuring(costs):
    strategy = QueryCentric(planner="best-density", cores=LIMIT)
    strategy.measured = costs
    return strategy


def uneven(seed):
    random = Random(seed)
    return {number: random.uniform(0.02, 0.3) for number in range(31)}


def loads_of(costs, monkeypatch):
    """What each worker has had to give whenever partitions were restored there, and the queries by arrival."""
    loads = []
    real = QueryCentric.plan

    def watched(strategy, world):
        found = real(strategy, world)
        if world.started:
            hosts = {**world.hosts, **found}
            new = {hosts[number] for number in found}
            loads.extend(sum(costs[n] for n, at in hosts.items() if at == worker) for worker in new)
        return found

    monkeypatch.setattr(QueryCentric, "plan", watched)
    _, found = arrivals_after(laid_out(FIFTEEN), measuring(costs), TEN, range(2, TEN))
    return loads, [len(each) for each in found]


@pytest.mark.parametrize("seed", quick(range(8), range(3)))
def test_no_worker_gets_more_than_it_gives_and_all_queries_return(seed, monkeypatch):
    loads, found = loads_of(uneven(seed), monkeypatch)
    assert loads
    assert max(loads) <= LIMIT * (1 + 1e-6)
    assert found == sorted(found)
    assert found[-1] == 15


def test_places_that_do_not_look_at_costs_are_noticed(monkeypatch):
    monkeypatch.setattr(packing, "assigned_by_cost", lambda partitions, room, costs: assigned(partitions, room))
    assert max(max(loads_of(uneven(seed), monkeypatch)[0]) for seed in range(4)) > LIMIT * (1 + 1e-6)


def test_cheap_queries_return_sooner_than_by_number():
    cheap = dict.fromkeys(range(31), 0.02)
    _, by_cost = arrivals_after(laid_out(FIFTEEN), measuring(cheap), TEN, range(2, TEN))
    _, by_number = arrivals_after(laid_out(FIFTEEN), QueryCentric(4), TEN, range(2, TEN))
    assert len(by_cost[0]) == 15 > len(by_number[0])


def test_before_anything_is_measured_partitions_are_spread_evenly():
    assert arrivals_after(laid_out(FIFTEEN), measuring({}), TEN, range(2, TEN)) == arrivals_after(
        laid_out(FIFTEEN), QueryCentric(), TEN, range(2, TEN)
    )


def test_a_partition_that_no_slot_could_take_gets_one_to_itself_and_that_is_said_once():
    layout = laid_out(FIFTEEN)
    costs = dict.fromkeys(range(31), 0.05)
    dear = next(each.number for each in layout.partitions if each.name == "o12.0")
    strategy = measuring({**costs, dear: 3.0})
    _, found = arrivals_after(layout, strategy, TEN, range(TEN))
    assert "q12.0" in found[-1]
    assert strategy.take_notes() == ["o12.0 takes 3 cores and a slot may take 0.8: it has one to itself"]


def test_a_plan_that_fits_the_sum_and_no_worker_is_made_smaller():
    assert assigned_by_cost([0, 1], {"a": 0.3, "b": 0.3}, {0: 0.4, 1: 0.1}) is None
    assert assigned_by_cost([1, 0], {"a": 0.3, "b": 0.4}, {0: 0.4, 1: 0.1}) == {0: "b", 1: "a"}
    costs = dict.fromkeys(range(31), 0.45)
    _, found = arrivals_after(laid_out(FIFTEEN), measuring(costs), TEN, range(TEN))
    queries = queries_of(laid_out(FIFTEEN))
    fitting = [name for name in found[-1] if len(queries[name]) <= TEN]
    assert fitting
    assert len(set().union(*(queries[name] for name in found[-1]))) <= TEN


def test_what_no_slot_can_give_is_refused():
    with pytest.raises(BadInput, match="more than 0"):
        QueryCentric(cores=0.0)
