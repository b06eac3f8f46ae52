"""What a recovery reads and replays: as the operator has counted it, and within the targets if there is time enough."""

from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest

from experiments.errors import BadInput
from testbed.operators.count_windows import CountWindows
from testbed.operators.parted_aggregate import PartedAggregate
from testbed.operators.parted_join import PartedJoin
from testbed.output_log.extent import Extent, Footprint
from testbed.output_log.lasting import REMEMBERED
from testbed.output_log.log import OutputLog
from testbed.output_log.policies import AHEAD, CheckPacing, CostBenefit, Costs, OpensOnly, Saving, Targets
from testbed.output_log.reading import LogReader
from testbed.stores.store import MemoryStore
from tests.unit.testbed.output_log.crashes import NAME, Run
from tests.unit.testbed.output_log.inputs import CASES, NAMED, SUMS, Records

Q, U = 9, 14
BOOLEANS = NAMED.set(0, pa.field("item", pa.bool_()))


class CountingStore(MemoryStore):
    """How many objects were read."""

    reads = 0

    def _read(self, key):
        self.reads += 1
        return super()._read(key)


def lived(name, seed, policy, budget=None):
    """A run without crash, and after each step the operator with its log: committed, after a check."""
    run = Run(CASES[name], policy, seed, [], store=CountingStore())
    run._begin()
    for each in run._pending:
        run._take(each)
        left = iter(range(budget)) if budget is not None else None
        run.logged.check(lambda left=left: left is None or next(left, None) is not None)
        run.logged.commit()
        yield run


@pytest.mark.parametrize("name", CASES)
def test_extent_and_replay_keep_to_their_targets_if_there_is_time(name):
    checks = 0
    for seed in range(6):
        for run in lived(name, seed, Targets(Q, U)):
            extent = run.logged.extent
            assert extent.length <= max(Q, len(extent))
            assert extent.replay <= U
            checks = max(checks, extent.entries)
    assert checks > Q


def exceeds(policy, budget):
    runs = [list(lived("windows of 10 records", seed, policy, budget))[-1] for seed in range(6)]
    return any(run.logged.extent.length > Q or run.logged.extent.replay > U for run in runs)


def test_without_checks_or_without_time_they_do_not():
    assert exceeds(OpensOnly(), None)
    assert exceeds(Targets(Q, U), 0)
    assert not exceeds(Targets(Q, U), None)


@pytest.mark.parametrize("name", CASES)
def test_a_recovery_reads_what_was_counted_and_no_more(name):
    for seed in range(4):
        for run in lived(name, seed, Targets(Q, U)):
            reader = LogReader(run.store, NAME, run._rows)
            if not reader.ids:
                continue
            extent, before = run.logged.extent, run.store.reads
            begins = [kept.ends for kept in run.logged.log._kept]
            other = Run(run.case, run.policy, seed, [], store=run.store)
            other._begin()
            found = other.logged.restore(reader, delivered=run.logged.log.results)
            assert len(found.windows) == len(extent)
            assert found.extent == extent.length
            assert found.replay_after == (extent.position - extent.replay if found.windows else found.position)
            assert run.store.reads - before == max(1, sum(each > extent.begins for each in begins))


def check_counted_twice(extent, windows, real=Extent.saved):
    real(extent, windows)
    extent.entries += 1


def opens_only_counted(extent, step, position, real=Extent.add):
    real(extent, replace(step, entries=step.entries.slice(0, len(step.left))), position)


@pytest.mark.parametrize(("name", "planted"), [("saved", check_counted_twice), ("add", opens_only_counted)])
def test_an_extent_that_counts_wrongly_is_noticed(monkeypatch, name, planted):
    monkeypatch.setattr(Extent, name, planted)
    with pytest.raises((AssertionError, KeyError)):
        test_a_recovery_reads_what_was_counted_and_no_more("windows of 3 records")


def test_a_check_takes_the_oldest_windows_as_long_as_there_is_time():
    *_, run = lived("windows of 10 records", 0, OpensOnly())
    logged, order = run.logged, [window for window, _ in run.logged.extent]
    logged._policy = Targets(1, 1)
    left = iter([True, True, False])
    assert logged.check(lambda: next(left)) == 2
    assert [window for window, _ in logged.extent] == [*order[2:], *order[:2]]
    assert logged.check(lambda: 5) == len(order) - 2  # now each window has its footprint here
    assert (logged.extent.length, logged.extent.replay) == (len(order), 0)
    assert logged.check(lambda: True) == 0


def drawn_extent(seed, windows):
    """Footprints at random entries and positions, in order."""
    random, extent = Random(seed), Extent()
    entries = sorted(random.sample(range(3 * windows), windows))
    positions = sorted(random.choices(range(20 * windows), k=windows))
    places = zip(entries, positions, strict=True)
    extent.restore(((b"%d" % n, place) for n, place in enumerate(places)), 3 * windows, 20 * windows)
    return extent


def one_by_one(extent, extent_target, replay_target):
    """How many windows are saved until both targets are met, each once."""
    most = min(AHEAD, len(extent))
    for saved in range(most):
        if extent.length <= extent_target and extent.replay <= replay_target:
            return saved
        extent.saved([extent.oldest[0]])
    return most


