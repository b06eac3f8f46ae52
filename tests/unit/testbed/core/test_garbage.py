"""Objects that are garbage are deleted, but none that somebody was told to read and has not read yet."""

from testbed.core.checkpoints import Checkpoint
from testbed.core.control import Restore
from testbed.core.coordinator.garbage import Garbage
from testbed.core.effects import Delete


def order(epoch, *keys):
    return Restore(epoch, Checkpoint(0, 1, epoch, {}, {}, keys, None, {}), ())


def test_garbage_that_nobody_reads_is_deleted_at_once():
    garbage = Garbage(effects := [])
    garbage.read_by(0, order(1, "a"))
    garbage.delete(["b", "c"])
    garbage.delete([])
    assert effects == [Delete(("b", "c"))]


def test_an_object_is_deleted_when_its_last_reader_has_read_it():
    """A partition and its copy."""
    garbage = Garbage(effects := [])
    garbage.read_by(0, order(1, "a", "b"))
    garbage.read_by(0, order(2, "a"))
    garbage.delete(["a"])
    garbage.end_reading(0, 1)
    garbage.end_reading(0, 1)
    assert effects == []
    garbage.end_reading(0, 2)
    assert effects == [Delete(("a",))]
    garbage.delete(["b"])
    assert effects[1:] == [Delete(("b",))]


def test_what_was_read_and_is_no_garbage_is_not_deleted():
    garbage = Garbage(effects := [])
    garbage.read_by(0, order(1, "a"))
    garbage.end_reading(0, 1)
    assert effects == []
