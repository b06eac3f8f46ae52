"""The partitions that the testbed runs for an experiment."""

from __future__ import annotations

from typing import cast

from experiments.spec import Experiment
from testbed.core.dataflow.chaining import chained
from testbed.core.dataflow.layout import Layout, lay_out
from testbed.operators import Delivery
from testbed.queries import TestbedWorkload, dataflow


def layout_of(experiment: Experiment) -> Layout:
    """The layout of an experiment with engine `dataflow`."""
    engine, workload = experiment.engine, cast(TestbedWorkload, experiment.workload)  # the spec refuses others
    flow = dataflow(workload, engine.partitions, Delivery.EXACTLY_ONCE)
    return lay_out(chained(flow) if engine.chaining_run else flow)
