"""Which slots were lost with partitions, and which faults took nothing."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from experiments.engines import EngineName
from experiments.fault_kinds import FaultKind
from experiments.recovery_modes import PARTIAL, RecoveryMode
from journal.events.services import ProgramEnded
from spark_jobs.tables.build import LOGS
from spark_jobs.tables.dataflow.partition_recoveries import partition_recoveries
from spark_jobs.tables.losses import Loss, as_query_journal, losses, that_took_something, with_losses
from spark_jobs.tables.outages import Outage, moments, outages
from tests.unit.spark_jobs.recovering_in_parts import (
    DRIVER_STRUCK,
    FIRST,
    HOSTS,
    INJECTED,
    JOURNAL,
    SECOND,
    WITH_A_SECOND_DRIVER,
    line,
    struck,
)
from tests.unit.spark_jobs.timelines import at, told

LOST = [Loss(0, at(20), at(20.5), FIRST), Loss(2, at(40), at(40.5), SECOND)]


def test_a_loss_is_of_a_slot_with_partitions_and_due_to_the_last_fault_on_its_host():
    assert losses(JOURNAL, INJECTED, HOSTS) == LOST
    another = struck(7, "worker-3", 40.3)
    assert losses(JOURNAL, [*INJECTED, another], HOSTS)[1].fault == 2
    assert losses(JOURNAL, [*INJECTED, another], {})[1].fault == 7, "without names any host may have been the slot's"


def test_a_slot_that_ends_long_after_the_last_fault_ended_by_itself():
    late = told("worker-lost", 90, worker="slot-2", partitions=SECOND)
    assert losses([*JOURNAL, late], INJECTED, HOSTS)[-1] == Loss(None, at(90), at(90), SECOND)


def test_the_query_is_ready_once_nothing_is_lost_any_more():
    found = [(each.name, each.at_ns) for each in as_query_journal(JOURNAL)]
    lost = [("executors-lost", at(20.5)), ("ready", at(21)), ("executors-lost", at(40.5)), ("ready", at(45))]
    assert found == [("ready", at(0)), *lost]


def test_some_that_are_back_do_not_end_the_outage_while_others_are_lost():
    both = sorted(
        [*JOURNAL, told("worker-lost", 20.55, worker="slot-2", partitions=SECOND)], key=lambda each: each.at_ns
    )
    ready = [each.at_ns for each in as_query_journal(both) if each.name == "ready"]
    assert ready == [at(0), at(45)]


def test_a_partition_that_is_lost_again_before_it_went_on_keeps_the_outage_open():
    again = told("worker-lost", 44.8, worker="slot-3", partitions=SECOND)
    later = [told("recovering", 50, epoch=4, line={}, restored=SECOND), told("ready", 51, epoch=4)]
    journal = sorted([*JOURNAL, again, *later], key=lambda each: each.at_ns)
    assert [each.at_ns for each in as_query_journal(journal) if each.name == "ready"][-1] == at(51)


def test_journals_from_before_slots_could_stand_by_are_read_as_ever():
    old = [told("ready", 0), told("worker-lost", 21), told("recovering", 22, epoch=2), told("ready", 25, epoch=2)]
    assert [each.name for each in as_query_journal(old)] == ["ready", "executors-lost", "ready"]


def outages_of(injector):
    committed_ns = [at(second) for second in range(0, 60, 8)]
    return outages(moments(as_query_journal(JOURNAL), [], injector, None, committed_ns))


def test_the_death_of_a_slot_that_stands_by_is_no_outage():
    expected = [Outage(0, 1, at(20), at(20.5), at(21)), Outage(2, 1, at(40), at(40.5), at(45))]
    assert outages_of(that_took_something(INJECTED, JOURNAL, LOST)) == expected
    assert outages_of(INJECTED) != expected, "the fault on it would count as one that was not noticed"


@pytest.mark.parametrize(
    ("standby", "recovery"), [(1, RecoveryMode.GLOBAL), (0, RecoveryMode.PASSIVE)], ids=["stands by", "came back empty"]
)
def test_a_host_without_partitions_can_be_struck_wherever_slots_may_have_none(standby, recovery):
    parts = recovery in PARTIAL
    engine = SimpleNamespace(
        standby_run=standby, recovery_run=recovery, recovers_in_parts=parts, takes_checkpoints=True
    )
    files = SimpleNamespace(
        experiment=SimpleNamespace(engine=engine),
        journal=lambda name, _: INJECTED if name == "injector" else [],
        window=(at(0), at(60)),
    )
    logs = LOGS[EngineName.DATAFLOW](files)
    vars(logs).update(query=JOURNAL, losses=LOST)  # in place of those that the files tell
    assert [(each.fault, each.death_ns) for each in logs.outages] == [(0, at(20)), (2, at(40))]


@pytest.mark.parametrize(("second", "kept"), [(42, True), (30, False), (46, False)])
def test_a_fault_counts_that_takes_something_or_strikes_while_something_is_lost(second, kept):
    strike = struck(9, "worker-1", second)
    assert (strike in that_took_something([*INJECTED, strike], JOURNAL, LOST)) == kept


def test_the_death_of_the_driver_is_an_outage_though_nobody_tells_that_slots_are_lost():
    strike = replace(struck(9, "gateway", 50), kind=FaultKind.DRIVER_KILL)
    again = [told("recovering", 53, epoch=4, line=line(9), restored=(*FIRST, *SECOND)), told("ready", 54, epoch=4)]
    injector = that_took_something([*INJECTED, strike], JOURNAL, LOST)
    ended = ProgramEnded(1, -9, at_ns=at(50.1))
    found = outages(moments(as_query_journal([*JOURNAL, *again]), [ended], injector, None, []))
    assert found[-1] == Outage(9, 1, at(50), at(50.1), at(54))


EVERYTHING = (*FIRST, *SECOND)


def test_the_death_of_the_driver_loses_every_partition_until_the_next_driver_has_restored_it():
    lost = losses(WITH_A_SECOND_DRIVER, [*INJECTED, DRIVER_STRUCK], HOSTS)
    assert lost == [*LOST, Loss(3, at(61), at(63), EVERYTHING)]
    ready = [each.at_ns for each in as_query_journal(WITH_A_SECOND_DRIVER) if each.name == "ready"]
    assert ready == [at(0), at(21), at(45), at(69)], "one half is back at 65 s, but not all"


def test_a_driver_that_ended_by_itself_was_there_until_it_last_wrote():
    struck_before = replace(DRIVER_STRUCK, fired_ns=at(-6))
    assert losses(WITH_A_SECOND_DRIVER, [*INJECTED, struck_before], HOSTS)[-1] == Loss(None, at(60), at(63), EVERYTHING)


def test_what_a_driver_loses_that_was_lost_before_belongs_to_the_first_loss():
    journal = [each for each in WITH_A_SECOND_DRIVER if each.at_ns <= at(40.5) or each.at_ns >= at(63)]
    lost = losses(journal, [*INJECTED, DRIVER_STRUCK], HOSTS)
    assert [(each.fault, each.partitions) for each in lost] == [(0, FIRST), (2, SECOND), (3, EVERYTHING)]
    found = {each.partition: each.loss.fault for each in partition_recoveries(journal, lost) if each.epoch in (4, 5)}
    assert found == {**dict.fromkeys(FIRST, 3), **dict.fromkeys(SECOND, 2)}


def test_the_supervisor_notices_that_the_driver_ended():
    ended = [ProgramEnded(1, -9, at_ns=at(second)) for second in (61.1, 62.1)]
    lost = losses(WITH_A_SECOND_DRIVER, [*INJECTED, DRIVER_STRUCK], HOSTS, ended)
    assert lost[-1] == Loss(3, at(61), at(61.1), EVERYTHING)
    assert [each for each in with_losses(WITH_A_SECOND_DRIVER, lost) if isinstance(each, Loss)] == lost


def test_a_driver_that_is_struck_before_it_has_begun_loses_nothing_more():
    again = replace(DRIVER_STRUCK, fault=4, fired_ns=at(62))
    assert losses(WITH_A_SECOND_DRIVER, [*INJECTED, DRIVER_STRUCK, again], HOSTS)[-1].fault == 3


def test_a_driver_that_dies_after_the_end_loses_nothing():
    journal = [each for each in WITH_A_SECOND_DRIVER if each.at_ns <= at(60)]
    over = [*journal, told("finished", 60.5, positions={}), told("driver-started", 63)]
    assert losses(over, [*INJECTED, DRIVER_STRUCK], HOSTS) == LOST
    ready = [each.at_ns for each in as_query_journal([*over, told("ready", 64, epoch=9)]) if each.name == "ready"]
    assert ready[-1] == at(64)
