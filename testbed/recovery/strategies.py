"""The strategies that restore what is lost alone: from checkpoints, or from the sources on."""

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


class SourceReplay(Recovery):
    """The lost partitions begin anew, without state, and so does every partition upstream of them, as soon as every one
    of the lost has a worker: Storm's way, with which `ppa` compares (section VI-A).

    The sources read their input again from its beginning. Numbers tell the others what they have already. The paper
    replays what belongs to windows that are still open; an operator here doesn't say how far its state reaches back.
    """

    name = "source-replay"
    partial = True
    from_sources = True

    def restored_now(self, world: World) -> frozenset[int]:
        return world.layout.with_upstream(world.down) if world.down <= world.placed else frozenset()
