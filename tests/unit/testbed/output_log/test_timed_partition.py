"""A partition of a slot that keeps an output log: what saving parts takes counts, and decides what is saved next."""

import time
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from testbed.core.checkpoints import initial_line
from testbed.core.control import Restore
from testbed.core.dataflow.layout import lay_out
from testbed.operators import Delivery
from testbed.output_log.policies import Saving
from testbed.output_log.recorded import RecordedOperator
from testbed.queries.cec_prices import cec_prices
from testbed.runtime.slot.hosted import Hosted, TimedLoggedPartition
from testbed.runtime.slot.log_costs import ENOUGH, USUAL
from tests.unit.testbed.queries.average_prices import SLOW
from tests.unit.testbed.small_job import JOB

ITEMS = 1500
SPEC = SLOW.model_copy(update={"items": ITEMS})
TICK_S = 0.001


@pytest.fixture
def hosted(monkeypatch):
    """Clocks go on by a tick whenever they are looked at."""
    now = {"s": 0.0}

    def tick():
        now["s"] += TICK_S
        return now["s"]

    for name in ("perf_counter", "thread_time", "monotonic"):
        monkeypatch.setattr(time, name, tick)
    layout = lay_out(cec_prices(SPEC, 1, Delivery.EXACTLY_ONCE))
    job = replace(JOB, workload=SPEC, protocol="output-log", recovery="passive", parallelism=1, slots=1)
    return lambda saving: made(replace(job, saving=saving), layout)


def made(job, layout):
    hosted = Hosted(job, layout)
    (number,) = (each.number for each in layout.partitions if each.operator == "average")
    partition = hosted.make(number)
    assert isinstance(partition, TimedLoggedPartition)
    partition.restore(Restore(1, initial_line(layout)[number], ()), {})
    return hosted, partition


def take_in(partition, seed):
    """One record of each item: it opens the item's window, or goes into it."""
    schema = partition.layout.inputs[0].schema
    numbers = {"item": np.random.default_rng(seed).permutation(ITEMS)}
    columns = [pa.array(numbers.get(each.name, np.ones(ITEMS, dtype=np.int64))) for each in schema]
    partition.recorded.process(0, pa.RecordBatch.from_arrays(columns, schema=schema))


def test_the_time_for_saving_parts_is_time_for_checkpoints(hosted):
    all_of_it, partition = hosted(Saving(extent=1))
    for seed in range(2):
        take_in(partition, seed)
    partition._budget.begins()
    partition.save_parts()
    assert partition.recorded.checks > 0
    assert partition.check_s > TICK_S
    assert all_of_it.checkpoint_s == pytest.approx(partition.check_s)
    assert all_of_it.checkpoint_cpu_s == partition.checkpoint_s > 0
    assert partition.counts_of_log["check_s"] == partition.check_s


def test_costs_are_measured_where_the_partition_is(hosted):
    _, partition = hosted(Saving(failure_rate=1e-6))
    assert partition._costs.check_s == USUAL.check_s
    take_in(partition, 0)
    partition.processing_s = 1.0
    partition.save_parts()
    assert partition.recorded.checks == 0  # hardly anything ever fails
    partition.processing_s = 4.0
    take_in(partition, 1)
    assert ITEMS > ENOUGH
    partition.save_parts()
    assert partition._costs.record_s == 3.0 / ITEMS
    assert partition._costs.records_per_s != USUAL.records_per_s


def test_how_fast_records_are_replayed_does_not_tell_how_fast_they_arrive(hosted, monkeypatch):
    _, partition = hosted(Saving(failure_rate=1e-6))
    monkeypatch.setattr(RecordedOperator, "replaying", True)
    for seed in range(2):
        take_in(partition, seed)
        partition.processing_s += 1.0
        partition.save_parts()
    assert (partition._costs.record_s, partition._costs.records_per_s) == (USUAL.record_s, USUAL.records_per_s)
    monkeypatch.setattr(RecordedOperator, "replaying", False)
    partition.save_parts()
    take_in(partition, 2)
    partition.processing_s += 3.0
    partition.save_parts()
    assert partition._costs.record_s == pytest.approx(3.0 / ITEMS)


def test_the_failure_rate_decides_what_is_saved(hosted):
    saved = []
    for failure_rate in (1e-6, 1e3):
        _, partition = hosted(Saving(failure_rate=failure_rate))
        for seed in range(3):
            take_in(partition, seed)
            partition._budget.begins()
            partition.save_parts()
        saved.append(partition.recorded.checks)
    assert saved[0] == 0 < saved[1]
