"""How long the saving of a window was of use, measured on the windows that were saved."""

from __future__ import annotations

import math
from collections.abc import Iterable

REMEMBERED = 2000  # the more there are, the less the older ones count


class Lasting:
    """How many records a check lasts: until its window closes, or is saved again.

    Windows that were saved before are told apart: as a rule they are slower than the others.
    """

    def __init__(self) -> None:
        self._begun: dict[bytes, tuple[int, bool]] = {}  # the check of a window, and whether it was saved before that
        self._total, self._ended = [0.0, 0.0], [0.0, 0.0]

    def saved(self, windows: Iterable[bytes], position: int) -> None:
        """A check of each of these windows begins to count."""
        for window in windows:
            earlier = self._begun.get(window)
            if earlier is not None:
                begun, again = earlier
                self._add(position - begun, again)
            self._begun[window] = position, earlier is not None

    def gone(self, windows: Iterable[bytes], position: int) -> None:
        """These windows have closed; not all of them need have been saved."""
        if not self._begun:
            return
        for window in windows:
            if (check := self._begun.pop(window, None)) is not None:
                begun, again = check
                self._add(position - begun, again)

    def expected(self, window: bytes, age: int, windows: int) -> float:
        """How many records a check of this window would last.

        What is known before any check has ended counts as one that has. If windows close by chance, the oldest is
        about ln(windows) times as old as they last from any moment on. One that was saved and has not closed since is
        slower than most: it is taken to last as long again.

        Args:
            age: of the window's footprint, in records.
            windows: how many are open.
        """
        again = window in self._begun
        first = age if again else age / max(1.0, math.log(windows))
        return (first + self._total[again]) / (1 + self._ended[again])

    def _add(self, records: int, again: bool) -> None:
        self._total[again] += records
        self._ended[again] += 1
        if self._ended[again] > REMEMBERED:
            self._total[again] /= 2
            self._ended[again] /= 2
