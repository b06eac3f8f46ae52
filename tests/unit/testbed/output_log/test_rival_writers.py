"""Writers that were given up are alive and write on: they cost their successors no result and no state."""

from dataclasses import replace
from itertools import islice
from random import Random

import pyarrow as pa
import pytest

from testbed.output_log.blocks import Segment
from testbed.output_log.eventual import StateLost
from testbed.output_log.log import LogTakenOver, OutputLog
from testbed.output_log.logged import LoggedOperator
from testbed.output_log.policies import OpensOnly, Targets
from testbed.output_log.reading import LogReader, newest_life, segment_key
from testbed.output_log.recorded import ReplayDiverged
from testbed.stores.store import DirectoryStore, MemoryStore, ObjectStore
from tests.unit.testbed.campaigns import first_and_rest
from tests.unit.testbed.output_log.crashes import NAME, behind, exact, rows_of
from tests.unit.testbed.output_log.inputs import CASES, Records

CASE = CASES["windows of 3 records"]
ROWS = CASE.make()[1]
SEEDS, STEPS = 60, 40
ORDERS = [(0, 1, 0), (1, 0, 1)]  # in which two writers go on


class Writer:
    """An operator that writes the log in this store: the first one, or with a reader one that goes on with it."""

    def __init__(self, store, events, policy, reader=None, arrived=0, replayable_after=0):
        operator, _ = CASE.make()
        self.logged, self._pending = LoggedOperator(operator, OutputLog(store, NAME), policy), list(events)
        if reader is not None:
            self.found = self.logged.restore(reader, arrived, replayable_after)
            self._pending = behind(events, self.found.replay_after)

    def go_on(self, events):
        """Take in this many events; returns the rows that may be sent."""
        taken, self._pending = self._pending[:events], self._pending[events:]
        for each in taken:
            if isinstance(each, Records):
                self.logged.process(each.port, each.batch)
            else:
                self.logged.advance(each.at_ns)
        self.logged.check(lambda: True)
        return rows_of(self.logged.commit())

    def finish(self):
        return self.go_on(len(self._pending))


def reader_of(store):
    return LogReader(store, NAME, ROWS)


def campaign(seed):
    """Writers come one after the other; downstream takes what the newest one sends, and all of them go on."""
    random, store, events = Random(seed), MemoryStore(), CASE.events(seed)
    policy = random.choice((OpensOnly(), Targets(1, 1), Targets(8, 15)))
    writers, put_out, acknowledged, replayable_after = [Writer(store, events, policy)], [], 0, 0
    reader, ended = reader_of(store), 0
    for _ in range(STEPS):
        if random.random() < 0.15:
            del put_out[random.randint(acknowledged, len(put_out)) :]
            writers.append(Writer(store, events, policy, reader, len(put_out), replayable_after))
            reader = reader_of(store)  # of the next writer: it may be old by then
            continue
        writer = random.choice((writers[-1], random.choice(writers)))
        newest = writer is writers[-1]
        rows = writer.go_on(random.randint(0, 3))
        put_out += rows if newest else []
        if random.random() < 0.5:
            continue
        if newest:
            acknowledged = random.randint(acknowledged, len(put_out))
            replayable_after = max(replayable_after, writer.logged.log.replay_after)
            writer.logged.log.trim(acknowledged)
            continue
        try:
            writer.logged.log.trim(writer.logged.log.results)
        except LogTakenOver:
            writers.remove(writer)
            ended += 1
    last = Writer(store, events, policy, reader, len(put_out), replayable_after)
    assert [*put_out, *last.finish()] == exact(CASE, seed), f"seed {seed}"
    return ended


@pytest.mark.parametrize("seeds", first_and_rest(range(SEEDS), 15))
def test_rivals_cost_no_result(seeds):
    assert sum(campaign(seed) for seed in seeds) > len(seeds) / 4


@pytest.mark.parametrize("order", ORDERS)
def test_two_that_were_restored_before_either_committed_write_no_common_segment(order):
    store, events = MemoryStore(), CASE.events(1)
    Writer(store, events, OpensOnly()).go_on(6)
    rivals = [Writer(store, events, OpensOnly(), reader_of(store)) for _ in range(2)]
    for number, count in zip(order, (12, 9, 1), strict=True):
        rivals[number].go_on(count)
    assert {id.life for id in reader_of(store).ids} == {0, 1, 2}
    last = Writer(store, events, OpensOnly(), reader_of(store))
    assert last.finish() == exact(CASE, 1)


