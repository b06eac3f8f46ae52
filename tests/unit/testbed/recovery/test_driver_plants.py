"""Errors planted in what a driver leaves to its successor: the simulation notices each of them within a few seeds."""

from random import Random

import pytest

from testbed.core.coordinator.history import History
from testbed.core.coordinator.line_record import LineRecord
from testbed.core.coordinator.write_ahead import WriteAhead
from testbed.protocols import PROTOCOLS
from testbed.simulation.driver_deaths import DriverDeath, DriverMoment
from testbed.simulation.storage import Storage
from testbed.stores import record_chain
from testbed.stores.record_chain import RecordChain
from tests.unit.testbed.planting import assert_noticed, nothing_waits, notice_of, old_epoch
from tests.unit.testbed.recovery.dying_drivers import recovering_all, recovering_parts

NOTICING = (0, 9, 12, 24)  # each error is noticed under one of these, so that they come first
SEEDS = (*NOTICING, *(seed for seed in range(40) if seed not in NOTICING))


WHATEVER = ""  # any message: an error can be noticed in several ways


def deletions_do_not_wait(ahead, real=WriteAhead.next_record):
    found = real(ahead)
    ahead._out += ahead._undeleted
    ahead._undeleted = []
    return found


def only_epochs_are_written(ahead, real=WriteAhead.next_record):
    ahead._known = (ahead._known[0], ahead._coordinator.history.stable, ahead._known[2])
    return real(ahead)


def told_before_it_is_stored(storage, asked, real=Storage._put):
    """What a checkpoint needs comes into the store only with the one after it."""
    before, storage.delayed = getattr(storage, "delayed", []), [asked]
    for each in before:
        real(storage, each)


def overwritten(chain, content):
    chain._number += 1
    chain._store.put(record_chain._key(chain._number), [chain._writer + content])


def first_record_deleted(chain):
    before, chain._number = chain._number, chain._number + 1
    chain._first = chain._number
    chain._store.delete(record_chain._key(before))


def rounds_from_one(history):
    return 0


def numbers_forgotten(storage, number):
    return 0


PLANTS = {
    "nothing waits for the record": (WriteAhead, "take_effects", nothing_waits),
    "deletions do not wait for a record": (WriteAhead, "next_record", deletions_do_not_wait),
    "a record is written for epochs alone": (WriteAhead, "next_record", only_epochs_are_written),
    "an old epoch is used again": (LineRecord, "encode", old_epoch),
    "a checkpoint counts before it is stored": (Storage, "_put", told_before_it_is_stored),
    "a second driver does not fence the first": (RecordChain, "add", overwritten),
    "the record that fences is deleted": (RecordChain, "_step", first_record_deleted),
    "rounds count from one again": (History, "last", property(rounds_from_one)),
    "a sink does not know what is out": (Storage, "published", numbers_forgotten),
}


def often(seed):
    """Moments at which a driver dies, and then the next one, and so on."""
    random = Random(seed)
    moments = (DriverMoment.ANY, 60), (DriverMoment.ANY, 60), (DriverMoment.WRITING, 3)
    for _ in range(8):
        moment, within = random.choice(moments)
        yield moment, random.randrange(within), random.random() < 0.5


def notice(seed):
    """What is wrong with a run; None if nothing is."""
    options = {"refusals": 0.1 * (seed % 2), "spare_lines": 0, "timers": 0.4, "faults": []}
    options["deaths"] = [DriverDeath(*each) for each in often(seed)]
    protocol = ("coordinated", "uncoordinated", "passive")[seed % 3]
    run_of = recovering_all if protocol in PROTOCOLS else recovering_parts
    return notice_of(run_of("tiny", protocol, seed, **options).run, "tiny", KeyError, ValueError)


@pytest.mark.parametrize("plant", PLANTS)
def test_an_error_in_what_outlives_a_driver_is_noticed(plant, monkeypatch):
    assert_noticed(monkeypatch, (*PLANTS[plant], WHATEVER), notice, SEEDS)
