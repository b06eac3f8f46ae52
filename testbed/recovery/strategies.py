"""The strategies that restore lost partitions alone, from checkpoints."""

from __future__ import annotations

from testbed.core.recovery import Recovery, World


class Blocking(Recovery):
    """The lost partitions go back, all at once, as soon as every one of them has a worker: what `incremental`
    compares with. The others go on, as far as their input goes."""

    name = "blocking"
    partial = True

    def restored_now(self, world: World) -> frozenset[int]:
        return world.down if world.down <= world.placed else frozenset()


class Passive(Recovery):
    """A lost partition goes back as soon as it has a worker: passive replication of `ppa`, section II."""

    name = "passive"
    partial = True

    def restored_now(self, world: World) -> frozenset[int]:
        started = world.down != world.everyone
        return world.down & world.placed if started or world.placed == world.everyone else frozenset()
