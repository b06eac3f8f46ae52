"""The steps of a run, in order. Each finds the run by its id and writes its outcome into the run's directory.

They know nothing of Airflow. An `AftershockError` that a step raises is noted in the run, so that the teardown
publishes the run as failed with that line and exit code.
"""

from __future__ import annotations

import functools
import logging
import os
import secrets
import shutil
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from aftershock.run import admission, batch_job, derive, ending, room, step_notes, sustainable
from aftershock.run.engines.engine import CALIBRATION_FILE, calibration_path, read_calibration
from aftershock.run.listed_domains import require_unchanged
from aftershock.run.live_run import LiveRun
from aftershock.run.machine_load import about_the_machine
from aftershock.run.run_journals import journals
from chaos.fault_plan import FaultPlan
from chaos.plan import faults_of
from experiments import spec
from experiments.errors import AftershockError, BadInput, EnvironmentFailure
from experiments.loads import FULL_BATCHES
from experiments.spec import LoadMode
from experiments.wording import significant, told_apart
from infra.external import topics as borrowed_topics
from infra.services import kafka
from infra.services.spark import EVENT_LOG
from journal.event import Event
from journal.events.injector import Armed, StandingBy
from journal.events.query import QueryReady
from journal.events.testbed import EpochReady
from results.runs import step_times, store
from results.runs.machine import experiment_digest, machine_class
from results.runs.machine_speed import machine_speed
from results.runs.state import RunState
from results.runs.store import RunStatus
from results.runs.versions import versions
from results.tables.schema import SCHEMA_VERSION
from spark_jobs.calibration import Calibration
from workloads.schedule import Schedule
from workloads.sending.load_config import LOAD_FILE, LoadConfig
from workloads.topics import CALIBRATION_TOPICS, FULL, TENTATIVE_OUTPUT

log = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")
ONE_PROCESS = "AFTERSHOCK_ONE_PROCESS"  # a variable, set where one process carries out all steps of a run
QUERY_SERVICES = {"broker", "spark-master", "query"}
HEADSTART_INTERVALS = 2.0
CALIBRATED_INTERVALS = FULL_BATCHES * len(FULL)  # at most: each of these batches fills an interval
WARM_COMMITS = 1  # of a query that has been calibrated: the first batch is as fast as those that follow
# A service that ends is noticed at once. These limits are for one that hangs, and a slow machine must not reach them:
# if something else runs on its two cores, a batch may take more than a minute, and a calibration five. They are without
# the checkpoint intervals that pass meanwhile.
CALIBRATION_LIMIT_S, STEADY_LIMIT_S, ARMING_LIMIT_S, LAST_BATCH_LIMIT_S = 900.0, 900.0, 60.0, 300.0
USUAL_START_S = 20.0  # where nothing else runs on two cores


def step(function: Callable[P, R]) -> Callable[P, R]:
    """Note an error in the run's directory before it goes on its way; a run that was aborted begins no further step."""

    @functools.wraps(function)
    def noted(*args: P.args, **kwargs: P.kwargs) -> R:
        live = LiveRun(str(args[0]))
        try:
            if aborted := live.aborted:
                raise aborted
            with step_notes.going_on(live.run_id, function.__name__):
                return function(*args, **kwargs)
        except AftershockError as error:
            if live.run.root.is_dir():  # a run that was torn down meanwhile gets no new directory, which nobody removes
                failure = {"step": function.__name__, "error": str(error), "exit_code": error.exit_code}
                store.write_json(ending.failure_path(live.run_id), failure)
            raise

    return noted


def begin(
    document: dict[str, Any], run_id: str | None = None, dag_run: str | None = None, attempt: int | None = None
) -> str:
    """Validate an experiment document and open a run for it, on behalf of a try of `dag_run`; returns the run id."""
    experiment = admission.as_it_runs(spec.validate(document))
    run_id = new_run_id(experiment) if run_id in (None, "") else store.check_run_id(run_id)
    live = LiveRun(run_id)
    ran = experiment.model_copy(update={"engine": experiment.engine.filled_in})  # a later version may decide otherwise
    _open_for(run_id)
    try:
        live.run.raw.mkdir(parents=True)
        store.write_json(live.run.experiment_path, ran.model_dump(mode="json"))
        store.write_json(live.run.root / "status.json", _status(run_id, experiment, dag_run, attempt).to_json())
    except BaseException:
        store.discard(store.live_directory(run_id))  # no teardown would learn of it
        raise
    for warning in room.warnings(experiment.cluster):
        log.warning("%s", warning)
    return run_id


def _open_for(run_id: str) -> None:
    """Make the live directory of a run; only its user may enter, since the token of its cluster is in there."""
    folder = store.live_directory(run_id)
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        if store.is_finished(run_id):
            raise FileExistsError
        folder.mkdir(mode=0o700)
    except FileExistsError:
        raise BadInput("run_id", run_id, "an id that no other run has") from None


def new_run_id(experiment: spec.Experiment) -> str:
    """A new id: the experiment's name, the time (UTC), and four random hexadecimal digits."""
    return f"{experiment.name}-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


