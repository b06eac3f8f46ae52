"""Where batches of a source end: at the same records, with reads of any size."""

import itertools

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.errors import BadInput
from testbed.core.by_batch.cutting import LAST_BATCH, LONGEST_GAP, Batching, Cut, Cutter, UnorderedSource
from testbed.core.checkpoints import NO_BATCH


def rows(times):
    return pa.record_batch({"at_ns": pa.array(times, pa.int64())})


def cut(reads, batch=NO_BATCH, position=0, skipped=0):
    """The cuts of a source of which one read after the other is read; a position is the number of a read."""
    cutter = Cutter("at_ns", 10, batch, position, skipped)
    found = []
    for number, times in enumerate(reads[position:], position + 1):
        found += cutter.add(rows(times), number, ended=False)
    return found + cutter.add(None, len(reads), ended=True)


def contents(cuts):
    return [(each.batch, each.rows.column(0).to_pylist() if each.rows is not None else []) for each in cuts]


def test_every_batch_has_a_border_also_where_no_record_is_in_it():
    assert contents(cut([[12, 15], [19, 20], [43]])) == [
        (0, []),
        (1, [12, 15, 19]),
        (2, [20]),
        (3, []),
        (4, [43]),
        (LAST_BATCH, []),
    ]


@given(st.lists(st.integers(0, 99), max_size=30), st.data())
def test_the_cuts_do_not_depend_on_the_reads(times, data):
    times = sorted(times)
    bounds = sorted(data.draw(st.lists(st.integers(0, len(times)), max_size=6)))
    reads = [times[start:stop] for start, stop in zip([0, *bounds], [*bounds, len(times)], strict=True)]
    assert contents(cut(reads)) == contents(cut([times]))


@given(st.lists(st.lists(st.integers(0, 99), max_size=5), min_size=1, max_size=6), st.data())
def test_behind_any_border_the_same_follows(reads, data):
    times = iter(sorted(time for read in reads for time in read))
    reads = [[next(times) for _ in read] for read in reads]
    cuts = cut(reads)
    at = data.draw(st.integers(0, len(cuts) - 1))
    if cuts[at].batch != LAST_BATCH:
        again = cut(reads, cuts[at].batch, cuts[at].position, cuts[at].skipped)
        assert contents(again) == contents(cuts[at + 1 :])


def read_on(at, events, bounds):
    """What follows a border of a source that shares its input: each read is some events, of this source or of another
    one."""
    cutter, found = Cutter("at_ns", 10, at.batch, at.position, at.skipped), []
    for start, stop in itertools.pairwise(bounds):
        own = [time for time, is_own in events[start:stop] if is_own]
        found += cutter.add(rows(own) if own else None, stop, False, (events[start][0], events[stop - 1][0]))
        border = found[-1].batch if found else at.batch
        assert border == max(at.batch, events[stop - 1][0] // 10 - 1), "every border that was reached, and no other"
    return found + cutter.add(None, len(events), ended=True)


@given(st.lists(st.tuples(st.integers(0, 99), st.booleans()), min_size=1, max_size=30), st.data())
def test_other_sources_records_end_batches_sooner_but_not_elsewhere(events, data):
    def bounds(start):
        inner = data.draw(st.sets(st.integers(start, len(events)), max_size=6))
        return sorted({start, *inner, len(events)})

    events = sorted(events)
    found = read_on(Cut(NO_BATCH, None, 0, 0), events, bounds(0))
    wanted = {batch: content for batch, content in contents(cut([[t for t, is_own in events if is_own]])) if content}
    assert {batch: content for batch, content in contents(found) if content} == wanted
    first, last = (events[at][0] // 10 for at in (0, -1))
    numbers = [each.batch for each in found if each.batch <= last]
    assert numbers == [*range(first - 1, last + (last in wanted))], "the same borders, however much each read has"
    at = data.draw(st.sampled_from(found[:-1] or found))
    if at.batch != LAST_BATCH:
        again = read_on(at, events, bounds(at.position))
        assert contents(again) == contents(found[found.index(at) + 1 :])


def test_a_record_that_comes_too_late_is_refused():
    with pytest.raises(UnorderedSource, match="batch 1 comes after the end of batch 3"):
        cut([[12, 43], [15]])
    with pytest.raises(UnorderedSource, match="in between at most"):
        cut([[12], [(LONGEST_GAP + 5) * 10]])


def test_checkpoints_lie_at_every_nth_border_or_at_none():
    batching = Batching(10, 4)
    assert [batching.checkpoint_at(batch) for batch in (-1, 2, 3, 6, 7, LAST_BATCH)] == [None, None, 1, None, 2, None]
    assert not any(map(Batching(10, None).checkpoint_at, range(100)))
    for given_wrong, field in (((0, 4), "length_ns"), ((10, 0), "per_checkpoint"), ((5, -1), "per_checkpoint")):
        with pytest.raises(BadInput, match=field):
            Batching(*given_wrong)
