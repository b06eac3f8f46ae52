"""A run that the machine cannot hold is refused before it starts."""

from collections import namedtuple

import pytest

from aftershock.run import room, steps
from experiments.errors import BadInput
from experiments.spec import ClusterSpec, Experiment
from infra.services import startup

Memory = namedtuple("Memory", "total available")


@pytest.fixture(autouse=True)
def machine(monkeypatch):
    """8,000 MB, of which 1,000 are free."""
    monkeypatch.setattr(room.psutil, "virtual_memory", lambda: Memory(8000 * 2**20, 1000 * 2**20))


def test_what_would_fit_an_idle_machine_is_not_refused():
    room.check(ClusterSpec(workers=3, worker_memory_mb=1100))


def test_more_workers_than_fit_are_refused_before_anything_is_made(home):
    document = Experiment(cluster=ClusterSpec(workers=4, worker_memory_mb=1100)).model_dump(mode="json")
    with pytest.raises(BadInput, match=r"^cluster\.workers: 4 is not usable; allowed: at most 3 with 1,100 MB each"):
        steps.begin(document)
    assert list(home.iterdir()) == []


def test_a_worker_that_does_not_fit_alone_is_refused_for_its_memory():
    with pytest.raises(
        BadInput, match=r"^cluster\.worker_memory_mb: 6000 is not usable; allowed: less: the machine has"
    ):
        room.check(ClusterSpec(workers=1, worker_memory_mb=6000))


def test_hosts_that_are_other_machines_are_not_counted_here():
    room.check(ClusterSpec(driver="ssh", workers=200, worker_memory_mb=6000))


@pytest.mark.parametrize("workers", [1, 3, 6])
def test_with_all_memory_free_it_refuses_what_provision_would_refuse(monkeypatch, workers):
    """Between the two numbers there must be no cluster that one of them accepts and the other refuses."""
    spec = ClusterSpec(workers=workers, worker_memory_mb=1100)
    just_enough_mb = startup.wanted_mb(spec)
    for memory_mb in (just_enough_mb - 1, just_enough_mb, just_enough_mb + 1):
        monkeypatch.setattr(room.psutil, "virtual_memory", lambda mb=memory_mb: Memory(mb * 2**20, mb * 2**20))
        accepted = memory_mb >= just_enough_mb
        assert [passes(room.check, spec), passes(startup._check_memory, spec)] == [accepted, accepted]


def passes(check, spec):
    try:
        check(spec)
    except BadInput:
        return False
    return True
