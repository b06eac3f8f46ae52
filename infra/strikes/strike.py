"""The interface of a strike, and what proves it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Protocol

NOT_YET = 0  # the time at which a strike took effect that has not been carried out


@dataclass(frozen=True)
class Proof:
    """What a strike, or its undoing, did and left.

    fired_ns   when it took effect (UTC nanoseconds)
    proved_ns  when that was seen to be complete, or the look at it was given up
    done       what it acted on, by what it is called: {"processes killed": 7}
    left       what contradicts it, which must be zero: {"survivors": 0, "open ports": 0}
    """

    fired_ns: int
    proved_ns: int
    done: Mapping[str, int]
    left: Mapping[str, int]

    @property
    def holds(self) -> bool:
        """Whether nothing contradicts the strike."""
        return not any(self.left.values())

    def to_json(self) -> dict[str, Any]:
        """The fields by their names, as the injector's journal has them."""
        return asdict(self)


class Strike(Protocol):
    """A prepared fault of one host. The caller must close it or fire it; firing also closes it."""

    def refresh(self) -> bool:
        """Look again at what it will act on; whether the host is up, so that there is anything to strike."""
        ...

    def shoot(self, due_ns: int) -> None:
        """Act when `due_ns` (UTC nanoseconds) has come, at once if it has passed, without a look at what came of it."""
        ...

    def fire(self) -> Proof:
        """Complete the strike, if it was not shot at once, and prove it; stops looking after a time limit."""
        ...

    def close(self) -> None:
        """Give up what was opened ahead."""
        ...


class StrikeOnHost(Strike, Protocol):
    """A strike that acts on the machine on which it is made.

    `ports` are those that it closes, as far as it was seen that the host listens on them.
    """

    ports: set[int]


@contextmanager
def closed_on_failure(strike: Strike) -> Iterator[None]:
    """Close a strike if what is done within fails: its caller gets no strike, or no proof, and so does not close it."""
    try:
        yield
    except BaseException:
        strike.close()
        raise


def wait_until(due_ns: int) -> int:
    """Sleep until a moment (UTC nanoseconds); returns the moment at which that ended."""
    while (left_ns := due_ns - time.time_ns()) > 0:
        time.sleep(left_ns / 1e9)
    return time.time_ns()