@step
def provision(run_id: str) -> dict[str, Any]:
    """Create the hosts with broker, Spark master and workers; returns the handle."""
    live = LiveRun(run_id)
    workers = live.experiment.cluster.workers
    log.info("creating 1 gateway and %d workers (driver %s)", workers, live.experiment.cluster.driver)
    with step_notes.waiting(run_id) as tell:
        handle = live.driver.provision(live.experiment.cluster, run_id, live.root, tell)
    shutil.copy(live.root / "handle.json", live.run.raw)
    require_unchanged(live.experiment, handle)
    log.info("broker %s, Spark master %s, %d workers joined", handle.broker, handle.master, workers)
    return handle.to_json()


@step
def deploy(run_id: str) -> None:
    """Create the topics and start the query; under a saturating load it first measures its own service rate."""
    live = LiveRun(run_id)
    experiment, partitions = live.experiment, live.experiment.engine.partitions
    topics = (*experiment.workload.input_topics, *filter(None, [experiment.workload.output_topic]))
    if experiment.engine.tentative_run:
        topics += (TENTATIVE_OUTPUT,)
    topics += CALIBRATION_TOPICS
    if live.handle.is_borrowed:
        borrowed_topics.create(live.handle, dict.fromkeys(topics, partitions))
    else:
        kafka.create_topics(live.handle.kafka, dict.fromkeys(topics, partitions))
    (live.run.raw / EVENT_LOG).mkdir(exist_ok=True)
    submit = live.engine.submission(live.handle, live.run)
    live.spawn_module("query", "infra.services.supervisor", live.journal_path("supervisor"), *submit)
    if experiment.load.mode is LoadMode.SATURATING:
        path = calibration_path(live.handle)
        _await_calibration(live, path)
        calibration = read_calibration(path)
        _check_calibration(experiment, calibration)
        store.write_json(live.run.raw / path.name, calibration.to_json())
    is_ready = functools.partial(_query_reported, live, QueryReady, EpochReady)
    live.wait("the query to start", is_ready, QUERY_SERVICES, CALIBRATION_LIMIT_S, USUAL_START_S)


def _await_calibration(live: LiveRun, path: Path) -> None:
    limit_s = CALIBRATION_LIMIT_S + CALIBRATED_INTERVALS * live.experiment.engine.checkpoint_interval_s
    usual_s = step_times.calibration_s(live.experiment)
    live.wait("the calibration of the query", path.exists, QUERY_SERVICES, limit_s, usual_s)


def _check_calibration(experiment: spec.Experiment, calibration: Calibration) -> None:
    interval_s, cost_s = experiment.engine.checkpoint_interval_s, calibration.overhead_s
    log.info("service rate %s records/s, %s s a checkpoint", *map(significant, (calibration.service_rate, cost_s)))
    if interval_s <= cost_s:
        allowed = f"more than the checkpoint cost, {told_apart(cost_s, interval_s)[0]} s as measured here"
        raise BadInput("engine.checkpoint_interval_s", interval_s, allowed)


@step
def start_load(run_id: str) -> None:
    """Start the generator, with a search for its rate if that is wanted, and wait until the query runs steadily."""
    live = LiveRun(run_id)
    engine, load = live.experiment.engine, live.experiment.load
    saturating = load.mode is LoadMode.SATURATING
    rate = read_calibration(live.run.raw / CALIBRATION_FILE).load_rate if saturating else load.rate
    headstart_ns = round(HEADSTART_INTERVALS * engine.checkpoint_interval_s * 1e9) if saturating else 0
    schedule = Schedule(time.time_ns() - headstart_ns, rate, engine.partitions)
    config = LoadConfig(live.handle.kafka, live.engine.workload_on(live.handle), schedule, load.batch_records)
    path = live.orders / LOAD_FILE
    store.write_json(path, config.to_json())
    log.info("load: %s records/s (%s)", significant(rate), load.mode.value)
    live.spawn_module("generator", "workloads.sending.generator", path, live.journal_path("generator"))
    live.spawn_module("sampler", "infra.sampler", live.root, live.journal_path("hosts"))
    _await_commits(live, WARM_COMMITS if saturating else step_times.STEADY_COMMITS, 0)
    if load.mode is LoadMode.SUSTAINABLE:
        _await_commits(live, step_times.STEADY_COMMITS, sustainable.find(live, schedule))


def _await_commits(live: LiveRun, count: int, since_ns: int) -> None:
    """Wait until the query has committed so often that it runs steadily."""
    services = QUERY_SERVICES | {"generator"}
    what, usual_s = "the query to run steadily", count * live.experiment.engine.checkpoint_interval_s
    live.wait(what, lambda: _commits(live, since_ns) >= count, services, STEADY_LIMIT_S + usual_s, usual_s)


