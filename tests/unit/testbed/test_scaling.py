"""The simulation of large clusters, against what can be said of small ones by hand."""

import itertools
import socket
import time
from dataclasses import replace

import numpy as np
import pytest

from experiments.errors import BadInput
from experiments.workloads.catalogue import NexmarkQuery, NexmarkSpec
from testbed.core.checkpoints import initial_line
from testbed.core.dataflow.layout import lay_out
from testbed.core.protocol import Unprotected
from testbed.operators import Delivery
from testbed.protocols import PROTOCOLS, by_name
from testbed.protocols.uncoordinated import Uncoordinated
from testbed.queries import dataflow
from testbed.scaling import measure
from testbed.scaling import study as scaling_study
from testbed.scaling.cluster import Cluster, Load
from testbed.scaling.costs import Costs, Linear, OperatorCosts, fitted
from testbed.scaling.measure import costs
from testbed.scaling.study import Deployment, study
from testbed.stores.store import MemoryStore

FREE, Q1, Q12 = Linear(0.0, 0.0), NexmarkSpec(), NexmarkSpec(query=NexmarkQuery.Q12)
PER_MESSAGE_S, PER_RECORD_S, HOP_S = 1e-3, 1e-5, 1e-3
OPERATOR = OperatorCosts(Linear(PER_MESSAGE_S, PER_RECORD_S), 1.0, Linear(100.0, 10.0), FREE, Linear(50.0, 10.0), FREE)
NAMES = ("bids", "euros", "count", "out")
CHEAP = Costs(dict.fromkeys(NAMES, OPERATOR), 0.0, FREE, FREE, 0.0, Linear(0.01, 0.0), Linear(0.02, 0.0), 0.0, HOP_S)
PARTITIONS_OF_Q1 = 3

SIMULATED = [name for name, protocol in PROTOCOLS.items() if not protocol.by_batch]


def rate(run, from_s=1.0, to_s=5.0):
    """Records a second that sources read once what is under way has settled."""
    run.run(from_s)
    before = run.totals.read_records
    run.run(to_s)
    return (run.totals.read_records - before) / (to_s - from_s)


def layout_of(spec, workers):
    return lay_out(dataflow(spec, workers, Delivery.PLAIN))


def cluster(protocol, spec=Q1, workers=2, costs=CHEAP, records=10, per_second=None, **options):
    return Cluster(layout_of(spec, workers), by_name(protocol), costs, Load(records, per_second), **options)


@pytest.mark.parametrize("workers", [1, 4])
def test_throughput_is_what_the_cpus_yield(workers):
    """Ten records take 1 ms and 0.1 ms at each of three operators: 3.3 ms of a worker's time."""
    run = cluster("none", workers=workers)
    assert rate(run) == pytest.approx(workers * 10 / 3.3e-3, rel=0.02)


def test_a_load_below_that_is_read_as_it_is_due():
    run = cluster("none", per_second=1000.0)
    assert rate(run) == pytest.approx(1000.0, rel=0.02)


def test_a_shuffle_sends_a_message_to_every_receiver():
    """A batch of 10 records becomes 4 messages at 4 receivers, each of which costs its own."""
    run = cluster("none", spec=Q12, workers=4)
    source_s, counts_s = 1e-3 + 1e-4, 4e-3 + 1e-4
    assert rate(run) == pytest.approx(4 * 10 / (source_s + 2 * counts_s), rel=0.02)


@pytest.mark.parametrize(("spec", "workers"), [(Q1, 2), (Q12, 4)])
def test_grouped_messages_cost_what_they_cost_one_by_one(spec, workers):
    """Of one record each, so that after a shuffle too a group goes to one receiver."""
    one, many = (cluster("uncoordinated", spec, workers, records=1, group=group) for group in (1, 8))
    for run in (one, many):
        run.run(6.0)
    assert many.totals.read_records == pytest.approx(one.totals.read_records, rel=0.02)
    assert many.totals.data_bytes == pytest.approx(one.totals.data_bytes, rel=0.02)
    assert many.totals.hooks < one.totals.hooks / 7


def test_hooks_and_logs_take_their_time():
    base, logged = cluster("none"), replace(OPERATOR, log_s=Linear(1.1e-3, 0.0))
    slow = cluster("uncoordinated", costs=replace(CHEAP, operators=dict.fromkeys(NAMES, logged)))
    hooked = cluster("uncoordinated", hook_s=1.1e-3 / 2)
    usual = rate(base)
    logs_two_of_three = 3.3 / (3.3 + 2 * 1.1)
    assert rate(slow) / usual == pytest.approx(logs_two_of_three, rel=0.02)
    sends_and_takes_two = 3.3 / (3.3 + 4 * 0.55)
    assert rate(hooked) / usual == pytest.approx(sends_and_takes_two, rel=0.02)


