"""The progress of a run in its measurement window, in one line."""

from __future__ import annotations

import time
from dataclasses import dataclass

from aftershock.run.fault_state import FaultState
from aftershock.run.live_run import LiveRun
from aftershock.run.run_journals import journals
from chaos.fault_plan import FaultPlan

RUNNING_SERVICES = {"broker", "spark-master", "query", "generator"}


@dataclass(frozen=True)
class Progress:
    """`line` is for a person; `left_s` [s] is what is left of the window; `error` is why the run cannot go on."""

    line: str
    left_s: float
    error: str | None

    @property
    def ended(self) -> bool:
        """Whether the measurement window is over."""
        return not self.left_s


def progress(run_id: str) -> Progress:
    """Look at a run's journals and services; cheap, and safe to call from anywhere at any time.

    A second call in the same process reads only what was added to the journals since the first.
    """
    live = LiveRun(run_id)
    plan = live.armed_plan
    now_ns = time.time_ns()
    elapsed_ns = min(now_ns, plan.window_end_ns) - plan.window_start_ns
    failure = live.aborted or live.dead_injector() or live.dead_service(RUNNING_SERVICES)
    clock = f"{max(elapsed_ns, 0) / 1e9:4.0f} s of {live.experiment.window_s:.0f} s"
    with journals(run_id) as seen:
        line = f"{clock} | {seen.query.pace} | {_told(seen.faults, plan)}"
    return Progress(line, max(plan.window_end_ns - now_ns, 0) / 1e9, str(failure) if failure else None)


def _told(faults: FaultState, plan: FaultPlan) -> str:
    return f"{faults.injected} of {plan.strikes} strikes, {faults.healed} undone"
