"""How often a system fails, from the exponential clocks of its hosts and of their failure domains.

Independent clocks: every host has its own, and the rates add up (`utilization`, section 5.1). Correlated failures are
the shocks of Marshall and Olkin, "A Multivariate Exponential Distribution" (1967): a domain's clock takes all of its
hosts, or, as a general shock, each of them with a probability and independently of the others.

The clocks tick on while hosts are down, as in a fault plan. A system that is not yet whole again when the next clock
strikes is thus counted as struck again, which is also how the utilization model counts failures.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from experiments.errors import BadInput
from models.inputs import require, require_count

Times = float | npt.NDArray[np.float64]
HIGHEST_RATE = 1e100  # sums and ratios of rates stay finite
RATE, SHARE = f"a rate from 0 to {HIGHEST_RATE:g}", "a probability above 0, up to 1"


@dataclass(frozen=True)
class Shock:
    """A clock of a domain: at `rate` [1/s] it takes each of the domain's hosts with `probability`, 1 being all."""

    domain: str
    rate: float
    probability: float = 1.0


@dataclass(frozen=True)
class Lifetimes:
    """How two hosts fail together: Marshall and Olkin's bivariate exponential law.

    first, second  rate at which the one host dies without the other [1/s]
    both           rate at which they die in the same shock [1/s]
    """

    first: float
    second: float
    both: float

    def survival(self, first_s: Times, second_s: Times) -> Times:
        """P(X > s, Y > t) = exp(-first s - second t - both max(s, t)) for times of 0 or more [s]; they broadcast."""
        each = self.first * np.asarray(first_s) + self.second * np.asarray(second_s)
        return np.exp(-each - self.both * np.maximum(first_s, second_s))[()]

    @property
    def correlation(self) -> float:
        """Pearson's correlation of the two lifetimes: both / (first + second + both); 0 if neither ever dies."""
        total = self.first + self.second + self.both
        return self.both / total if total else 0.0


@dataclass(frozen=True)
class FailureClocks:
    """The clocks of a cluster; made by `failure_clocks`, which checks them.

    Methods that take `used` count only those hosts, which are the ones that the job runs on: a shock to other hosts
    does not hurt it. None means all hosts. They raise `BadInput` for a host that the cluster does not have.
    """

    hosts: Mapping[str, frozenset[str]]
    own_rates: Mapping[str, float]
    shocks: tuple[Shock, ...]

    def failure_rate(self, used: Collection[str] | None = None) -> float:
        """Rate of events that take at least one of the used hosts [1/s]: the failure rate of the utilization model."""
        return self.rate_of_at_least(1, used)

    def rate_of_at_least(self, lost: int, used: Collection[str] | None = None) -> float:
        """Rate of events that take `lost` or more of the used hosts at once [1/s]; `lost` counts from 1."""
        require_count("lost", lost)
        hosts = self._used(used)
        alone = sum(self.own_rates[host] for host in hosts) if lost == 1 else 0.0
        hits = (shock.rate * _at_least(lost, self._struck(shock, hosts), shock.probability) for shock in self.shocks)
        return float(alone + sum(hits))

    def death_rate(self, used: Collection[str] | None = None) -> float:
        """Deaths of used hosts per second, each host of a shock for itself.

        It is the rate of events of a cluster whose shocks are spread over time, so that their hosts die one by one.
        """
        return float(sum(self.host_rate(host) for host in self._used(used)))

    def mean_hosts_lost(self, used: Collection[str] | None = None) -> float:
        """Used hosts lost in an event that takes any, on average; 1 or more. Raises `BadInput` if no event does."""
        rate = self.failure_rate(used)
        require("failure_rate", rate, rate > 0, "a rate above 0 at which hosts that are used fail")
        return self.death_rate(used) / rate

    def host_rate(self, host: str) -> float:
        """Rate at which one host dies, by its own clock or in a shock [1/s]."""
        shocks = self._shocks_on(host)
        return float(self.own_rates[host] + sum(shock.rate * shock.probability for shock in shocks))

    def lifetimes(self, first: str, second: str) -> Lifetimes:
        """How two hosts fail together. A shock that both could be taken by splits into three independent ones."""
        if first == second:
            raise BadInput("second", second, "a host other than the first")
        shared = [shock for shock in self._shocks_on(first) if shock in self._shocks_on(second)]
        one_of_them = sum(shock.rate * shock.probability * (1.0 - shock.probability) for shock in shared)
        return Lifetimes(
            first=one_of_them + self._rate_apart(first, shared),
            second=one_of_them + self._rate_apart(second, shared),
            both=sum(shock.rate * shock.probability**2 for shock in shared),
        )

    def _rate_apart(self, host: str, shared: Sequence[Shock]) -> float:
        shocks = [shock for shock in self._shocks_on(host) if shock not in shared]
        return self.own_rates[host] + sum(shock.rate * shock.probability for shock in shocks)

    def _shocks_on(self, host: str) -> list[Shock]:
        self._require_known("host", [host])
        return [shock for shock in self.shocks if shock.domain in self.hosts[host]]

    def _struck(self, shock: Shock, hosts: Collection[str]) -> int:
        return sum(shock.domain in self.hosts[host] for host in hosts)

    def _used(self, used: Collection[str] | None) -> set[str]:
        if used is None:
            return set(self.hosts)
        self._require_known("used", used)
        return set(used)

    def _require_known(self, field: str, names: Collection[str]) -> None:
        if unknown := sorted(set(names) - set(self.hosts)):
            raise BadInput(field, unknown[0], f"hosts of the cluster: {_some(self.hosts)}")


