"""The failures of a run as the utilization model counts them: a burst is one, however many hosts die in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from results.predictions.outages import StruckFault

NO_CAUSE = ("listed", "trace")  # labels of faults of which nobody says what they have in common


@dataclass(frozen=True)
class Failure:
    """The strikes of one cause that take back the same work, in the order of time; mostly a single one."""

    strikes: tuple[StruckFault, ...]

    @property
    def reach_s(self) -> float:
        """From the first strike to the last."""
        return self.strikes[-1].struck_s - self.strikes[0].struck_s


def failures(strikes: Sequence[StruckFault], within_s: float) -> list[Failure]:
    """Gather the strikes of a run, which are in the order of time.

    A strike of the same cause goes to the failure before it if it comes at most `within_s` later and hits none of the
    hosts that this failure has hit: a clock takes each of its hosts once. `within_s` is R + (n - 1) delta + T. In less
    time no period is completed between the two, so that the later one takes back no other work, and only prolongs the
    recovery. Then eq. 10 holds at the rate of the bursts with a recovery that is longer by their mean reach
    (`models.simulation.laws.Correlated`).
    """
    found: list[list[StruckFault]] = []
    last: dict[str, list[StruckFault]] = {}
    for strike in strikes:
        burst = last.get(strike.cause, [])
        if burst and _goes_on(burst, strike, within_s):
            burst.append(strike)
            continue
        found.append([strike])
        if strike.cause not in NO_CAUSE:
            last[strike.cause] = found[-1]
    return [Failure(tuple(each)) for each in found]


def mean_reach_s(found: Sequence[Failure]) -> float:
    """The mean time from the first strike of a failure to its last; 0 without a failure."""
    return fmean(each.reach_s for each in found) if found else 0.0


def _goes_on(burst: Sequence[StruckFault], strike: StruckFault, within_s: float) -> bool:
    hit = {target for each in burst for target in each.targets}
    return strike.struck_s - burst[-1].struck_s <= within_s and hit.isdisjoint(strike.targets)