def test_one_that_was_given_up_deletes_nothing_and_ends():
    store, events, policy = MemoryStore(), CASE.events(1), Targets(8, 15)
    given_up = Writer(store, events, policy)
    arrived = [row for _ in range(8) for row in given_up.go_on(1)]
    successor = Writer(store, events, policy, reader_of(store), len(arrived))
    arrived += [row for _ in range(8) for row in successor.go_on(1)]
    for _ in range(12):
        given_up.go_on(1)
    before = store.keys()
    with pytest.raises(LogTakenOver, match=f"taken over the log {NAME}"):
        given_up.logged.log.trim(given_up.logged.log.results)
    assert store.keys() == before
    needed = successor.logged.log.replay_after
    last = Writer(store, events, policy, reader_of(store), len(arrived), needed)
    assert not last.found.damaged
    assert arrived + last.finish() == exact(CASE, 1)


def raced(store):
    """A writer comes while another one has listed the lives and not reserved its own; returns the lives of both."""
    logs, real = [OutputLog(store, NAME), OutputLog(store, NAME)], store.keys

    def keys(folder):
        found, store.keys = real(folder), real
        logs[1].begin_life()
        return found

    store.keys = keys
    logs[0].begin_life()
    return [log._life for log in logs]


@pytest.mark.parametrize("make", [MemoryStore, None], ids=["memory", "directory"])
def test_one_life_is_reserved_by_one_writer(tmp_path, make):
    store = make() if make else DirectoryStore(tmp_path)
    assert raced(store) == [2, 1]
    assert newest_life(store, NAME) == 2
    assert newest_life(store, "operator") == 0


def with_block(segment, **changes):
    return replace(segment, block=replace(segment.block, **changes))


def fewer_entries(segment):
    return with_block(segment, entries=segment.block.entries.slice(0, segment.block.entries.num_rows - 1))


def more_rows(segment):
    """Its first row has the same number as before."""
    rows = pa.concat_batches([segment.block.rows, segment.block.rows])
    return with_block(segment, rows=rows, results=segment.block.results + segment.block.rows.num_rows)


def later(segment):
    return with_block(segment, position=10_000)


MISFITS = [fewer_entries, more_rows, later]


@pytest.mark.parametrize("change", MISFITS)
def test_a_segment_that_does_not_continue_the_one_before_is_damaged(change):
    """Of two writers with one life, the second would have overwritten a segment of the first."""
    store, events = MemoryStore(), CASE.events(1)
    first = Writer(store, events, OpensOnly())
    for _ in range(10):
        first.go_on(2)
    reader = reader_of(store)
    (_, newest), (id, before) = islice(reader.backward(reader.newest), 2)
    assert newest.block.open_windows
    assert before.block.rows is not None
    store.put(segment_key(NAME, id), change(before).pieces())
    assert Writer(store, events, OpensOnly(), reader_of(store)).found.damaged == (reader.newest,)


def life_of_segments(log):
    """A life that no segment has, as the log had it before lives were reserved."""
    log._life = max((id.life for id in reader_of(log._store).ids), default=-1) + 1


def created_again(store, key, content):
    """A store that replaces what is there already."""
    store.put(key, [content])
    return True


def listed_once(reader, real=LogReader.refresh):
    if not hasattr(reader, "ids"):
        real(reader)


def never_confirmed(log):
    """A writer that was given up deletes."""


def always_continues(segment, before):
    return True


def given_up(tmp_path):
    test_one_that_was_given_up_deletes_nothing_and_ends()


def race(tmp_path):
    test_one_life_is_reserved_by_one_writer(tmp_path, MemoryStore)


def rivals_in_both_orders(tmp_path):
    for order in ORDERS:
        test_two_that_were_restored_before_either_committed_write_no_common_segment(order)


def misfits(tmp_path):
    test_a_segment_that_does_not_continue_the_one_before_is_damaged(later)


def campaigns(tmp_path):
    for seed in range(SEEDS):
        campaign(seed)


PLANTS = [
    (OutputLog, "begin_life", life_of_segments, rivals_in_both_orders),
    (OutputLog, "begin_life", life_of_segments, campaigns),
    (OutputLog, "_confirm_life", never_confirmed, given_up),
    (OutputLog, "_confirm_life", never_confirmed, campaigns),
    (LogReader, "refresh", listed_once, campaigns),
    (ObjectStore, "create", created_again, race),
    (Segment, "continues", always_continues, misfits),
]


@pytest.mark.parametrize(("where", "name", "planted", "test"), PLANTS)
def test_a_planted_error_is_noticed(monkeypatch, tmp_path, where, name, planted, test):
    monkeypatch.setattr(where, name, planted)
    with pytest.raises((AssertionError, StateLost, ReplayDiverged, pytest.fail.Exception)):
        test(tmp_path)
