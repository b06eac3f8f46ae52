"""The live run: its files, its experiment and cluster, and how a step waits for an event on the cluster."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import isinf
from pathlib import Path

from aftershock.run import step_notes
from aftershock.run.engines.choice import engine_of
from aftershock.run.engines.engine import Engine
from aftershock.run.run_journals import journals
from chaos.events import ABORT_FILE
from chaos.fault_plan import PLAN_FILE, FaultPlan
from experiments import spec
from experiments.documents.plain_files import read_end
from experiments.errors import AftershockError, EnvironmentFailure
from experiments.waiting import Deadline
from infra.cluster import HANDLE_FILE, Driver, Handle
from infra.drivers import driver_of
from journal.events.common import FAILURES
from journal.reader import events, losses
from results.runs import store

log = logging.getLogger(__name__)
ABORTED = "aborted by hand"
POLL_S = 0.5
LINE_EVERY_S = 10.0
# What reading the files of a run can raise that is damaged, or torn down meanwhile, besides errors of our own.
UNREADABLE = (OSError, LookupError, TypeError, ValueError, AttributeError)


@dataclass(frozen=True)
class LiveRun:
    """One live run. Each step makes its own object from the run's id, since steps run in different processes."""

    run_id: str

    @property
    def root(self) -> Path:
        """The cluster's root: hosts, checkpoints and the handle."""
        return store.live_directory(self.run_id) / "cluster"

    @property
    def run(self) -> store.Run:
        """The run's directory, as the run store knows it."""
        return store.live(self.run_id)

    @cached_property
    def experiment(self) -> spec.Experiment:
        """The experiment that is run; raises `BadInput` for a document that is none."""
        return spec.validate(store.read_json(self.run.experiment_path))

    @cached_property
    def driver(self) -> Driver:
        """The driver of the experiment's cluster."""
        return driver_of(self.experiment.cluster.driver)

    @cached_property
    def engine(self) -> Engine:
        """The engine that executes the experiment's query."""
        return engine_of(self.experiment)

    @property
    def began(self) -> bool:
        """Whether there is a run to publish: it has a status or a cluster."""
        return self.provisioned or (self.run.root / "status.json").exists()

    @property
    def provisioned(self) -> bool:
        """Whether the cluster has a handle file, even a damaged one."""
        return os.path.lexists(self.root / HANDLE_FILE)

    @cached_property
    def handle(self) -> Handle:
        """The cluster's handle; raises `EnvironmentFailure` if the file is damaged."""
        return Handle.load(self.root)

    @property
    def gateway(self) -> Path:
        """The gateway's directory, which its services write."""
        return self.handle.directory(self.handle.gateway.name)

    @property
    def orders(self) -> Path:
        """Where the gateway's services find their configuration."""
        return self.handle.orders

    def journal_path(self, name: str) -> Path:
        """The file of a journal of this run."""
        return self.run.journal_path(name)

    def refuse_losses(self) -> None:
        """Raises `EnvironmentFailure` if a journal lacks entries, because measurements from it would be wrong."""
        for path in sorted(self.run.raw.glob("*.jsonl")):
            count, why = losses(path)
            if count:
                lack = f"{path.name} lacks {count} entries, which could not be written ({why})"
                raise EnvironmentFailure(lack, "if the disk of the run is full, make room; then run again")

    def spawn_module(self, service: str, module: str, *arguments: Path | str) -> None:
        """Start a Python module of this project as a service on the gateway, unless it runs already."""
        if service not in self.running():
            command = [sys.executable, "-m", module, *map(str, arguments)]
            self.driver.spawn(self.handle, self.handle.gateway.name, service, command)

    def stop(self, service: str, limit_s: float) -> None:
        """Stop a service of the gateway; it is killed after `limit_s`."""
        self.driver.stop(self.handle, self.handle.gateway.name, service, limit_s)

    @property
    def aborted(self) -> AftershockError | None:
        """The error that ends the run if a user has aborted it, else None."""
        return None if self.aborted_ns is None else AftershockError(ABORTED)

    @property
    def aborted_ns(self) -> int | None:
        """When a user aborted the run [ns UTC], if so."""
        try:
            return (self.run.raw / ABORT_FILE).stat().st_mtime_ns
        except FileNotFoundError:
            return None

    @property
    def plan_path(self) -> Path:
        """Where the injector finds its plan."""
        return self.run.raw / PLAN_FILE

    @property
    def plan(self) -> FaultPlan | None:
        """The fault plan as the injector got it; None before that."""
        return self.armed_plan if self.plan_path.exists() else None

    @property
    def armed_plan(self) -> FaultPlan:
        """The fault plan of a run whose window is known; raises `FileNotFoundError` before that."""
        return FaultPlan.from_json(store.read_json(self.plan_path))

    def dead_service(self, expected: set[str]) -> EnvironmentFailure | None:
        """The failure to raise if one of these gateway services has died and no fault holds it down, else None."""
        missing = sorted(expected - self.handle.owners_services - self.running())
        if missing:
            with journals(self.run_id) as seen:
                held = seen.faults.held_services(time.time_ns())
            missing = [service for service in missing if service not in held]
        if not missing:
            return None
        name = f"{missing[0]}.log"
        why = self._exit_reason(missing[0]) or complaint(self.gateway, f"logs/{name}")
        return EnvironmentFailure(f"{missing[0]} on the gateway died ({why})", f"see {name} of the run")

    def _exit_reason(self, service: str) -> str | None:
        """The error that a service wrote to its journal; the first one if it was restarted."""
        return next((failed.error for failed in events(self.journal_path(service), FAILURES)), None)

    def running(self) -> set[str]:
        """Names of the gateway's services that have a live process."""
        return self.driver.running(self.handle, self.handle.gateway.name)

    def dead_injector(self) -> EnvironmentFailure | None:
        """The failure to raise if the injector failed or died, else None."""
        running = "injector" in self.running()
        with journals(self.run_id) as seen:
            return seen.faults.failure(running=running)

    def wait(
        self, what: str, met: Callable[[], bool], services: set[str], limit_s: float, usual_s: float | None = None
    ) -> None:
        """Wait until `met()` is true, and log progress. Raises an `AftershockError` if the run is aborted, if one of
        `services` dies, or after `limit_s`.

        what     what is awaited, for the log, the error and the live page
        usual_s  how long this usually takes [s], for the log
        """
        began_s, given_up, next_line = time.monotonic(), Deadline(limit_s), Deadline(LINE_EVERY_S)
        with step_notes.waiting(self.run_id, what, usual_s):
            while not met():
                if failure := self.aborted or self.dead_service(services):
                    if met() and not self.aborted:
                        return  # it has ended right after the awaited event, as an injector without faults does
                    raise failure
                if given_up.passed:
                    cause = f"still waiting for {what} after {limit_s:.0f} s"
                    raise EnvironmentFailure(cause, "see the logs of the run")
                if next_line.passed:
                    next_line, waited_s = Deadline(LINE_EVERY_S), time.monotonic() - began_s
                    log.info("waiting for %s (%.0f s%s)", what, waited_s, expectation(usual_s, limit_s))
                time.sleep(POLL_S)


def expectation(usual_s: float | None, limit_s: float) -> str:
    """The part of a progress line that says how long a wait usually takes, and when it is given up."""
    usual = "" if usual_s is None else f"; usually about {usual_s:.0f} s"
    return usual + ("" if isinf(limit_s) else f"; given up after {limit_s:.0f} s")


def complaint(root: Path, path: str) -> str:
    """The last line of a log below `root` that names an error, or else its last line.

    Programs on a host may have replaced the log by something else, such as a link. Then the refusal to read it is
    returned instead.
    """
    try:
        text = read_end(root, path, root.lstat().st_uid).decode(errors="replace")
    except FileNotFoundError:
        text = ""
    except EnvironmentFailure as refusal:
        return refusal.cause
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "Error" in line or "Exception" in line]
    return (errors or lines or ["no output"])[-1][:300]
