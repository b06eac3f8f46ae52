"""Records of which only one writer at a time can add the next, on every store."""

from uuid import uuid4

import pytest
from botocore.exceptions import ClientError

from experiments.errors import EnvironmentFailure
from testbed.core.seal import KEY_BYTES
from testbed.stores import s3
from testbed.stores.record_chain import NOTHING, RecordChain, TakenOver
from testbed.stores.s3 import S3Store
from testbed.stores.store import DirectoryStore, MemoryStore, UnreadableObject
from tests.object_stores import BUCKET
from tests.unit.testbed.campaigns import quick

KEY = bytes(KEY_BYTES)


@pytest.fixture(params=["memory", "directory", "s3"])
def store(request, tmp_path):
    if request.param == "s3":
        return S3Store(f"s3://{BUCKET}/{uuid4().hex}", request.getfixturevalue("endpoint"), store_key=KEY)
    return MemoryStore(KEY) if request.param == "memory" else DirectoryStore(tmp_path / "objects", KEY)


def test_an_object_is_created_once(store):
    assert store.create("a/b", b"first")
    assert not store.create("a/b", b"second")
    assert (store.get("a/b"), store.keys()) == (b"first", ["a/b"])


def test_a_store_that_overwrites_what_it_should_create_is_refused(store, monkeypatch):
    store.check()

    def overwrite(key, sealed):
        store.put(key, [sealed])
        return True

    monkeypatch.setattr(store, "_create", overwrite)
    with pytest.raises(EnvironmentFailure, match="creates an object that is there already"):
        store.check()


def test_who_creates_an_object_at_the_same_time_as_another_asks_again(endpoint, monkeypatch):
    store = S3Store(f"s3://{BUCKET}/{uuid4().hex}", endpoint, store_key=KEY)
    answers = iter([ClientError({"Error": {"Code": "ConditionalRequestConflict"}}, "PutObject")])
    put = store._client.put_object

    def busy(**what):
        for error in answers:
            raise error
        return put(**what)

    monkeypatch.setattr(store._client, "put_object", busy)
    monkeypatch.setattr(s3, "AGAIN_S", 0.0)
    assert store.create("a", b"first")
    assert not store.create("a", b"second")


def test_each_writer_goes_on_from_the_one_before(store):
    first, second = RecordChain(store), RecordChain(store)
    assert first.take_over() == NOTHING
    for content in (b"one", b"two", b"three"):
        first.add(content)
    assert second.take_over() == b"three"
    second.add(b"four")
    assert RecordChain(store).take_over() == b"four"


def test_a_record_that_its_writer_did_not_finish_is_none(tmp_path):
    """The driver was killed in the middle of it. The file stays beside the records until the run ends."""
    store = DirectoryStore(tmp_path, KEY)
    first, second = RecordChain(store), RecordChain(store)
    first.take_over()
    first.add(b"one")
    (tmp_path / "driver" / ".7.record-00000003").write_bytes(b"by the fir")
    assert second.take_over() == b"one"
    second.add(b"two")
    assert RecordChain(store).take_over() == b"two"


@pytest.mark.parametrize("added", quick(range(4), [0, 1]))
def test_a_writer_that_another_has_followed_can_add_nothing(store, added):
    first, second = RecordChain(store), RecordChain(store)
    first.take_over()
    first.add(b"one")
    second.take_over()
    for number in range(added):
        second.add(b"by the second %d" % number)
    for _ in range(2):
        with pytest.raises(TakenOver):
            first.add(b"by the first")
    assert RecordChain(store).take_over() == (b"by the second %d" % (added - 1) if added else b"one")


def test_two_that_begin_at_once_are_one_after_the_other(store):
    first, second = RecordChain(store), RecordChain(store)
    first.take_over()
    assert second.take_over() == NOTHING
    with pytest.raises(TakenOver):
        first.add(b"one")
    second.add(b"two")


@pytest.mark.parametrize("added", quick([1, 2, 5], [2]))
def test_a_writer_that_goes_on_while_it_is_followed_is_shut_out_all_the_same(store, monkeypatch, added):
    """It adds records after the other one has read its newest, and deletes those before them."""
    first, second = RecordChain(store), RecordChain(store)
    first.take_over()
    first.add(b"0")
    create = store.create

    def late(key, content):
        monkeypatch.setattr(store, "create", create)
        for number in range(added):
            first.add(b"%d" % (number + 1))
        return create(key, content)

    monkeypatch.setattr(store, "create", late)
    assert second.take_over() == b"%d" % added
    with pytest.raises(TakenOver):
        first.add(b"by the first")
    second.add(b"by the second")
    assert RecordChain(store).take_over() == b"by the second"


def test_who_was_followed_cannot_confirm_its_newest_record(store):
    first, second = RecordChain(store), RecordChain(store)
    first.take_over()
    first.add(b"one")
    first.confirm()
    assert second.take_over() == b"one"
    with pytest.raises(TakenOver):
        first.confirm()
    second.confirm()


def test_few_records_are_kept(store):
    for _ in range(3):
        chain = RecordChain(store)
        chain.take_over()
        for number in range(10):
            chain.add(b"%d" % number)
    assert len(store.keys()) == 6


def test_a_record_that_was_written_though_the_store_refused_is_not_taken_for_another_s():
    """As if the answer had not come."""
    store = MemoryStore(KEY)
    chain = RecordChain(store)
    chain.take_over()
    real, store.create = store.create, None

    def lost(key, content):
        real(key, content)
        raise EnvironmentFailure("no answer", "wait")

    for later in (b"one", b"two"):  # the same again, and another
        store.create = lost
        with pytest.raises(EnvironmentFailure):
            chain.add(b"one")
        store.create = real
        chain.add(later)
        assert RecordChain(copy_of(store)).take_over() == later


def copy_of(store):
    """A copy, which the next writer may change."""
    copied = MemoryStore(KEY)
    copied.objects = dict(store.objects)
    return copied


def test_a_writer_that_lives_may_be_adding_and_deleting_meanwhile():
    store = MemoryStore(KEY)
    first = RecordChain(store)
    first.take_over()
    for number in range(3):
        first.add(b"%d" % number)
    real = store.get

    def late(key):
        store.get = real
        first.add(b"later")
        first.add(b"later still")
        return real(key)

    store.get = late
    assert RecordChain(store).take_over() == b"later still"
    with pytest.raises(TakenOver):
        first.add(b"too late")


def test_a_newest_record_that_is_spoilt_is_told():
    store = MemoryStore(KEY)
    first = RecordChain(store)
    first.take_over()
    first.add(b"one")
    newest = max(store.objects)
    store.objects[newest] = store.objects[newest][:-1]
    with pytest.raises(UnreadableObject, match="its seal is not that of the run"):
        RecordChain(store).take_over()
