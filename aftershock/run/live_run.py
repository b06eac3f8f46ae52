"""The live run: where its files are, what it runs, and how a step waits for something on its cluster."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from math import isinf
from pathlib import Path
from typing import Any

from aftershock.run.run_journals import journals
from chaos.events import ABORT_FILE
from experiments import spec
from experiments.errors import AftershockError, EnvironmentFailure
from experiments.plain_files import read_end
from infra.cluster import HANDLE_FILE, Driver, Handle
from infra.drivers import driver_of
from journal.reader import entries, losses
from results.runs import store

log = logging.getLogger(__name__)
ABORTED = "aborted by hand"
POLL_S = 0.5
LINE_EVERY_S = 10.0


@dataclass(frozen=True)
class LiveRun:
    """One live run, found again by its id in every step."""

    run_id: str

    @property
    def root(self) -> Path:
        """The cluster's root: hosts, checkpoints and the handle."""
        return store.live_directory(self.run_id) / "cluster"

    @property
    def run(self) -> store.Run:
        return store.live(self.run_id)

    @cached_property
    def experiment(self) -> spec.Experiment:
        return spec.validate(store.read_json(self.run.experiment_path))

    @cached_property
    def driver(self) -> Driver:
        return driver_of(self.experiment.cluster.driver)

    @property
    def began(self) -> bool:
        """Whether there is a run to publish; one that was killed before its status was written has done nothing."""
        return self.provisioned or (self.run.root / "status.json").exists()

    @property
    def provisioned(self) -> bool:
        """Whether the cluster has a handle, of whatever kind it may be."""
        return os.path.lexists(self.root / HANDLE_FILE)

    @cached_property
    def handle(self) -> Handle:
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
        return self.run.journal_path(name)

    def refuse_losses(self) -> None:
        """Raises `EnvironmentFailure` if a journal is not whole: what is measured from it would be wrong."""
        for path in sorted(self.run.raw.glob("*.jsonl")):
            count, why = losses(path)
            if count:
                lack = f"{path.name} lacks {count} entries, which the disk did not take ({why})"
                raise EnvironmentFailure(lack, "make room on the disk of the run, and run again")

    def spawn_module(self, service: str, module: str, *arguments: Path | str) -> None:
        """Start a module of ours as a service on the gateway, unless it runs already."""
        if service not in self.running():
            command = [sys.executable, "-m", module, *map(str, arguments)]
            self.driver.spawn(self.handle, self.handle.gateway.name, service, command)

    def stop(self, service: str, limit_s: float) -> None:
        self.driver.stop(self.handle, self.handle.gateway.name, service, limit_s)

    @property
    def aborted(self) -> AftershockError | None:
        """What ends the run, if someone has aborted it."""
        return AftershockError(ABORTED) if (self.run.raw / ABORT_FILE).exists() else None

    @property
    def step(self) -> str | None:
        """The step that is going on, if one is; one whose process was killed counts until the next begins."""
        try:
            return store.read_json(self._step_path)["step"]
        except FileNotFoundError:
            return None

    @contextmanager
    def going_on(self, step: str) -> Iterator[None]:
        """Within, a step of the run is going on; nothing is noted of a run that never began."""
        if self.run.root.exists():
            store.write_json(self._step_path, {"step": step})
        try:
            yield
        finally:
            self._step_path.unlink(missing_ok=True)

    @property
    def _step_path(self) -> Path:
        return store.live_directory(self.run_id) / "step.json"

    @property
    def plan(self) -> dict[str, Any]:
        """What the injector was given; empty before it was."""
        path = self.run.raw / "plan.json"
        return store.read_json(path) if path.exists() else {}

    def dead_service(self, expected: set[str]) -> EnvironmentFailure | None:
        """Why the run cannot go on, if one of these services of the gateway has died and no fault is to blame."""
        missing = sorted(expected - self.running())
        if missing:
            with journals(self.run_id) as seen:
                held = seen.faults.held_services(time.time_ns())
            missing = [service for service in missing if service not in held]
        if not missing:
            return None
        name = f"{missing[0]}.log"
        why = self._last_words(missing[0]) or complaint(self.gateway, f"logs/{name}")
        return EnvironmentFailure(f"{missing[0]} on the gateway died ({why})", f"see {name} of the run")

    def _last_words(self, service: str) -> str | None:
        """Why a service gave up, if it told its journal; of several lives the first, from which the others follow."""
        told = entries(self.journal_path(service))
        return next((str(entry["error"]) for entry in told if entry["event"] == "failed" and "error" in entry), None)

    def running(self) -> set[str]:
        """The services of the gateway that run."""
        return self.driver.running(self.handle, self.handle.gateway.name)

    def dead_injector(self) -> EnvironmentFailure | None:
        """Why faults are not injected as planned, if so."""
        running = "injector" in self.running()
        with journals(self.run_id) as seen:
            return seen.faults.failure(running=running)

    def wait(
        self, what: str, met: Callable[[], bool], services: set[str], limit_s: float, usual_s: float | None = None
    ) -> None:
        """Wait until `met()`, with a line of progress now and then; raises an `AftershockError` when it cannot come.

        limit_s    after which it is given up
        usual_s    about how long it takes where nothing disturbs it, if that is known
        """
        started = last_line = time.monotonic()
        while not met():
            if failure := self.aborted or self.dead_service(services):
                if met() and not self.aborted:
                    return  # a service may end right after what was waited for, as an injector without faults does
                raise failure
            now = time.monotonic()
            if now - started > limit_s:
                raise EnvironmentFailure(f"still waiting for {what} after {limit_s:.0f} s", "see the logs of the run")
            if now - last_line > LINE_EVERY_S:
                last_line = now
                log.info("waiting for %s (%.0f s%s)", what, now - started, expectation(usual_s, limit_s))
            time.sleep(POLL_S)


def expectation(usual_s: float | None, limit_s: float) -> str:
    """How long a wait may take, in words that follow how long it has taken so far."""
    usual = "" if usual_s is None else f"; usually about {usual_s:.0f} s"
    return usual + ("" if isinf(limit_s) else f"; given up after {limit_s:.0f} s")


def complaint(root: Path, path: str) -> str:
    """The last line of a log below `root` that names an error, or else its last line; it may not belong to another.

    What runs on a host may have put anything in the log's place: that is told instead, and not read.
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
