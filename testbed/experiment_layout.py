"""The partitions that the testbed runs for an experiment, and the slots that may have them."""

from __future__ import annotations

from typing import cast

from experiments.spec import Experiment
from testbed.core.coordinator.placement import Worker
from testbed.core.dataflow.chaining import chained
from testbed.core.dataflow.layout import Layout, lay_out
from testbed.operators import Delivery
from testbed.queries import TestbedWorkload, dataflow


def layout_of(experiment: Experiment) -> Layout:
    """The layout of an experiment with engine `dataflow`."""
    engine, workload = experiment.engine, cast(TestbedWorkload, experiment.workload)  # the spec refuses others
    flow = dataflow(workload, engine.partitions, Delivery.EXACTLY_ONCE)
    return lay_out(chained(flow) if engine.chaining_run else flow)


def domains_of(experiment: Experiment) -> dict[str, tuple[str, ...]]:
    """The failure domains of the workers, without domains that contain all workers: those separate no two workers."""
    known = {name: experiment.fault_spec.hosts.get(name, ()) for name in experiment.worker_names}
    common = set.intersection(*map(set, known.values()))
    return {name: tuple(domain for domain in of if domain not in common) for name, of in known.items()}


def slots_of(experiment: Experiment) -> list[Worker]:
    """The slots of the workers, host by host: those that stand by are the last ones."""
    cores, domains = range(experiment.cluster.worker_cores), domains_of(experiment)
    hosts = [host for host in experiment.worker_names for _ in cores]
    return [Worker(f"slot-{at}", host, frozenset(domains[host])) for at, host in enumerate(hosts)]
