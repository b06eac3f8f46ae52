"""What one slot of a benchmark measures between two moments at which checkpoints are due."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

from benchmarks.testbed.slot import OneSlot
from benchmarks.testbed.throughput import job_of

INTERVAL_S, WARM_UP, ROUNDS = 0.02, 5, 3
TRIES = 50


def test_a_slot_is_measured_over_whole_checkpoint_intervals(tmp_path):
    job = job_of("rounds", "q1", "coordinated", 2, tmp_path)
    with closing(OneSlot(replace(job, slots=1, checkpoint_interval_s=INTERVAL_S))) as slot:
        for _ in range(TRIES):
            before = slot.events_read()
            spent = slot.run_rounds(WARM_UP, ROUNDS)
            assert spent.seconds >= ROUNDS * INTERVAL_S
            if spent.events and spent.checkpoint_s:  # on a busy machine whole intervals may pass without either
                break
        assert 0 < spent.events < slot.events_read() - before
        assert spent.cpu_s > 0
        assert 0 < spent.checkpoint_s < slot.hosting.status().checkpoint_s
