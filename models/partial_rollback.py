"""Utilization when a failure takes only a share f of the work since the last checkpoint, as a task retry does.

Beyond the `utilization` paper, whose failures take all of it: f = 1 is its eq. 10, and its symbols are used here.
Assumed:

- Progress x grows at rate 1 from the last complete checkpoint, and covers all that the system does, checkpoints
  included. A checkpoint starts every T of progress and is complete (n - 1) delta of progress later.
- Every failure takes a share f of x: what the dead host held. The rest is intact and stays where it is; what was
  lost is done again by the whole system at full rate, and is then spread evenly over the hosts again.
- Recovery takes R and blocks everything. A failure meanwhile starts it again, and takes its share of x, too.

With q = 1 - f, and N the failures until a recovery succeeds, P(N > n) = (1 - exp(-L R))^n, the mean time g(x)
from 0 to x obeys

    g'(x) = exp(L R) + L (g(x) - E[g(q^N x)]),  g(0) = 0,  E[q^(k N)] = 1 - r_k,
    r_k = (1 - q^k) / (1 - q^k + q^k exp(-L R)),

which a power series solves, term by term positive: g(x) = exp(L R) / L sum over k of (L x)^k / k! r_1 ... r_(k-1).
A period takes T_eff = g(T + (n - 1) delta) - g((n - 1) delta), as eq. 9 is eq. 6 less eq. 7, and U = (T - c) / T_eff.
For f = 1 every r is 1 and g is eq. 6. For f = 0 every r is 0, T_eff = T exp(L R), and no interval is too long.

Times are in any one unit and rates per that unit; arguments are scalars or arrays, which broadcast. The functions
do not validate, but for what has no answer: `models.utilization.check_inputs` does. The share is 0, or from
`SMALLEST_SHARE` to 1.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.optimize import elementwise

from experiments.errors import BadInput
from models import utilization as full_rollback
from models.utilization import Values, load

SMALLEST_SHARE = 1e-6  # one host in a million; the series takes up to 1 / sqrt(f) terms
ROUNDING = 1e-17  # the tail of the series is cut where it is this share of its sum
Array = npt.NDArray[np.float64]


def utilization(
    failure_rate: Values,
    checkpoint_cost: Values,
    recovery_time: Values,
    interval: Values,
    lost_share: Values,
    hop_delay: Values = 0.0,
    depth: Values = 1,
) -> Values:
    """U: the share of time that is available for useful work; 0 where it is below the smallest double."""
    growth, _ = _growth(failure_rate, recovery_time, interval, lost_share, np.subtract(depth, 1) * hop_delay)
    useful = np.subtract(interval, checkpoint_cost) / interval
    return (useful * np.exp(-load(failure_rate, recovery_time)) / growth)[()]


def optimal_interval(
    failure_rate: Values,
    checkpoint_cost: Values,
    recovery_time: Values,
    lost_share: Values,
    hop_delay: Values = 0.0,
    depth: Values = 1,
) -> Values:
    """The interval of highest utilization, to about 1e-12 of itself; it includes c.

    About sqrt(2 c / (L f)) if L R and L (n - 1) delta are small; unlike T*, it depends on both unless f is 1.
    inf for f = 0, where a checkpoint saves nothing, and 0 for c = 0.
    T_eff is convex in T, so T_eff - (T - c) dT_eff/dT falls from above 0 at c, and only once through 0.
    Raises `BadInput` where utilization is below the smallest double at every interval.
    """
    arguments = [failure_rate, checkpoint_cost, recovery_time, lost_share, np.subtract(depth, 1) * hop_delay]
    rate, cost, recovery, share, travel = np.broadcast_arrays(*(np.asarray(each, dtype=float) for each in arguments))
    unbounded, free = share == 0, cost == 0
    given = (rate, np.where(free, 1.0 / rate, cost), recovery, np.where(unbounded, 1.0, share), travel)
    longest = _upper_bound(*given)
    found = elementwise.find_root(_excess, (given[1], longest), args=given, tolerances={"xatol": 0.0, "xrtol": 1e-13})
    _require_some_utilization(rate, recovery, found.x, given[3], travel)
    return np.where(unbounded, np.inf, np.where(free, 0.0, found.x))[()]


def _upper_bound(rate: Array, cost: Array, recovery: Array, share: Array, travel: Array) -> Array:
    """An interval that is longer than the optimal one."""
    longest = np.asarray(full_rollback.optimal_interval(rate, cost)) * 2.0
    while (short := _excess(longest, rate, cost, recovery, share, travel) <= 0).any():
        longest = np.where(short, 2.0 * longest, longest)
    return longest


def _excess(interval: Array, rate: Array, cost: Array, recovery: Array, share: Array, travel: Array) -> Array:
    """Has the sign of -dU/dT: (T - c) - c S / E, from (T - c) (S + E) - T S, in which S and T S would cancel."""
    growth, steeper = _growth(rate, recovery, interval, share, travel)
    overflows = np.isinf(steeper)
    return interval - cost - cost * np.where(overflows, 0.0, growth / np.where(overflows, 1.0, steeper))


def _require_some_utilization(rate: Array, recovery: Array, interval: Array, share: Array, travel: Array) -> None:
    growth, _ = _growth(rate, recovery, interval, share, travel)
    lost = np.isinf(growth)
    if lost.any():
        allowed = "times that leave a utilization above 0 at the best interval"
        raise BadInput("(depth - 1) * hop_delay", float(np.broadcast_to(travel, lost.shape)[lost][0]), allowed)


def _growth(rate: Values, recovery: Values, interval: Values, share: Values, travel: Values) -> tuple[Array, Array]:
    """S = T_eff / (T exp(L R)), and E = dT_eff/dT / exp(L R) - S; inf where they overflow.

    With t = L T, y = L (n - 1) delta, Y = t + y and h_k = (Y^k - y^k) / t, term k of S is
    w_k = h_k / k! r_1 ... r_(k-1), and of E it is e_k = (k Y^(k-1) - h_k) / k! r_1 ... r_(k-1). Each follows from the
    last by sums of positive terms. From w_k + e_k on, every term of S + E is at most Y r_k / k times the one before:
    a bound that falls with k, so it bounds the tail of both.
    """
    t, y = np.broadcast_arrays(np.maximum(load(rate, interval), 1e-300), load(rate, travel))
    end, spared = t + y, np.exp(-load(rate, recovery))
    w, e, v, k = np.ones_like(end), np.zeros_like(end), y, 1
    growth, steeper = w, e
    with np.errstate(over="ignore", divide="ignore"):
        log_kept = np.log1p(-np.asarray(share, dtype=float))
        while True:
            r = _restarted(-np.expm1(k * log_kept), spared)
            bound = end * r / k
            tail = (w + e) * bound
            settled = (bound < 1.0) & (tail <= ROUNDING * (1.0 - bound) * steeper)
            if (settled | np.isinf(growth)).all():
                return growth, steeper
            w, e, v = (end * w + v) * r / (k + 1), (end * e + t * w) * r / (k + 1), v * y * r / (k + 1)
            growth, steeper, k = growth + w, steeper + e, k + 1


def _restarted(lost: Array, spared: Array) -> Array:
    """r_k from 1 - q^k and exp(-L R)."""
    return np.where(lost > 0, lost / np.where(lost > 0, lost + (1.0 - lost) * spared, 1.0), 0.0)