def failure_clocks(
    hosts: Mapping[str, Sequence[str]], own_rates: float | Mapping[str, float], shocks: Sequence[Shock] = ()
) -> FailureClocks:
    """Check and gather the clocks of a cluster.

    hosts      every host with the names of its domains, as in a fault spec
    own_rates  rate of every host's own clock [1/s], one for all or one for each; 0: it dies in shocks only
    shocks     clocks of domains; a domain may have several

    Raises `BadInput` for an unknown host or domain, a host without a rate, a rate below 0 and a probability outside
    0 to 1 (0 itself is not allowed: such a clock does nothing).
    """
    if not hosts:
        raise BadInput("hosts", {}, "at least one host")
    for host, names in hosts.items():
        if isinstance(names, str):
            raise BadInput(f"hosts.{host}", names, "a list of domains")
    domains = {domain for names in hosts.values() for domain in names}
    for shock in shocks:
        if shock.domain not in domains:
            raise BadInput("shocks.domain", shock.domain, f"domains that hosts name: {_some(domains) or 'none'}")
        require(f"shocks.{shock.domain}.rate", shock.rate, 0 <= shock.rate <= HIGHEST_RATE, RATE)
        require(f"shocks.{shock.domain}.probability", shock.probability, 0 < shock.probability <= 1, SHARE)
    rates = own_rates if isinstance(own_rates, Mapping) else dict.fromkeys(hosts, own_rates)
    if differing := sorted(set(rates) ^ set(hosts)):
        raise BadInput("own_rates", differing[0], f"a rate for each host: {_some(hosts)}")
    for host, rate in rates.items():
        require(f"own_rates.{host}", rate, 0 <= rate <= HIGHEST_RATE, RATE)
    return FailureClocks({host: frozenset(names) for host, names in hosts.items()}, dict(rates), tuple(shocks))


def _at_least(lost: int, hosts: int, probability: float) -> float:
    """P(a shock on `hosts` hosts takes `lost` or more of them): the upper tail of a binomial law."""
    return float(special.betainc(lost, hosts - lost + 1, probability)) if lost <= hosts else 0.0


def _some(names: Collection[str]) -> str:
    """The first names, in order, for a message of one line."""
    shown = sorted(names)[:5]
    return ", ".join(shown) + (", ..." if len(names) > len(shown) else "")
