"""A worker dies while it writes an object: what is there of it is no object, costs nothing and is swept away."""

import os
from contextlib import suppress

import pytest

from testbed.core.by_batch.cutting import Batching
from testbed.core.effects import Store
from testbed.operators import Delivery
from testbed.protocols import PROTOCOLS
from testbed.recovery import STRATEGIES
from testbed.simulation import CrashMoment, Fault, Simulation
from testbed.stores import store
from testbed.stores.store import DirectoryStore
from tests.unit.testbed.output_log.protocol_runs import BATCHING, SOURCES, given, wanted
from tests.unit.testbed.queries.average_prices import SPECS
from tests.unit.testbed.queries.average_prices import laid_out as prices_laid_out
from tests.unit.testbed.runs import FAULT_TOLERANT, oracle
from tests.unit.testbed.small_flows import laid_out

SEEDS = range(3)


class Killed(BaseException):
    """The process is gone: nothing that it would do now happens."""


class HalfWriting(Simulation):
    """Whoever dies leaves the object that it was writing as far as it had come; what was to follow is not there.

    half_written   the names of what was left
    """

    def __init__(self, root, after, *arguments, **options):
        """`after`: so many steps pass before the first worker dies."""
        later = [Fault(CrashMoment.STORING, 6, late=True), Fault(CrashMoment.STORING, 9)]
        faults = [Fault(CrashMoment.ANY, after), *later]
        super().__init__(*arguments, faults=faults, **options)
        self._storage.objects = self.store = DirectoryStore(root)
        self.half_written = []

    def _strike(self):
        before = list(self.workers)
        struck = super()._strike()
        for worker in before:
            asked = [each for _, each in worker.storing if isinstance(each, Store)]
            if worker not in self.workers and asked:
                self._write_half(asked[0])
        return struck

    def _write_half(self, asked):
        *whole, (key, content) = asked.objects.items()
        for before, of in whole:
            self.store.put(before, of())

        def begun():
            yield bytes(next(iter(content())))
            raise Killed

        known = set(self.store.keys())
        with suppress(Killed):
            self.store.put(key, begun())
        self.half_written += set(self.store.keys()) - known


def first_come(protocol, root, seed):
    layout, inputs = laid_out("joined", Delivery.EXACTLY_ONCE)
    return HalfWriting(root, 330, layout, PROTOCOLS[protocol], inputs, seed), oracle("joined")


def batch_aligned(protocol, root, seed):
    layout, inputs = laid_out("joined", Delivery.EXACTLY_ONCE)
    options = {"recovery": STRATEGIES["passive"](), "batching": Batching(5, 1), "expected": oracle("joined")}
    return HalfWriting(root, 1050, layout, PROTOCOLS[protocol], inputs, seed, **options), oracle("joined")


def output_logged(protocol, root, seed):
    layout, options = prices_laid_out(SPECS["slow"], SOURCES), {"recovery": STRATEGIES["passive"]()}
    options |= {"batching": BATCHING, "expected": wanted("slow")}
    return HalfWriting(root, 500, layout, PROTOCOLS[protocol], given("slow"), seed, **options), wanted("slow")


RUNS = dict.fromkeys(FAULT_TOLERANT, first_come) | {"batch-aligned": batch_aligned, "output-log": output_logged}


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch):
    """Each piece is written when it comes, and nothing has to last."""
    monkeypatch.setattr(store, "WRITTEN_BYTES", 1)
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.mark.parametrize("protocol", RUNS)
def test_a_crash_in_the_middle_of_a_write_costs_no_result_and_leaves_nothing(tmp_path, protocol):
    half_written = resumed = 0
    for seed in SEEDS:
        simulation, exact = RUNS[protocol](protocol, tmp_path / f"{seed}", seed)
        outcome = simulation.run()
        assert outcome.published == exact, f"seed {seed}"
        assert outcome.fallbacks == 0, "nobody was told of what was not written"
        assert not set(simulation.half_written) & set(simulation.store.keys())
        assert all((tmp_path / f"{seed}" / name).name.startswith(".") for name in simulation.half_written)
        half_written, resumed = half_written + len(simulation.half_written), resumed + outcome.resumed
    assert half_written
    assert resumed


def test_every_protocol_that_stores_anything_is_tried():
    assert {*RUNS, "none"} == {*PROTOCOLS}
