"""The strategies that restore only the lost partitions: from checkpoints, or from the sources."""

from __future__ import annotations

from collections.abc import Mapping

from testbed.core.protocol import Protocol
from testbed.core.recovery import RecoveryStrategy, World
from testbed.recovery.assignment import assigned, even_share, room_of


class Blocking(RecoveryStrategy):
    """The lost partitions roll back, all at once, as soon as every one of them has a worker: what `incremental`
    compares with. The others go on, as far as their input goes."""

    name = "blocking"
    partial = True

    def __init__(self, by_room: bool = False) -> None:
        """`by_room`: partitions go where room is, as under `query-centric`, and wait until as many workers are there
        as at the start. Otherwise each goes to its own slot, which takes partitions of every operator."""
        self._by_room = by_room

    def plan(self, world: World) -> Mapping[int, str | None]:
        if not self._by_room:
            return super().plan(world)
        if len(world.workers) < world.slots:
            return {}
        # After an object could not be read, those that are alive go back, too: where they are.
        back: dict[int, str | None] = {number: world.hosts[number] for number in world.down & world.hosts.keys()}
        back |= assigned(sorted(world.down - world.hosts.keys()), room_of(world, even_share(world)))
        return back

    def restored_now(self, world: World) -> frozenset[int]:
        return world.down if world.down <= world.placed else frozenset()


class Passive(RecoveryStrategy):
    """A lost partition rolls back as soon as it has a worker: passive replication of `ppa`, section II."""

    name = "passive"
    partial = True

    def restored_now(self, world: World) -> frozenset[int]:
        started = world.down != world.everyone
        return world.down & world.placed if started or world.placed == world.everyone else frozenset()


class SourceReplay(RecoveryStrategy):
    """When all lost partitions have a worker, they and all partitions upstream of them start again, without state.

    Storm does this, and `ppa` compares with it (section VI-A). The sources read their input again from its beginning.
    The others recognize by the numbers what they already have. The paper replays only the input of windows that are
    still open; an operator here doesn't say how far its state reaches back.
    """

    name = "source-replay"
    partial = True
    from_sources = True

    @classmethod
    def check(cls, protocol: type[Protocol]) -> str | None:
        if protocol.keeps_log:
            return "protocol batch-aligned: a partition that starts from the beginning reads no output log"
        return super().check(protocol)

    def restored_now(self, world: World) -> frozenset[int]:
        return world.layout.with_upstream(world.down) if world.down <= world.placed else frozenset()
