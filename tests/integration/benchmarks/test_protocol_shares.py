"""A slot between two topics, from one checkpoint to another."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.testbed import protocol_shares
from benchmarks.testbed.protocol_shares import filled_broker, measured
from benchmarks.testbed.through_kafka import kafka_job
from experiments.errors import EnvironmentFailure
from workloads.schedule import Schedule

# Sources rest while a checkpoint takes longer than two intervals to store, which a busy machine can make .2 s.
EVENTS, SCHEDULE, INTERVAL_S = 400_000, Schedule(10**9, 10_000.0, 2), 0.5


@pytest.mark.extended
def test_a_slot_is_measured_unless_its_input_has_ended(monkeypatch):
    monkeypatch.setattr(protocol_shares, "FIRST_ROUND", 1)
    with filled_broker(SCHEDULE, EVENTS, None) as handle:
        job = replace(kafka_job(handle, 2, "q1", "q1", "coordinated", 1024), slots=1, checkpoint_interval_s=INTERVAL_S)
        rates = measured(handle, job, EVENTS, 1)
        assert min(rates.of_cpu, rates.of_clock) > 0
        with pytest.raises(EnvironmentFailure, match="q1 has read all 1 events"):  # as if there were no more
            measured(handle, job, 1, 1)