@pytest.mark.parametrize("windows", [1, 40, 2 * AHEAD])
def test_targets_ask_for_as_many_windows_at_once_as_one_by_one(windows):
    found = set()
    for seed in range(40):
        targets = Random(seed).randint(1, 4 * windows), Random(-seed).randint(1, 25 * windows)
        due = Targets(*targets).due(drawn_extent(seed, windows))
        assert due == one_by_one(drawn_extent(seed, windows), *targets)
        found.add(due)
    assert len(found) > 1


def test_windows_that_are_saved_together_have_entries_of_their_own():
    extent = drawn_extent(1, 6)
    begun, first = extent.entries, extent.oldest_before(extent.entries, 4)
    extent.saved(first)
    last = {window: place for window, place in extent if window in first}
    assert list(last.values()) == [(begun + n, extent.position) for n in range(4)]
    assert extent.entries == begun + 4
    assert len(extent.oldest_before(begun, 6)) == 2, "those that were saved are not saved again"


def test_only_parts_of_a_few_numbers_are_saved_together():
    saved_at_once = []
    for name in ("windows of 10 records", "join"):
        *_, run = lived(name, 0, OpensOnly())
        run.logged._policy = Targets(1, 1)
        asked = iter([10])
        saved_at_once.append(run.logged.check(lambda asked=asked: next(asked, 0)))
    assert saved_at_once[0] > saved_at_once[1] == 1


def test_nothing_is_put_out_that_the_store_refused():
    run = Run(CASES["windows of 1 record"], OpensOnly(), 0, [])
    run._begin()
    run._take(next(each for each in run._pending if isinstance(each, Records)))
    refused, run.store._write = run.store._write, None
    with pytest.raises(TypeError):
        run.logged.commit()
    assert run.logged.log.results == 0
    run.store._write = refused
    assert run.logged.commit()


def test_cost_and_benefit():
    extent = Extent()
    extent.restore([(b"oldest", Footprint(0, 0)), (b"next", Footprint(11, 101))], 50, 500)
    # A check is expected to last as long as the oldest footprint is old: 500 records, which are 10 s.
    costs = Costs(entry_s=0.1, record_s=0.01, check_s=0.19, records_per_s=50)
    assert CostBenefit(0.01, costs).due(extent) == 1  # .01 * 10 * (.1 * (11 - 1) + .01 * 101) = .201
    # Of the other one: 399 records, 7.98 s, and .0798 * (.1 * (39 - 1) + .01 * 399) = .622; .823 with the first.
    assert CostBenefit(0.01, replace(costs, check_s=0.41)).due(extent) == 2
    assert CostBenefit(0.01, replace(costs, check_s=0.42)).due(extent) == 0
    assert CostBenefit(0.01, costs).due(Extent()) == 0


def test_checks_last_until_their_window_closes_or_is_saved_again():
    lasting = Extent().lasting
    assert lasting.expected(b"new", 70, 1) == 70
    assert lasting.expected(b"new", 70, 1000) == pytest.approx(70 / 6.9078, rel=1e-4)
    lasting.saved([b"closes", b"saved again", b"stays"], 100)
    lasting.gone([b"closes", b"never saved"], 130)
    lasting.saved([b"saved again"], 150)
    assert lasting.expected(b"new", 70, 1) == (70 + 30 + 50) / 3
    assert lasting.expected(b"stays", 70, 1) == 70  # of windows that were saved before nothing is known yet
    lasting.gone([b"saved again"], 190)
    assert lasting.expected(b"new", 70, 1) == (70 + 30 + 50) / 3
    assert lasting.expected(b"stays", 70, 1) == (70 + 40) / 2


def test_old_checks_count_less():
    lasting = Extent().lasting
    for lasts in (1000, 10):
        for _ in range(2 * REMEMBERED):
            lasting.saved([b"a"], 0)
            lasting.gone([b"a"], lasts)
    assert lasting.expected(b"a", 0, 1) < 300  # all alike would be 505


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Targets(0, 1), r"extent \(Q\).*0.*1 or more"),
        (lambda: Targets(1, 0), r"replay \(U\).*0.*1 or more"),
        (lambda: CheckPacing(0.1, 0.1), r"interval_s \(CI\).*0.1.*below CP"),
        (lambda: CheckPacing(0, 0.1), r"interval_s \(CI\).*0"),
        (lambda: Costs(1, 1, 0, 1), "check_s"),
        (lambda: CostBenefit(0, Costs(1, 1, 1, 1)), "failure_rate.*0.*positive"),
        (lambda: Saving(failure_rate=-1), "failure_rate.*-1"),
        (lambda: Saving(extent=5, failure_rate=0.1), "failure_rate.*left out with a target"),
        (lambda: OutputLog(MemoryStore(), NAME, spare=-1), "spare"),
        (lambda: CountWindows("item", "price", 0, ("at_ns",)), "size"),
        (lambda: CountWindows("item", "price", 1, ("at_ns",)).schema(NAMED), "key.*string"),
        (lambda: PartedAggregate("item", SUMS).schema(BOOLEANS), "key.*bool"),
        (lambda: PartedJoin("item", "item", None), "windows.*no parts"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(BadInput, match=message):
        make()
