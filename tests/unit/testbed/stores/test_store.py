"""The contract of all object stores: objects are written whole, and spoilt ones are never taken for good."""

import errno
import os
import socket
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import boto3
import pytest

from experiments.documents.plain_files import read_whole
from experiments.errors import EnvironmentFailure
from journal.reader import raw_entries
from journal.writer import Journal
from spark_jobs.testbed.driver import clear
from testbed.core.seal import KEY_BYTES
from testbed.stores import s3
from testbed.stores.s3 import S3Store
from testbed.stores.store import DirectoryStore, MemoryStore, UnreadableObject
from tests.object_stores import BUCKET, HERE
from tests.unit.testbed.runtime.connections import no_descriptors
from tests.unit.testbed.small_job import JOB
from tests.unit.testbed.syncs import note_syncs


class Memory:
    """A store, and its bytes as they lie there."""

    def __init__(self):
        self.store = MemoryStore()

    def read(self, key):
        return self.store.objects[key]

    def write(self, key, data):
        self.store.objects[key] = data


class Directory:
    def __init__(self, root):
        self.store, self._root = DirectoryStore(root), root

    def read(self, key):
        return (self._root / key).read_bytes()

    def write(self, key, data):
        (self._root / key).write_bytes(data)


class S3:
    def __init__(self, endpoint):
        self._prefix = f"runs/{uuid4().hex}"
        self.store = S3Store(f"s3://{BUCKET}/{self._prefix}", endpoint)
        self._client = boto3.client("s3", "us-east-1", endpoint_url=endpoint)

    def read(self, key):
        return self._client.get_object(Bucket=BUCKET, Key=f"{self._prefix}/{key}")["Body"].read()

    def write(self, key, data):
        self._client.put_object(Bucket=BUCKET, Key=f"{self._prefix}/{key}", Body=data)


@pytest.fixture(params=["memory", "directory", "s3"])
def place(request, tmp_path):
    if request.param == "s3":
        return S3(request.getfixturevalue("endpoint"))
    return Memory() if request.param == "memory" else Directory(tmp_path / "objects")


@pytest.fixture
def store(place):
    return place.store


def test_objects_come_back_and_go(store):
    store.put("count.0/state-1-1", [b"one", b"", b"two"])
    store.put("count.0/log-1-1", [b""])
    assert (store.get("count.0/state-1-1"), store.get("count.0/log-1-1")) == (b"onetwo", b"")
    assert store.keys() == ["count.0/log-1-1", "count.0/state-1-1"]
    store.delete("count.0/state-1-1")
    store.delete("count.0/state-1-1")
    with pytest.raises(UnreadableObject, match="state-1-1"):
        store.get("count.0/state-1-1")
    store.check()
    assert store.keys() == ["count.0/log-1-1"], "a check leaves nothing"
    store.clear()
    assert store.keys() == []


def test_a_store_that_does_not_list_what_it_has_is_told_before_a_run(monkeypatch):
    """A second driver could not find there what the first one has written."""
    store = MemoryStore()
    monkeypatch.setattr(store, "keys", lambda _folder: [])
    with pytest.raises(EnvironmentFailure, match="it is not listed"):
        store.check()


def test_a_folder_s_keys_are_those_below_it(store):
    for key in ("count.1/log-1-1", "count.1/deep/log-1-1", "count.10/log-1-1", "count"):
        store.put(key, [b""])
    assert store.keys("count.1") == ["count.1/deep/log-1-1", "count.1/log-1-1"]
    assert store.keys("count.2") == []


SPOILT = {"cut short": lambda data: data[:-1], "emptied": lambda data: b"", "changed": lambda data: b"?" + data[1:]}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_a_spoilt_object_is_refused(place, spoil):
    place.store.put("a/b", [b"content"])
    place.write("a/b", spoil(place.read("a/b")))
    with pytest.raises(UnreadableObject, match="its seal is not"):
        place.store.get("a/b")


@pytest.mark.extended
def test_an_object_in_another_s_place_is_refused(place):
    place.store.put("a/state-1-1", [b"old"])
    place.store.put("a/state-2-1", [b"new"])
    place.write("a/state-2-1", place.read("a/state-1-1"))
    with pytest.raises(UnreadableObject, match="its seal is not"):
        place.store.get("a/state-2-1")