@step
def arm_faults(run_id: str) -> dict[str, int]:
    """Draw the fault plan, hand it to the injector, and open the measurement window."""
    live = LiveRun(run_id)
    events = tuple(faults_of(live.experiment))
    path = live.plan_path
    live.spawn_module("injector", "chaos.injector", live.root, path, live.journal_path("injector"))
    live.wait("the injector", lambda: _injector_reported(live, StandingBy), {"injector"}, ARMING_LIMIT_S)
    start_ns = time.time_ns() + round(step_times.LEAD_S * 1e9)
    end_ns = start_ns + round(live.experiment.window_s * 1e9)
    armed = FaultPlan(start_ns, end_ns, events, live.experiment.faults.max_down)
    store.write_json(path, armed.to_json())
    log.info("%d faults planned in a window of %.0f s", len(events), live.experiment.window_s)
    live.wait("the faults to be prepared", lambda: _injector_reported(live, Armed), {"injector"}, ARMING_LIMIT_S)
    if time.time_ns() > start_ns:
        raise EnvironmentFailure(
            "the injector was not ready when the window opened", "run again on a less busy machine"
        )
    return {"window_start_ns": start_ns, "window_end_ns": end_ns}


@step
def stop(run_id: str) -> None:
    """Let the query commit once more after the window, then end injector, generator and query.

    The testbed also brings out all that it has read, so that its output can be judged whole. Once nothing more is
    measured, the batch job starts beside the services that end.
    """
    live = LiveRun(run_id)
    with step_notes.waiting(run_id, "the injector to heal what is still struck"):
        live.stop("injector", live.driver.healing_limit_s(live.handle))
    if failure := live.dead_injector():
        raise failure
    end_ns = live.armed_plan.window_end_ns
    interval_s = live.experiment.engine.checkpoint_interval_s
    limit_s = LAST_BATCH_LIMIT_S + 2 * interval_s
    live.wait("the last batch of the window", lambda: _commits(live, end_ns) > 0, QUERY_SERVICES, limit_s, interval_s)
    if drained := live.engine.drain(live.handle):
        live.wait("the last results", lambda: _query_reported(live, drained), QUERY_SERVICES, limit_s)
    batch_job.start(live.run, live.handle)
    for service, grace_s in (("generator", 15.0), ("query", 30.0), ("sampler", 0.0)):
        with step_notes.waiting(run_id, f"the {service} to end"):
            live.stop(service, grace_s)
    live.refuse_losses()
    store.write_json(live.run.root / "status.json", live.run.status().to_json() | about_the_machine(live))


@step
def collect(run_id: str) -> None:
    """Save what the broker holds: input and output; and the exact output, by the oracle."""
    live = LiveRun(run_id)
    broker = live.handle.kafka
    exact = ", and computes the exact output" if live.experiment.workload.has_oracle else ""
    with step_notes.waiting(run_id, f"the Spark job that saves input and output{exact}"):
        batch_job.carry_out("archive", live.run, broker.address, str(broker.credentials), owner=live.handle)


@step
def tabulate(run_id: str) -> None:
    """Turn the raw logs into the result tables, by a Spark batch job; a process that goes on loads the next steps."""
    live = LiveRun(run_id)
    if os.environ.get(ONE_PROCESS):
        threading.Thread(target=derive.load, daemon=True).start()
    with step_notes.waiting(run_id, "the Spark job that writes the result tables"):
        derive.tabulate(live.run, live.handle)


@step
def predict(run_id: str) -> None:
    """Write what the models predict from the parameters measured in the run."""
    derive.predict(LiveRun(run_id).run, LiveRun(run_id).experiment)


@step
def validate(run_id: str) -> None:
    """Evaluate every check on the tables."""
    derive.validate(LiveRun(run_id).run, LiveRun(run_id).experiment)


@step
def report(run_id: str) -> None:
    """Write the plots and the report page."""
    derive.report(LiveRun(run_id).run, LiveRun(run_id).experiment)


def teardown(run_id: str, error: str | None = None) -> str | None:
    """Destroy the cluster and publish the run as done, or as failed with its partial logs.

    Returns the state; None for a run that never began. It may be called again if an earlier call was interrupted.
    """
    return ending.tear_down(run_id, error)


def _status(run_id: str, experiment: spec.Experiment, dag_run: str | None, attempt: int | None) -> RunStatus:
    return RunStatus(
        run_id=run_id,
        experiment=experiment.name,
        experiment_digest=experiment_digest(experiment),
        machine=machine_class(),
        machine_speed=round(machine_speed(), 2),
        versions=versions(),
        state=RunState.RUNNING,
        dag_run=dag_run,
        attempt=attempt,
        schema_version=SCHEMA_VERSION,
        started_ns=time.time_ns(),
        ended_ns=None,
        error=None,
        exit_code=None,
    )


def _query_reported(live: LiveRun, *kinds: type[Event]) -> bool:
    with journals(live.run_id) as seen:
        return not seen.query.kinds.isdisjoint(kinds)


def _injector_reported(live: LiveRun, kind: type[Event]) -> bool:
    with journals(live.run_id) as seen:
        return kind in seen.faults.kinds


def _commits(live: LiveRun, after_ns: int) -> int:
    """How often the query has committed something since."""
    with journals(live.run_id) as seen:
        return seen.query.commits.since(after_ns)
