"""How far back a recovery would have to read the log now, and how much input it would have to replay."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, pairwise
from typing import NamedTuple

import numpy as np

from testbed.operators.parts import Footprints
from testbed.output_log.lasting import Lasting


class Footprint(NamedTuple):
    """The newest entry of an open window: its number in the log, from 0, and its position."""

    entry: int
    at: int


class Extent:
    """The newest footprint of each open window, the oldest first (the order by tau_2 of `cec`, section III).

    entries    how many the log has
    position   how many records the operator has read
    lasting    how long the checks of this life have lasted
    """

    def __init__(self) -> None:
        self.entries = self.position = 0
        self.lasting = Lasting()
        self._windows: OrderedDict[bytes, tuple[int, int]] = OrderedDict()

    def restore(self, windows: Iterable[tuple[bytes, tuple[int, int]]], entries: int, position: int) -> None:
        """Go on with these windows, the one with the oldest footprint first."""
        self._windows = OrderedDict(windows)
        self.entries, self.position = entries, position

    def add(self, step: Footprints, position: int) -> None:
        """A step has made these footprints and led to this position."""
        self.lasting.gone(chain(step.gone, step.left), position)
        for window in step.gone:
            del self._windows[window]
        if step.left:
            for window in step.left:
                self._windows.pop(window, None)
            numbers = np.fromiter(step.left.values(), dtype=np.int64)
            at = step.entries.column("at").to_numpy()[numbers]
            places = zip((self.entries + numbers).tolist(), at.tolist(), strict=True)
            self._windows.update(zip(step.left, places, strict=True))
        self.entries += step.entries.num_rows
        self.position = position

    def saved(self, windows: Sequence[bytes]) -> None:
        """The parts of these windows are saved now, one after the other."""
        self.lasting.saved(windows, self.position)
        for entry, window in enumerate(windows, self.entries):
            self._windows[window] = entry, self.position
            self._windows.move_to_end(window)
        self.entries += len(windows)

    def __len__(self) -> int:
        """How many windows are open."""
        return len(self._windows)

    def __iter__(self) -> Iterator[tuple[bytes, Footprint]]:
        return ((window, Footprint._make(place)) for window, place in self._windows.items())

    @property
    def oldest(self) -> tuple[bytes, Footprint] | None:
        """The window with the oldest footprint; None if no window is open."""
        return next(iter(self), None)

    @property
    def begins(self) -> int:
        """The first entry that a recovery reads."""
        return self.oldest[1].entry if self.oldest else self.entries

    @property
    def replay_after(self) -> int:
        """A recovery replays the records after this position: T of the paper."""
        return self.oldest[1].at if self.oldest else self.position

    @property
    def length(self) -> int:
        """How many entries a recovery reads: q of the paper."""
        return self.entries - self.begins

    @property
    def replay(self) -> int:
        """How many records a recovery replays: u of the paper."""
        return self.position - self.replay_after

    def oldest_before(self, entry: int, most: int) -> list[bytes]:
        """The oldest windows, at most `most`, as far as their footprints are before this entry, and a recovery would
        read or replay less if they were saved."""
        found: list[bytes] = []
        for window, (begins, at) in islice(self._windows.items(), most):
            as_little = at == self.position and self.entries - begins == len(self) - len(found)
            if begins >= entry or as_little:
                break
            found.append(window)
        return found

    def places(self, most: int) -> Iterator[tuple[int, int]]:
        """The footprints of at most `most` of the oldest windows, oldest first (`Footprint`)."""
        return islice(self._windows.values(), most)

    def gaps(self, most: int) -> Iterator[tuple[bytes, int, int, int]]:
        """For at most `most` of the oldest windows, oldest first: how old the footprint is, in records, and how many
        entries and records are between it and the next one."""
        now = b"", Footprint(self.entries, self.position)
        for (window, place), (_, following) in pairwise(islice(chain(self, [now]), most + 1)):
            yield window, self.position - place.at, following.entry - place.entry, following.at - place.at