def test_an_object_moved_to_another_key_and_one_sealed_without_the_run_s_key_are_refused(tmp_path):
    ours, theirs = (DirectoryStore(tmp_path, bytes([number]) * KEY_BYTES) for number in (1, 2))
    theirs.put("a/state-1-1", [b"not ours"])
    ours.put("a/state-2-1", [b"ours"])
    with pytest.raises(UnreadableObject, match="its seal is not"):
        ours.get("a/state-1-1")
    (tmp_path / "a" / "state-2-1").rename(tmp_path / "a" / "state-3-1")
    with pytest.raises(UnreadableObject, match="its seal is not"):
        ours.get("a/state-3-1")


def test_all_who_have_the_key_of_a_run_read_what_any_of_them_wrote(endpoint, tmp_path):
    for place in (str(tmp_path), f"s3://{BUCKET}/{uuid4().hex}"):
        job, key = replace(JOB, store=place, store_endpoint=endpoint), bytes(range(KEY_BYTES))
        job.object_store(key).put("a/b", [b"content"])
        assert job.object_store(key).get("a/b") == b"content"
        with pytest.raises(UnreadableObject):
            job.object_store().get("a/b")


def test_the_same_content_never_has_the_same_seal_twice():
    """A key that summed up two objects would tell who sees both how to seal a third."""
    store = MemoryStore()
    seals = set()
    for _ in range(3):
        store.put("a/b", [b"content"])
        seals.add(store.objects["a/b"])
    assert len(seals) == 3


@pytest.mark.parametrize("plant", [os.mkfifo, lambda path: path.symlink_to("/dev/zero"), Path.mkdir])
def test_what_is_no_file_is_no_object(tmp_path, plant):
    (tmp_path / "a").mkdir()
    plant(tmp_path / "a" / "b")
    with pytest.raises(UnreadableObject, match="a/b can't be used"):
        DirectoryStore(tmp_path).get("a/b")


def test_an_object_is_not_written_to_where_a_link_leads(tmp_path, monkeypatch):
    monkeypatch.setattr("testbed.stores.store.uuid4", lambda: SimpleNamespace(hex="guessed"))
    store, elsewhere = DirectoryStore(tmp_path / "store"), tmp_path / "elsewhere"
    elsewhere.write_bytes(b"as it was")
    (tmp_path / "store" / "a").mkdir(parents=True)
    (tmp_path / "store" / "a" / f".{os.getpid()}.guessed.b").symlink_to(elsewhere)
    with pytest.raises(EnvironmentFailure):
        store.put("a/b", [b"content"])
    assert elsewhere.read_bytes() == b"as it was"


def test_an_object_that_cannot_be_opened_for_want_of_descriptors_is_not_taken_for_lost(tmp_path):
    store = DirectoryStore(tmp_path, patience_s=0.0)
    store.put("a/b", [b"content"])
    with no_descriptors(), pytest.raises(EnvironmentFailure, match="a/b can't be read"):
        store.get("a/b")
    assert store.get("a/b") == b"content"


def let_reads_fail(monkeypatch, code, times):
    """The next reads of a directory store fail with this error."""
    left = [OSError(code, os.strerror(code)) for _ in range(times)]

    def read(path, most_bytes):
        if left:
            raise left.pop()
        return read_whole(path, most_bytes)

    monkeypatch.setattr("testbed.stores.store.read_whole", read)
    monkeypatch.setattr("testbed.stores.store.AGAIN_S", 0.0)


@pytest.mark.parametrize("code", [errno.EIO, errno.ESTALE, errno.EACCES])
def test_an_object_that_cannot_be_read_for_a_while_is_not_taken_for_lost(tmp_path, monkeypatch, code):
    store = DirectoryStore(tmp_path)
    store.put("a/b", [b"content"])
    let_reads_fail(monkeypatch, code, times=2)
    assert store.get("a/b") == b"content"


@pytest.mark.parametrize(("code", "error"), [(errno.EIO, UnreadableObject), (errno.ESTALE, EnvironmentFailure)])
def test_an_error_that_lasts_is_damage_only_if_a_bad_disk_gives_it(tmp_path, monkeypatch, code, error):
    store = DirectoryStore(tmp_path, patience_s=0.0)
    store.put("a/b", [b"content"])
    let_reads_fail(monkeypatch, code, times=1)
    with pytest.raises(error, match="a/b can't be"):
        store.get("a/b")


