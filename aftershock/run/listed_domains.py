"""The failure domains of an existing cluster, as its user's command lists them when a run begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from experiments.errors import BadInput, EnvironmentFailure
from experiments.spec import Experiment
from infra.cluster import Handle
from infra.drivers import driver_of
from infra.external.borrowed import Borrowing
from infra.external.driver import ExternalDriver


def with_listed_domains(experiment: Experiment) -> Experiment:
    """The experiment with the listed domains as its faults' if it names none; of any other driver as it is.

    Raises `BadInput` for a host that is listed in another domain than the experiment names.
    """
    driver = driver_of(experiment.cluster.driver)
    if not isinstance(driver, ExternalDriver):
        return experiment
    listed, given = driver.domains(experiment.cluster), experiment.faults.hosts
    for host in _elsewhere(listed, given):
        raise BadInput(f"faults.hosts.{host}", list(given[host]), f"{listed[host][0]}, where list_hosts has this host")
    if given:
        return experiment
    return experiment.model_copy(update={"faults": experiment.faults.model_copy(update={"hosts": listed})})


def require_unchanged(experiment: Experiment, handle: Handle) -> None:
    """Raise `EnvironmentFailure` if a host that a run has borrowed is in another domain than its experiment has.

    The list may have changed since the run began: then faults of a domain would strike hosts of several.
    """
    if not handle.is_borrowed:
        return
    listed = Borrowing(handle).known.domains
    for host in _elsewhere(listed, experiment.faults.hosts):
        cause = f"{Borrowing(handle).called(host)} is listed in domain {listed[host][0]}, and was in another one before"
        raise EnvironmentFailure(cause, "run again, and keep the order of list_hosts meanwhile")


def _elsewhere(listed: Mapping[str, Sequence[str]], given: Mapping[str, Sequence[str]]) -> list[str]:
    """The hosts that are listed in a domain that they are not given."""
    return [host for host, domains in listed.items() if given.get(host) and not set(domains) <= set(given[host])]
