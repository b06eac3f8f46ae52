"""Which objects a checkpoint builds on while the store refuses some of them."""

from testbed.core.checkpoints import initial_line
from testbed.core.control import NotStored, Restore
from testbed.core.snapshots import Core, Snapshots
from tests.unit.testbed.small_flows import laid_out


def test_a_checkpoint_never_builds_on_one_that_the_store_refused():
    """The second was lost with the first. When it is refused, too, the full copy after it stands as before."""
    layout = laid_out("chain")[0]
    snapshots = Snapshots(layout.partitions[0], changes_per_full=10)
    snapshots.restore(Restore(1, initial_line(layout)[0], (), 0))

    def taken(number):
        return snapshots.take(Core({}, {}, {}), {}, 1, number, forced=False).checkpoint.state_keys

    first, second = taken(1), taken(2)
    assert second == (*first, second[-1])
    snapshots.on_store_failed(1, 1)
    third = taken(3)
    assert len(third) == 1
    assert snapshots.on_store_failed(1, 2) == [NotStored(0, 1, 2)]
    snapshots.on_store_failed(1, 3)
    assert len(taken(4)) == 1