@pytest.mark.parametrize("code", [errno.EACCES, errno.EIO])
def test_a_folder_that_cannot_be_listed_is_not_taken_for_an_empty_one(tmp_path, monkeypatch, code):
    store = DirectoryStore(tmp_path)
    store.put("a/b", [b"content"])

    def refuse(folder):
        raise OSError(code, os.strerror(code), str(folder))

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", refuse)
        with pytest.raises(EnvironmentFailure, match="can't be listed"):
            store.keys()
    assert store.keys() == ["a/b"]


def test_stores_of_two_runs_do_not_see_each_other(endpoint):
    first, second = (S3Store(f"s3://{BUCKET}/run-{number}", endpoint) for number in (1, 11))
    second.put("a/b", [b"content"])
    assert first.keys() == []
    first.clear()
    assert second.get("a/b") == b"content"


def test_more_objects_than_a_page_has_are_all_there(endpoint):
    store = S3Store(f"s3://{BUCKET}/many", endpoint)
    page = store._client.list_objects_v2
    store._client.list_objects_v2 = lambda **options: page(**options, MaxKeys=2)
    names = [f"a/log-{number}-1" for number in range(5)]
    for name in names:
        store.put(name, [b""])
    assert store.keys() == names


def test_a_store_in_s3_is_cleared_by_few_requests(endpoint, monkeypatch):
    monkeypatch.setattr(s3, "MOST_DELETED", 2)
    store, requests = S3Store(f"s3://{BUCKET}/cleared", endpoint), []
    store._client.meta.events.register("before-call.s3", lambda model, **_: requests.append(model.name))
    for number in range(5):
        store.put(f"a/log-{number}-1", [b""])
    store.clear()
    assert store.keys() == []
    assert [name for name in requests if name.startswith("Delete")] == 3 * ["DeleteObjects"]


@pytest.mark.extended
def test_an_object_that_s3_does_not_delete_with_the_others_is_told(endpoint):
    store = S3Store(f"s3://{BUCKET}/refused", endpoint)
    store.put("a/b", [b"content"])
    refusal = {"Errors": [{"Key": "refused/a/b", "Code": "AccessDenied", "Message": "no"}]}
    store._client.delete_objects = lambda **_: refusal
    with pytest.raises(EnvironmentFailure, match=r"1 objects can't be deleted at .*refused/a/b: AccessDenied"):
        store.clear()


def test_a_run_that_came_to_its_end_has_not_failed_if_its_objects_stay(tmp_path):
    class Refusing(MemoryStore):
        def delete(self, key):
            raise EnvironmentFailure(f"the object {key} can't be deleted", "wait")

    store, journal = Refusing(), tmp_path / "journal.jsonl"
    store.put("a/b", [b"content"])
    clear(store, Journal(journal))
    (told,) = list(raw_entries(journal))
    assert (told["event"], told["error"]) == ("undeleted", "the object a/b can't be deleted; wait")


def test_one_object_that_can_never_be_deleted_does_not_keep_the_others():
    class Keeping(MemoryStore):
        def delete(self, key):
            if key == "a/b":
                raise EnvironmentFailure("the object a/b can't be deleted", "wait")
            super().delete(key)

    store = Keeping()
    for key in ("a/a", "a/b", "a/c"):
        store.put(key, [b"content"])
    with pytest.raises(EnvironmentFailure, match="a/b can't be deleted"):
        store.clear()
    assert store.keys() == ["a/b"]


def test_objects_that_s3_refuses_to_delete_do_not_keep_those_of_the_next_request(endpoint, monkeypatch):
    monkeypatch.setattr(s3, "MOST_DELETED", 1)
    store = S3Store(f"s3://{BUCKET}/kept", endpoint)
    for key in ("a/a", "a/b"):
        store.put(key, [b"content"])
    delete, refusal = store._client.delete_objects, {"Errors": [{"Key": "kept/a/a", "Code": "AccessDenied"}]}
    store._client.delete_objects = lambda **what: (
        refusal if what["Delete"]["Objects"] == [{"Key": "kept/a/a"}] else delete(**what)
    )
    with pytest.raises(EnvironmentFailure, match=r"kept/a/a: AccessDenied"):
        store.clear()
    assert store.keys() == ["a/a"]


