"""The stochastic simulation with which the utilization model is compared.

Source: sections 3.5 and 4.4 of the `utilization` paper: 250 runs of 2000 / L each (figures 5 and 12).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from models.inputs import require, require_count
from models.simulation.laws import ExponentialTimes, FailureLaw
from models.simulation.process import CheckpointProcess
from models.utilization import check_inputs

CHUNK = 16_384  # failures held at once: the few arrays of this size that a block needs fit a core's cache
MOST_RUNS_AT_ONCE = CHUNK // 16
PAPER_LAW = ExponentialTimes()
LONGEST_WINDOW = 1e300  # failure times beyond it stay finite


@dataclass(frozen=True, eq=False)
class SimulatedUtilization:
    """Utilization of each simulated run, (runs,), and what the paper plots of them."""

    utilizations: npt.NDArray[np.float64]

    @property
    def runs(self) -> int:
        """How many runs were simulated; the paper has 250."""
        return self.utilizations.size

    @property
    def mean(self) -> float:
        """Mean utilization of the runs, a share: the points of figures 5 and 12."""
        return float(self.utilizations.mean())

    @property
    def std(self) -> float:
        """Standard deviation of one run (n - 1 in the denominator): the paper's error bars."""
        return float(self.utilizations.std(ddof=1))

    @property
    def standard_error(self) -> float:
        """Standard error of the mean. Where hardly a run keeps any work it says little, and nothing where none does."""
        return self.std / self.runs**0.5


def simulate(
    *,
    failure_rate: float,
    checkpoint_cost: float,
    recovery_time: float,
    interval: float,
    hop_delay: float = 0.0,
    depth: int = 1,
    runs: int = 250,
    failures: int = 2000,
    law: FailureLaw = PAPER_LAW,
    seed: int | np.random.SeedSequence,
) -> SimulatedUtilization:
    """Simulate `runs` independent windows of failures / failure_rate each: `failures` is what a window has on average.

    The paper does not say how its runs begin and end. Here every window opens on a system that has long been running,
    and work at its end counts if it is kept later, so the mean is the long-run utilization without bias: eq. 10 under
    `ExponentialTimes` failures. (A window from a fresh checkpoint to the last one that completes would have a relative
    bias of (exp(L R) - L (R + (n - 1) delta) - L T / (1 - exp(-L T))) / failures.)

    Times are in any one unit, rates per that unit. Memory is bounded by CHUNK and the result. Raises `BadInput` as
    `check_inputs` does, and unless runs >= 2, failures >= 1, seed >= 0 and the window is at most 1e300.
    """
    check_inputs(
        failure_rate=failure_rate,
        checkpoint_cost=checkpoint_cost,
        recovery_time=recovery_time,
        interval=interval,
        hop_delay=hop_delay,
        depth=depth,
    )
    require_count("runs", runs, 2)
    require_count("failures", failures)
    longest = f"a rate at which {failures} failures take at most {LONGEST_WINDOW:g}"
    require("failure_rate", failure_rate, failures / failure_rate <= LONGEST_WINDOW, longest)
    if not isinstance(seed, np.random.SeedSequence):
        require_count("seed", seed, 0)
    rng = np.random.default_rng(seed)
    process = CheckpointProcess(interval, checkpoint_cost, recovery_time, (depth - 1) * hop_delay)
    parts = []
    for begin in range(0, runs, MOST_RUNS_AT_ONCE):
        count = min(MOST_RUNS_AT_ONCE, runs - begin)
        times = law.failures(rng, failure_rate, count, CHUNK // count)
        parts.append(process.utilizations(times, failures / failure_rate))
    return SimulatedUtilization(np.concatenate(parts))
