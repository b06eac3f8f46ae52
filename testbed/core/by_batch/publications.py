"""The publications of an exactly-once sink: what was handed over, and what waits until that is published."""

from __future__ import annotations

from collections import deque

from testbed.core.checkpoints import NO_BATCH
from testbed.core.effects import PartitionEffect, Publish, PublishTentative


class Publications:
    """The output of a sink by batch, numbered one more than its batch. Any other partition has none.

    out   up to which number all is known to be out
    """

    def __init__(self, effects: list[PartitionEffect]) -> None:
        self._effects = effects
        self.restore()

    def restore(self) -> None:
        """A life begins; nothing is known of what is published."""
        self.out = NO_BATCH
        self._unpublished: deque[int] = deque()
        self._kept_back: deque[tuple[int, PartitionEffect]] = deque()
        self._tentative: list[PublishTentative] = []

    @property
    def pending(self) -> bool:
        """Whether something is not known to be out."""
        return bool(self._unpublished)

    @property
    def holds_tentative(self) -> bool:
        """Whether tentative output waits until it is known what is published. The sink should make no more of it until
        then, so that no more than one batch waits.
        """
        return bool(self._tentative)

    def publish(self, effect: Publish) -> None:
        """Give this out after all that came before it."""
        self._effects.append(effect)
        self._unpublished.append(effect.number)

    def put_out(self, effect: PublishTentative) -> None:
        """Give tentative output out if the exact output of its batch is not. While that is not known yet, it waits."""
        if self._asks:
            self._tentative.append(effect)
        elif not self.has(effect.batch):
            self._effects.append(effect)

    def ask(self) -> None:
        """Ask what is published."""
        self.publish(Publish(0, ()))

    def forget_pending(self) -> None:
        """Forget the output whose publication is not confirmed: it is published again."""
        self._unpublished.clear()

    def keep_back_last(self) -> None:
        """Keep the last effect until all that was given out so far is published."""
        if self._unpublished:
            self._kept_back.append((self._unpublished[-1], self._effects.pop()))

    def on_published(self, number: int) -> None:
        """All up to this number is published."""
        self.out = max(number, self.out)
        while self._unpublished and self._unpublished[0] <= number:
            self._unpublished.popleft()
        while self._kept_back and (not self._unpublished or self._kept_back[0][0] < self._unpublished[0]):
            self._effects.append(self._kept_back.popleft()[1])
        waiting, self._tentative = self._tentative, []
        for each in waiting:
            self.put_out(each)

    def is_ahead_of(self, batch: int) -> bool:
        """Whether more is published than up to this batch, or it is not known yet."""
        return self._asks or self.has(batch + 1)

    def has(self, batch: int) -> bool:
        """Whether this batch is published."""
        return batch + 1 <= self.out

    @property
    def _asks(self) -> bool:
        return 0 in self._unpublished