def test_a_write_that_was_cut_short_is_no_object(tmp_path):
    store = DirectoryStore(tmp_path)
    store.put("a/b", [b"content"])
    (tmp_path / "a" / ".123.c").write_bytes(b"cont")
    with pytest.raises(UnreadableObject):
        store.get("a/c")
    assert store.keys() == ["a/.123.c", "a/b"], "it is known, so that it can be deleted"
    store.delete("a/.123.c")
    assert store.keys() == ["a/b"]


@pytest.mark.parametrize(
    "write",
    [lambda store: store.put("a/b", [b"content"]), lambda store: store.create("a/b", b"content")],
    ids=["put", "create"],
)
def test_an_object_has_its_name_for_good_before_it_counts_as_written(tmp_path, monkeypatch, write):
    synced, store = note_syncs(monkeypatch), DirectoryStore(tmp_path / "objects")
    write(store)
    assert (synced[tmp_path], synced[tmp_path / "objects"]) == ({"objects"}, {"a"}), "the folders that were made"
    assert synced.pop(tmp_path / "objects" / "a") == {"b"}
    assert not store.create("a/b", b"content")
    assert synced[tmp_path / "objects" / "a"] == {"b"}, "whoever created it may have been killed"


def test_a_store_that_cannot_keep_a_name_has_refused(tmp_path, monkeypatch):
    def refuse(folder):
        raise OSError(errno.EIO, "the disk", str(folder))

    monkeypatch.setattr("testbed.stores.store.sync_folder", refuse)
    for write in (lambda store: store.put("a/b", [b"content"]), lambda store: store.create("a/b", b"content")):
        for _ in range(2):
            with pytest.raises(EnvironmentFailure, match="a/b can't be written"):
                write(DirectoryStore(tmp_path))
    assert os.listdir(tmp_path / "a") == ["b"]


def test_a_store_that_refuses_says_so_and_leaves_nothing(tmp_path):
    (tmp_path / "taken").write_text("a file where a folder must be")
    with pytest.raises(EnvironmentFailure, match="taken/b can't be written"):
        DirectoryStore(tmp_path).put("taken/b", [b"content"])
    assert DirectoryStore(tmp_path).keys() == ["taken"]


@pytest.fixture
def quick(monkeypatch):
    calling = s3.CALLING.merge(s3.Config(retries={"total_max_attempts": 1}, connect_timeout=60, read_timeout=60))
    monkeypatch.setattr(s3, "CALLING", calling)


def one_line(failure):
    assert "\n" not in str(failure.value)


def test_a_bucket_that_is_not_there_is_told_before_a_run(endpoint, quick):
    with pytest.raises(EnvironmentFailure, match=r"can.t be written at s3://nobody/runs: .*NoSuchBucket") as failure:
        S3Store("s3://nobody/runs", endpoint).check()
    one_line(failure)


def test_an_s3_that_is_out_of_reach_refuses_writes_and_is_no_missing_object(endpoint, quick):
    with socket.socket() as taken:
        taken.bind((HERE, 0))  # no process listens
        store = S3Store(f"s3://{BUCKET}/runs", "http://{}:{}".format(*taken.getsockname()), patience_s=0.0)
        for attempt in (lambda: store.put("a/b", [b"content"]), lambda: store.get("a/b"), store.keys):
            with pytest.raises(
                EnvironmentFailure, match=r"at s3://checkpoints/runs: .*connect to the endpoint"
            ) as failure:
                attempt()
            one_line(failure)


def test_what_must_be_read_is_asked_for_until_s3_answers(endpoint, monkeypatch):
    store, refusals = S3Store(f"s3://{BUCKET}/patient", endpoint), [503, 503]
    store.put("a/b", [b"content"])
    monkeypatch.setattr(s3, "AGAIN_S", 0.0)
    answer = store._client.get_object

    def reluctant(**options):
        if refusals:
            code = refusals.pop()
            raise s3.ClientError({"Error": {"Code": str(code), "Message": "slow down"}}, "GetObject")
        return answer(**options)

    store._client.get_object = reluctant
    assert store.get("a/b") == b"content"
    assert not refusals


@pytest.mark.parametrize("error", [OSError("no space"), MemoryError()])
def test_an_object_whose_pieces_cannot_be_made_leaves_nothing(tmp_path, error):
    def failing():
        yield b"piece"
        raise error

    with pytest.raises((EnvironmentFailure, MemoryError)):
        DirectoryStore(tmp_path).put("a.0/state-1-1", failing())
    assert DirectoryStore(tmp_path).keys() == []
