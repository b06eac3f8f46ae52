"""Decides before a run begins whether this machine can carry it out: whatever is certain to end it is refused."""

from __future__ import annotations

import time
from itertools import islice

from aftershock.run import room
from aftershock.run.engines.choice import engine_of
from aftershock.run.listed_domains import with_listed_domains
from chaos.fault_plan import FaultPlan
from chaos.plan import faults_of
from experiments.errors import BadInput
from experiments.spec import Experiment
from experiments.wording import exact
from infra.cluster import Driver
from infra.drivers import driver_of
from infra.services.jars import ensure_jars
from infra.services.jvm import find_java
from results.runs import json_files
from workloads.inputs import streams
from workloads.schedule import Schedule

LEAST_BYTES_OF_A_FAULT = 100  # as JSON, in a plan


def as_it_runs(experiment: Experiment) -> Experiment:
    """The experiment with the failure domains that an existing cluster lists; raises what refuses its run."""
    check(experiment)
    listed = with_listed_domains(experiment)
    if listed is not experiment:
        engine_of(listed).check()  # copies keep out of the listed domains of their primaries, too
    return listed


def check(experiment: Experiment) -> None:
    """Raise `BadInput` or `EnvironmentFailure` for what this machine cannot run of it.

    It touches nothing, except that it downloads the jars if this user has none.
    """
    driver = driver_of(experiment.cluster.driver)
    driver.check(experiment.cluster)
    room.check(experiment.cluster)
    _refuse_an_interval_beyond_the_window(experiment)
    _refuse_what_cannot_be_read(experiment)
    _refuse_what_cannot_be_injected(experiment, driver)
    engine_of(experiment).check()
    streams(experiment.workload, Schedule(time.time_ns(), experiment.load.rate))
    find_java()
    room.require_disk()
    ensure_jars()


def _refuse_an_interval_beyond_the_window(experiment: Experiment) -> None:
    """Raise `BadInput` if not one checkpoint interval fits in the window: no cost of checkpoints could be measured.

    It is no part of the experiment's own validation, so that a run that was made with such an interval can be read.
    """
    interval_s, window_s = experiment.engine.checkpoint_interval_s, experiment.window_s
    if interval_s > window_s:
        allowed = f"at most window_s, {exact(window_s)} s: a window holds one checkpoint interval or more"
        raise BadInput("engine.checkpoint_interval_s", interval_s, allowed)


def _refuse_what_cannot_be_read(experiment: Experiment) -> None:
    """Raise `BadInput` for an experiment, or a fault plan, that no step could read again: only many faults do that."""
    most = json_files.MOST_BYTES
    size, count = json_files.size_of(experiment.model_dump(mode="json")), len(experiment.faults.events)
    if size > most:
        allowed = f"fewer: with them the experiment has {size:,} bytes as JSON, and may have {most:,}"
        raise BadInput("faults", f"{count:,} listed faults", allowed)
    events, now_ns = tuple(islice(faults_of(experiment), most // LEAST_BYTES_OF_A_FAULT)), time.time_ns()
    if json_files.size_of(FaultPlan(now_ns, now_ns, events).to_json()) > most:
        allowed = f"rates and a window that make fewer: as JSON, a fault plan may have {most:,} bytes"
        raise BadInput("faults", f"{len(events):,} faults or more", allowed)


def _refuse_what_cannot_be_injected(experiment: Experiment, driver: Driver) -> None:
    """Raise `BadInput` for the first fault that the driver cannot inject: now, not when it is due."""
    for field in ("processes", "events", "bursts"):
        for index, fault in enumerate(getattr(experiment.faults, field)):
            if allowed := driver.refusal(experiment.cluster, fault.kind, fault.options):
                raise BadInput(f"faults.{field}.{index}.kind", fault.kind.value, allowed)