def test_a_piggyback_has_the_size_that_the_vectors_have():
    """A clock of 8 bytes, 4 for each partition, and two bits for each."""
    run = cluster("communication-induced", workers=8, per_second=1000.0)
    run.run(3.0)
    partitions = PARTITIONS_OF_Q1 * 8
    piggyback, data = 8 + 4 * partitions + 2 * partitions / 8, 100 + 10 * 10
    assert run.totals.protocol_bytes / run.totals.data_bytes == pytest.approx(piggyback / data, rel=0.02)


def test_a_coordinated_round_is_aligned_and_undoes_nothing():
    run = cluster("coordinated", spec=Q12, workers=4, per_second=400.0)
    run.run(18.0)
    found = run.restart()
    rounds = {at.number for at in found.line}
    assert rounds == {3}
    sent = {channel: at.sent[channel] for at in found.line for channel in at.sent}
    received = {channel: at.received[channel] for at in found.line for channel in at.received}
    assert sent == received
    assert found.stored == 3 * len(run.partitions)
    assert found.undone == 0


def test_a_round_takes_as_long_as_its_markers_and_objects():
    """An order, markers without other work, and a store that takes each of three objects 10 ms."""
    idle = replace(CHEAP, operators=dict.fromkeys(NAMES, replace(OPERATOR, step_s=FREE)))
    run = cluster("coordinated", workers=2, costs=idle, per_second=10.0)
    run.run(12.0)
    assert run.checkpoint_seconds == pytest.approx([HOP_S + PARTITIONS_OF_Q1 * 0.01] * 2)


@pytest.mark.parametrize("protocol", ["uncoordinated", "communication-induced"])
def test_a_line_of_independent_checkpoints_has_no_orphan(protocol):
    run = cluster(protocol, spec=Q12, workers=4, per_second=400.0, interval_s=1.0)
    run.run(18.0)
    found = run.restart()
    for channel in run.layout.channels:
        ends = found.line[channel.sender], found.line[channel.receiver]
        assert ends[1].received[channel.id] <= ends[0].sent[channel.id]
    assert found.stored > 17 * len(run.partitions) * 0.9
    assert found.line != initial_line(run.layout)


@pytest.mark.parametrize("protocol", ["uncoordinated", "communication-induced"])
def test_clocks_out_of_step_leave_a_checkpoint_invalid_of_each_partition_that_receives_from_others(protocol):
    """On every worker but one, those of both operators that receive from others: these sent it more after their own."""
    in_step, staggered = (
        cluster(protocol, spec=Q12, workers=4, per_second=400.0, staggered=staggered) for staggered in (False, True)
    )
    for run in (in_step, staggered):
        run.run(19.9)
    assert in_step.restart().undone == 0
    assert staggered.restart().undone == 2 * (4 - 1)


def test_restart_reads_states_and_logs_and_connects():
    """The busiest worker: three partitions, each with three states; the last log of a sender may be in flight."""
    quick, linked = replace(CHEAP, connect_s=0.0), replace(CHEAP, connect_s=1.0)
    runs = [cluster("coordinated", workers=4, costs=costs, per_second=1000.0) for costs in (quick, linked)]
    for run in runs:
        run.run(18.0)
    seconds = [run.restart().seconds for run in runs]
    assert seconds[0] == pytest.approx(2 * HOP_S + PARTITIONS_OF_Q1 * 3 * 0.02)
    assert seconds[1] - seconds[0] == pytest.approx(3.0)


def test_a_restart_is_the_mean_over_failures_at_all_phases_of_the_interval(monkeypatch):
    deployment = Deployment(Q12, by_name("uncoordinated"), CHEAP, 4, 10)
    found = deployment.under(400.0)
    interval_s, apart = scaling_study.INTERVAL_S, scaling_study.APART
    moments = [scaling_study.FAILURE_S + apart * number * interval_s for number in scaling_study.FAILURES]
    assert np.diff(sorted(moment % interval_s for moment in moments)) == pytest.approx(interval_s / 10)
    alone = {}
    monkeypatch.setattr(scaling_study, "FAILURES", (0,))
    for moment in moments:
        monkeypatch.setattr(scaling_study, "FAILURE_S", moment)
        alone[moment] = deployment.under(400.0)
    assert len({each.restart_s for each in alone.values()}) > 1, "or the mean says nothing"
    assert found.restart_s == pytest.approx(np.mean([each.restart_s for each in alone.values()]))
    assert replace(found, restart_s=0.0) == replace(alone[18.0], restart_s=0.0)


def test_a_cluster_runs_the_same_twice():
    runs = [cluster("communication-induced", spec=Q12, workers=3, interval_s=0.2) for _ in range(2)]
    for run in runs:
        run.run(1.0)
    assert runs[0].totals.read_records == runs[1].totals.read_records
    assert runs[0].checkpoint_seconds == runs[1].checkpoint_seconds


