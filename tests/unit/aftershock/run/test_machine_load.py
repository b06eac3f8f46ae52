"""What others took of the machine in a run's window: the kernel's count less what the cluster used there."""

import pytest

from aftershock.run import steps
from aftershock.run.live_run import LiveRun
from aftershock.run.machine_load import about_the_machine, others_cores
from chaos.fault_plan import FaultPlan
from infra.cluster import Handle, Host, Role
from journal.events.common import EntriesLost
from journal.events.services import HostSample, MachineSample
from journal.writer import Journal
from results.runs import store
from tests.unit.example_events import example

START_NS, NS = 1_790_000_000_000_000_000, 10**9


def looks(kind, counter, *values):
    """A look each second."""
    return [example(kind, START_NS + second * NS, **{counter: value}) for second, value in enumerate(values)]


@pytest.mark.parametrize(
    ("machine", "hosts", "others"),
    [
        ((10.0, 12.0, 14.0), [(0.0, 0.5, 1.0), (7.0, 8.0, 9.0)], 0.5),
        ((10.0, 11.5, 13.0), [], 1.5),
        ((10.0, 11.5, 13.0), [()], 1.5),
        ((10.0, 11.5, 13.0), [(4.0,)], 1.5),
        ((10.0, 11.0, 12.0), [(5.0, 0.0, 1.0)], 0.5),  # a host died in the first second
        ((10.0, 11.0, 12.0), [(0.0, 1.1, 2.2)], 0.0),  # no two looks are at the same moment
        ((10.0,), [(0.0, 1.0)], None),
        ((), [], None),
    ],
)
def test_what_the_hosts_used_is_not_of_others(machine, hosts, others):
    samples = [looks(HostSample, "cpu_s", *host) for host in hosts]
    found = others_cores(looks(MachineSample, "busy_s", *machine), samples)
    assert found == (None if others is None else pytest.approx(others))


@pytest.fixture
def live():
    """A run whose cluster used 0.75 cores on the gateway and a worker in its window, and more beside it."""
    live = LiveRun(steps.begin({"name": "mine", "window_s": 2, "engine": {"checkpoint_interval_s": 1}}, "run-1"))
    live.root.mkdir(parents=True)
    roles = {"gateway": Role.GATEWAY, "worker-1": Role.WORKER}
    hosts = {name: Host(name, "127.0.1.1", role, 1, 640) for name, role in roles.items()}
    Handle("run-1", "local", "s0-0123456789abcdef", str(live.root), hosts).save()
    store.write_json(live.plan_path, FaultPlan(START_NS + NS, START_NS + 3 * NS).to_json())
    samples = Journal(live.journal_path("hosts"))
    for second, (gateway_s, worker_s) in enumerate([(0, 0), (9, 9), (9.25, 9.5), (9.5, 10), (99, 99)]):
        for host, cpu_s in (("gateway", gateway_s), ("worker-1", worker_s)):
            samples.record(HostSample(host, cpu_s, 1, at_ns=START_NS + second * NS))
    return live


def note(live):
    machine = Journal(live.journal_path("machine"))
    for second, busy_s in enumerate([0, 50, 51, 52, 500]):
        machine.record(MachineSample(busy_s, 2, at_ns=START_NS + second * NS))


def test_only_the_window_counts(live):
    note(live)
    assert about_the_machine(live) == {"cores": 2, "others_cores": 0.25}


def test_of_machines_that_exist_only_the_gateway_s_is_looked_at(live):
    note(live)
    document = store.read_json(live.run.root / "experiment.json")
    document["cluster"] |= {"driver": "ssh"}
    document["faults"] |= {"hosts": {"worker-1": []}}
    store.write_json(live.run.root / "experiment.json", document)
    assert about_the_machine(live) == {"cores": 2, "others_cores": 0.75}


def test_an_entry_that_is_no_look_is_passed_over(live):
    note(live)
    for name in ("machine", "hosts"):
        Journal(live.journal_path(name)).record(EntriesLost(1, "full", at_ns=START_NS + 2 * NS))
    assert about_the_machine(live) == {"cores": 2, "others_cores": 0.25}


def test_nothing_is_said_where_nobody_looked(live):
    assert about_the_machine(live) == {}
