"""Windows over event time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from experiments.errors import BadInput

Times = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Windows:
    """Windows of `size_ns` that start at every multiple of `slide_ns`, over the column `time`."""

    time: str
    size_ns: int
    slide_ns: int

    def __post_init__(self) -> None:
        if self.size_ns <= 0:
            raise BadInput("size_ns", self.size_ns, "a positive number of nanoseconds")
        if self.slide_ns <= 0 or self.size_ns % self.slide_ns:
            raise BadInput("slide_ns", self.slide_ns, f"a divisor of the size, {self.size_ns}")

    def assign(self, times_ns: Times) -> tuple[Times, Times]:
        """Which windows hold which records: for each pair the record's position and the window's start.

        Pairs go record by record, the earliest window first.
        """
        count = self.size_ns // self.slide_ns
        last = times_ns // self.slide_ns * self.slide_ns
        offsets = np.arange(1 - count, 1) * self.slide_ns
        starts = (last[:, None] + offsets[None, :]).ravel()
        return np.repeat(np.arange(times_ns.size), count), starts

    def closed_by(self, start_ns: int, watermark_ns: int) -> bool:
        """Whether a watermark [ns] closes the window that starts there [ns]."""
        return start_ns + self.size_ns <= watermark_ns


def tumbling(time: str, size_ns: int) -> Windows:
    """Windows that don't overlap."""
    return Windows(time, size_ns, size_ns)


def sliding(time: str, size_ns: int, slide_ns: int) -> Windows:
    """Windows that overlap, size / slide of them at any time."""
    return Windows(time, size_ns, slide_ns)