def test_a_cyclic_dataflow_is_refused_by_coordinated():
    from experiments.workloads.catalogue import ReachabilitySpec
    from testbed.queries.reachability import reachability

    layout = lay_out(reachability(ReachabilitySpec(), 2, Delivery.PLAIN))
    with pytest.raises(BadInput, match="would wait for its own marker"):
        Cluster(layout, by_name("coordinated"), CHEAP, Load(10))


def test_a_study_has_a_row_for_every_protocol_and_size():
    table = study(Q1, CHEAP, [1, 2, 1], 1000)
    assert list(zip(table["workers"], table["protocol"], strict=True)) == [(w, p) for w in (1, 2) for p in SIMULATED]
    assert (table.loc[table["protocol"] == "none", "relative"] == 1).all()
    assert table.loc[table["protocol"] == "none", ["checkpoint_s", "restart_s"]].isna().all().all()
    protected = table[table["protocol"] != "none"]
    assert protected[["checkpoint_s", "restart_s"]].notna().all().all()
    assert (protected["checkpoints"] > 0).all()


def test_a_disturbance_and_large_objects_leave_the_cost_of_small_ones():
    small, large = [(1.0, 1e3, 4.1e-5)] * 100, [(1.0, 2e6, 3e-3)]
    found = fitted([*small, *large, (1.0, 1e3, 0.2)])
    assert found.of(1, 1e3) == pytest.approx(4.1e-5, rel=0.05)
    assert found.of(1, 2e6) == pytest.approx(3e-3, rel=0.05)


def test_what_costs_nothing_and_what_was_not_seen_is_free():
    assert fitted([(10.0, 100.0, 0.0), (10.0, 1000.0, 0.0)]) == FREE
    assert fitted([(0.0, 0.0, 0.5)]) == FREE


def test_a_hook_costs_the_cpu_that_it_uses_and_not_the_time_that_passes(monkeypatch):
    """Or else another process that takes the CPU away for a while would make a protocol slow."""

    class Waiting(Uncoordinated):
        def on_message(self, *given):
            time.sleep(0.01)
            return super().on_message(*given)

    class Busy(Uncoordinated):
        def on_message(self, *given):
            until_s = time.thread_time() + 0.01
            while time.thread_time() < until_s:
                pass
            return super().on_message(*given)

    monkeypatch.setattr(scaling_study, "PROBE_HOOKS", 60)
    waiting, busy = (Deployment(Q1, protocol, CHEAP, 2, 10).hook_s for protocol in (Waiting, Busy))
    assert waiting < 1e-3 < 2e-3 < busy < 0.011


def test_a_wait_is_the_least_of_many_whatever_else_the_machine_does():
    ticks = itertools.accumulate(itertools.chain([0.0, 0.9, 0.0, 0.002], itertools.cycle([0.0, 0.5])))
    assert measure._least(lambda: None, lambda: next(ticks)) == pytest.approx(0.002)


def test_costs_are_those_of_the_parts():
    """Q1 sends every bid twice, 60 bytes each; Q12 only counts, so that next to nothing leaves its aggregation."""
    found = {spec: costs(spec, blocks=10) for spec in (Q1, Q12)}
    bids, euros, out = (found[Q1].operators[name] for name in ("bids", "euros", "out"))
    assert (bids.rows_out, euros.rows_out, out.rows_out) == (1.0, 1.0, 0.0)
    assert 40 < bids.sent_bytes.each < 80
    assert bids.log_s.of(1, 1024) > 0 == out.log_s.of(1, 1024)
    assert found[Q12].operators["count"].rows_out < 0.5
    for each in found.values():
        assert all(linear.of(1, 1000) > 0 for linear in (each.send_s, each.receive_s, each.write_s, each.read_s))
        assert min(each.split_s, each.checkpoint_s, each.connect_s) > 0
        assert each.operators["bids"].step_s.of(1, 1) > 0


@pytest.mark.parametrize("records", measure.BLOCK_EVENTS)
def test_a_source_has_made_its_messages_that_wait_for_credit_too(records):
    bench = measure._Bench(Q1, layout_of(Q1, 1), Unprotected, MemoryStore(), records)
    spent = bench.run(3).spent
    assert spent["bids"].messages_in == spent["euros"].messages_in == spent["bids"].sent
    assert spent["bids"].rows_in == spent["euros"].rows_in > 32 * 3, "more than the credit, in messages of one record"


def test_only_its_own_connection_is_measured(monkeypatch):
    """A connection of another program that came to the port first is dropped."""
    connect, strangers = socket.create_connection, []

    def after_a_stranger(address):
        strangers.append(connect(address))
        return connect(address)

    monkeypatch.setattr(measure.socket, "create_connection", after_a_stranger)
    here, there = measure._connected()
    try:
        assert there.getpeername() == here.getsockname()
    finally:
        for each in (here, there, *strangers):
            each.close()
