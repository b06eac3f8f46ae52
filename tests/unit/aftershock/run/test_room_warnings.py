"""What a machine has too little of for a run: refused before the run begins where it would fail, else told."""

import logging
from collections import namedtuple

import pytest

from aftershock.run import doctor, room, steps
from experiments.errors import EnvironmentFailure
from experiments.spec import ClusterSpec
from infra.services import startup

Memory = namedtuple("Memory", "total available")
Disk = namedtuple("Disk", "free")
PLENTY = 64 * 2**30
SPEC = ClusterSpec(workers=2, worker_cores=2, worker_memory_mb=1000)
ENOUGH_MB = startup.wanted_mb(SPEC)


@pytest.fixture
def machine(monkeypatch):
    """Sets what this machine has, cores and free memory and disk [MB]; at first just enough for `SPEC`."""

    def has(cores=4, memory_mb=ENOUGH_MB, disk_mb=room.LEAST_DISK_MB):
        monkeypatch.setattr(room.os, "cpu_count", lambda: cores)
        monkeypatch.setattr(room.psutil, "virtual_memory", lambda: Memory(PLENTY, memory_mb * 2**20))
        monkeypatch.setattr(room.shutil, "disk_usage", lambda folder: Disk(disk_mb * 2**20))

    has()
    return has


@pytest.mark.parametrize(
    ("lack", "told"),
    [
        ({}, []),
        ({"cores": 3}, ["the workers have 4 cores, and this machine has 3: they slow each other down"]),
        (
            {"memory_mb": ENOUGH_MB - 1},
            ["4,947 MB of memory are free, and the cluster's hosts take up to 4,948 MB: step provision refuses"],
        ),
        ({"disk_mb": room.LEAST_DISK_MB - 1}, ["3,999 MB of disk are free where runs are kept"]),
        (
            {"cores": 1, "memory_mb": 1, "disk_mb": 2100},
            ["2,100 MB of disk", "1 MB of memory", "the workers have 4"],
        ),
    ],
)
def test_what_a_run_may_lack_is_told_when_it_begins_and_refuses_none(machine, caplog, lack, told):
    machine(**lack)
    with caplog.at_level(logging.WARNING):
        steps.begin({"name": "mine", "cluster": SPEC.model_dump(mode="json")})
    assert len(caplog.messages) == len(told)
    for message, beginning in zip(caplog.messages, told, strict=True):
        assert message.startswith(beginning)


@pytest.mark.parametrize("driver", ["ssh", "external"])
def test_cores_and_memory_of_other_machines_are_not_looked_for_here(machine, driver):
    machine(cores=1, memory_mb=1, disk_mb=2100)
    (told,) = room.warnings(SPEC.model_copy(update={"driver": driver}))
    assert told.startswith("2,100 MB of disk")


def test_a_disk_that_ends_provision_refuses_the_run_before_anything_is_made(machine, home):
    machine(disk_mb=startup.MINIMUM_DISK_MB - 1)
    with pytest.raises(EnvironmentFailure, match=r"^2047 MB of disk are free under .*; a run needs 2048 MB: free some"):
        steps.begin({"name": "mine"})
    assert list(home.iterdir()) == []
    machine(disk_mb=startup.MINIMUM_DISK_MB)
    steps.begin({"name": "mine"})


@pytest.mark.parametrize(
    ("lack", "short"), [({}, ()), ({"memory_mb": 4000}, ("memory",)), ({"disk_mb": 3999}, ("disk",))]
)
def test_a_run_of_the_usual_cluster_is_warned_of_what_doctor_finds_short(machine, lack, short):
    usual = {"cores": 64, "memory_mb": startup.wanted_mb(doctor.USUAL)} | lack
    machine(**usual)
    found = doctor.Diagnosis((doctor._room(), doctor._disk())).short
    assert found == short
    assert len(room.warnings(doctor.USUAL)) == len(short)
