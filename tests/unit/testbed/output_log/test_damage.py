"""Segments that are torn, rotten or gone: an older state is restored, or the recovery says what is missing."""

import pytest

from experiments.errors import EnvironmentFailure
from testbed.output_log.blocks import DamagedSegment, decode_segment
from testbed.output_log.eventual import StateLost
from testbed.output_log.log import OutputLog
from testbed.output_log.policies import OpensOnly, Targets
from testbed.output_log.reading import LogReader, SegmentId, segment_key
from testbed.stores.store import DirectoryStore, MemoryStore
from tests.unit.testbed.campaigns import first_and_rest
from tests.unit.testbed.output_log.crashes import NAME, Run, exact
from tests.unit.testbed.output_log.inputs import CASES, PRICES, Records

SEEDS = 40
CASE = CASES["windows of 3 records"]


def newest(store):
    return LogReader(store, NAME, PRICES).newest


def torn(store, random):
    """The last segment was written in part."""
    if found := newest(store):
        key = segment_key(NAME, found)
        store.objects[key] = store.objects[key][: random.randrange(len(store.objects[key]))]


def rotten(store, random):
    """A bit of any segment has changed."""
    if store.objects:
        key = random.choice(sorted(store.objects))
        data = bytearray(store.objects[key])
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
        store.objects[key] = bytes(data)


def gone(store, random):
    if store.objects:
        del store.objects[random.choice(sorted(store.objects))]


@pytest.mark.parametrize("name", ["windows of 3 records", "sliding windows", "join"])
@pytest.mark.parametrize("seeds", first_and_rest(range(SEEDS), 14))
def test_without_its_last_segment_a_log_leads_to_the_state_before(name, seeds):
    """Upstream keeps enough for one segment to be damaged, so this always succeeds."""
    older = 0
    for seed in seeds:
        run = Run(CASES[name], Targets(extent=8, replay=15), seed, [12 + seed], damage=torn)
        assert run.run() == exact(run.case, seed)
        older += any(found.damaged for found in run.found)
    assert older > len(seeds) / 3


@pytest.mark.parametrize("damage", [rotten, gone])
@pytest.mark.parametrize("name", ["windows of 3 records", "time windows", "join"])
@pytest.mark.parametrize("seeds", first_and_rest(range(SEEDS), 14))
def test_any_damaged_segment_gives_exact_output_or_an_error(name, damage, seeds):
    right = 0
    for seed in seeds:
        run = Run(CASES[name], Targets(extent=8, replay=15), seed, [12 + seed, 10], damage=damage)
        try:
            output = run.run()
        except StateLost:
            continue
        assert output == exact(run.case, seed)
        right += bool(run.found)
    assert right > len(seeds) / 4


def given(store, policy=OpensOnly(), spare=1):  # noqa: B008
    """A log of which each segment has what one batch did."""
    run = Run(CASE, policy, 1, [], store=store, spare=spare)
    run._begin()
    go_on(run)
    return run


def go_on(run):
    for each in run._pending:
        if isinstance(each, Records):
            run.logged.process(each.port, each.batch)
            run.logged.commit()


def restored(run, replayable_after):
    operator, rows = CASE.make()
    return type(run.logged)(operator, OutputLog(run.store, NAME), OpensOnly()).restore(
        LogReader(run.store, NAME, rows), 0, replayable_after
    )


def test_it_says_which_records_are_missing():
    run = given(MemoryStore())
    reader = LogReader(run.store, NAME, run._rows)
    found = restored(run, 0)
    with pytest.raises(StateLost, match=f"records {found.replay_after + 1} to {found.replay_after + 1} can't be"):
        restored(run, found.replay_after + 1)
    run.store.delete(segment_key(NAME, reader.newest))
    for id in reader.ids - {reader.newest}:
        run.store.objects[segment_key(NAME, id)] = b"nothing"
    with pytest.raises(StateLost, match=r"no segment can be read \(damaged segments: "):
        restored(run, 1)
    assert restored(run, 0).replay_after == 0


def test_what_was_restored_behind_a_damaged_segment_is_not_read_again():
    """The next life gives its segments the same numbers as those that cannot be reached any more."""
    run = given(MemoryStore())
    before = LogReader(run.store, NAME, run._rows)
    life, number = before.newest
    run.store.objects[segment_key(NAME, SegmentId(life, number - 1))] = b"rotten"
    run._crash()
    assert run.found[-1].damaged == (SegmentId(life, number - 1),)
    go_on(run)
    after = LogReader(run.store, NAME, run._rows)
    chain = [id for id, _ in after.backward(after.newest)]
    assert chain[0].life == 1
    assert {id.life for id in chain} == {0, 1}
    assert len({id.number for id in chain}) == len(chain) == after.newest.number
    run.logged.log.trim(0)
    assert LogReader(run.store, NAME, run._rows).ids == set(chain) != before.ids


def test_a_log_in_a_directory(tmp_path):
    run = given(DirectoryStore(tmp_path, b"k" * 32))
    found = LogReader(DirectoryStore(tmp_path, b"k" * 32), NAME, run._rows)
    assert [id.number for id, _ in found.backward(found.newest)] == list(range(found.newest.number, 0, -1))
    stranger = LogReader(DirectoryStore(tmp_path, b"x" * 32), NAME, run._rows)
    with pytest.raises(Exception, match="its seal is not that of the run"):
        next(stranger.backward(stranger.newest))


class Refusing(MemoryStore):
    """Deletes this many objects, then refuses."""

    willing = 0

    def delete(self, key):
        if not self.willing:
            raise EnvironmentFailure("the store refuses", "wait")
        self.willing -= 1
        super().delete(key)


@pytest.mark.parametrize("willing", [0, 2])
def test_what_the_store_refused_to_delete_is_deleted_later(willing):
    run, like = given(Refusing()), given(MemoryStore())
    unneeded = like.logged.log.trim(like.logged.log.results)
    assert unneeded > 2
    run.store.willing = willing
    for _ in range(2):
        with pytest.raises(EnvironmentFailure):
            run.logged.log.trim(run.logged.log.results)
    run.store.willing = unneeded
    assert run.logged.log.trim(run.logged.log.results) == unneeded - willing
    assert run.store.keys() == like.store.keys()


@pytest.mark.parametrize("cut", [0, 5, 40, -1])
def test_bytes_that_are_no_segment(cut):
    run = given(MemoryStore())
    reader = LogReader(run.store, NAME, run._rows)
    data = run.store.get(segment_key(NAME, reader.newest))
    assert decode_segment(data, run._rows).number == reader.newest.number
    with pytest.raises(DamagedSegment):
        decode_segment(data[:cut] if cut else b"x" + data[1:], run._rows)
