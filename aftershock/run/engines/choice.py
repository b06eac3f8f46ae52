"""Chooses the engine that executes the query of an experiment."""

from __future__ import annotations

from aftershock.run.engines.dataflow import DataflowEngine
from aftershock.run.engines.engine import Engine
from aftershock.run.engines.structured_streaming import StructuredStreaming
from experiments.engines import EngineName
from experiments.spec import Experiment
from experiments.workloads.catalogue import OwnJobSpec


def engine_of(experiment: Experiment) -> Engine:
    """The engine of the experiment's query; an own job runs on Structured Streaming in a way of its own.

    What an own job needs is imported when there is one: with it comes PySpark, which pages and triggers do without.
    """
    if isinstance(experiment.workload, OwnJobSpec):
        from aftershock.run.engines.own_job import OwnJob

        return OwnJob(experiment, experiment.workload)
    match experiment.engine.name:
        case EngineName.STRUCTURED_STREAMING:
            return StructuredStreaming(experiment)
        case EngineName.DATAFLOW:
            return DataflowEngine(experiment)
