"""Objects are written whole, and spoilt ones are never taken for good."""

import pytest

from experiments.errors import EnvironmentFailure
from spark_jobs.dataflow.store import DirectoryStore, MemoryStore, UnreadableObject


@pytest.fixture(params=["memory", "directory"])
def store(request, tmp_path):
    return MemoryStore() if request.param == "memory" else DirectoryStore(tmp_path / "objects")


def test_objects_come_back_and_go(store):
    store.put("count.0/state-1-1", [b"one"])
    store.put("count.0/log-1-1", [b""])
    assert store.get("count.0/state-1-1") == b"one"
    assert store.keys() == ["count.0/log-1-1", "count.0/state-1-1"]
    store.delete("count.0/state-1-1")
    store.delete("count.0/state-1-1")
    with pytest.raises(UnreadableObject, match="state-1-1"):
        store.get("count.0/state-1-1")


SPOILT = {"cut short": lambda data: data[:-1], "emptied": lambda data: b"", "changed": lambda data: data[:-1] + b"?"}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_a_spoilt_object_is_refused(tmp_path, spoil):
    store = DirectoryStore(tmp_path)
    store.put("a/b", [b"content"])
    path = tmp_path / "a" / "b"
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(UnreadableObject, match="checksum"):
        store.get("a/b")


def test_an_object_in_another_s_place_is_refused(tmp_path):
    store = DirectoryStore(tmp_path)
    store.put("a/state-1-1", [b"old"])
    store.put("a/state-2-1", [b"new"])
    (tmp_path / "a/state-1-1").replace(tmp_path / "a/state-2-1")
    with pytest.raises(UnreadableObject, match="checksum"):
        store.get("a/state-2-1")


def test_a_write_that_was_cut_short_is_no_object(tmp_path):
    store = DirectoryStore(tmp_path)
    store.put("a/b", [b"content"])
    (tmp_path / "a" / ".123.c").write_bytes(b"cont")
    with pytest.raises(UnreadableObject):
        store.get("a/c")
    assert store.keys() == ["a/.123.c", "a/b"], "it is known, so that it can be deleted"
    store.delete("a/.123.c")
    assert store.keys() == ["a/b"]


def test_a_store_that_refuses_says_so_and_leaves_nothing(tmp_path):
    (tmp_path / "taken").write_text("a file where a folder must be")
    with pytest.raises(EnvironmentFailure, match="taken/b can't be written"):
        DirectoryStore(tmp_path).put("taken/b", [b"content"])
    assert DirectoryStore(tmp_path).keys() == ["taken"]
