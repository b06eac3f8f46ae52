"""Ends a run by hand: undoes all faults at once, and lets the run's own teardown end it as failed."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

from aftershock.run import ending, lease, step_notes
from aftershock.run.fault_state import Held
from aftershock.run.lease import Lease
from aftershock.run.live_run import ABORTED, LiveRun
from aftershock.run.run_journals import journals
from aftershock.run.step_progress import DEAF_STEPS, LAST
from chaos.events import ABORT_FILE
from experiments.errors import AftershockError, BadInput, EnvironmentFailure
from experiments.wording import counted
from infra.strikes.strike import Proof
from results.runs import store

HEALING_LIMIT_S = 5.0
ABORT = "abort"  # stands for the step while another abort undoes the faults of a run


@dataclass(frozen=True)
class Abortion:
    """What was undone, what could not be, how long that took [s], and the step that still goes on, if one does.

    `step` is "teardown" if the abort came so late that the teardown had begun, and "abort" if another abort goes on:
    then nothing was done.
    """

    run_id: str
    undone: list[Held]
    left: list[Held]
    seconds: float
    step: str | None

    @property
    def came_late(self) -> bool:
        """Whether the run was being torn down or aborted already."""
        return self.step in (LAST, ABORT)

    @property
    def done(self) -> str:
        """What was undone, in words."""
        return f"{counted(len(self.undone), 'fault')} undone in {self.seconds:.1f} s"

    @property
    def rest(self) -> str:
        """What is still to come, in words that end a sentence; empty if nothing is. If it `came_late`, only that."""
        if self.step == LAST:
            return "is being torn down already: there was nothing to abort"
        if self.step == ABORT:
            return "is being aborted already: its faults are being undone"
        if self.step is None:
            return ""
        how = "cannot be interrupted: it ends first" if self.step in DEAF_STEPS else "ends within seconds"
        return f"; {self.step} {how}, then the run is torn down"

    @property
    def outcome(self) -> str:
        """What became of the run, in words that follow its id."""
        left = f", {len(self.left)} left to its teardown" if self.left else ""
        return self.rest if self.came_late else f"was aborted: {self.done}{left}{self.rest}"

    def to_json(self) -> dict[str, Any]:
        """As `aftershock abort --json` prints it."""
        faults = {name: [held._asdict() for held in getattr(self, name)] for name in ("undone", "left")}
        return asdict(self) | faults


def abort(run_id: str) -> Abortion:
    """Abort a live run; raises `BadInput` for any other.

    The injector undoes the faults that are in force, and journals it. If the injector has died, they are undone here.
    The current step ends within seconds if it checks for an abort, otherwise when its work is done. If no process
    works on the run any more, the run is torn down here. A run that is being torn down already is left to that: a heal
    could start a worker after the teardown has looked for the last one. If the abort cannot be noted, the faults are
    undone all the same; then this raises `EnvironmentFailure`, since the run's steps go on.
    """
    live = LiveRun(run_id)
    _require_live(live)
    began = time.monotonic()
    with ending.keeping_teardown_away(run_id) as away:
        if not away:
            return Abortion(run_id, [], [], time.monotonic() - began, _what_ends(live))
        _require_live(live)  # it may have ended before its teardown was kept away
        not_noted = None if live.aborted else _note(live)
        undone, left = _undo_all(live)
    seconds = time.monotonic() - began
    if lease.state_of(store.live_directory(run_id)) is Lease.FREE:
        from aftershock.run import steps  # here, since they take a second to import

        steps.teardown(run_id, ABORTED)
    elif not_noted:
        count = f"{len(undone)} of {len(undone) + len(left)} faults of run {run_id} are undone"
        cause = f"{count}, but its steps go on: the abort cannot be noted"
        raise EnvironmentFailure(f"{cause} ({not_noted.strerror})", "make room on the disk of the run, and abort again")
    return Abortion(run_id, undone, left, seconds, step_notes.current(run_id))


def _require_live(live: LiveRun) -> None:
    if not (live.run.root / "status.json").exists():
        raise BadInput("run_id", live.run_id, f"a live run: {', '.join(store.all_live()) or 'there is none'}")


def _what_ends(live: LiveRun) -> str:
    """What keeps the teardown's lock: the teardown, which notes its begin, or another abort."""
    return ABORT if live.aborted and LAST not in step_notes.read(live.run_id).began_ns else LAST


def _note(live: LiveRun) -> OSError | None:
    """Note that the run is aborted; returns why that is not possible.

    Only the file's name and time are read: on a full disk, which takes no contents, an empty file does.
    """
    path = live.run.raw / ABORT_FILE
    try:
        store.write_json(path, {"at_ns": time.time_ns(), "error": ABORTED})
    except OSError:
        try:
            path.touch()
        except OSError as error:
            return error
    return None


def _undo_all(live: LiveRun) -> tuple[list[Held], list[Held]]:
    """Undo the faults of a run; returns those that are undone, and those that are left."""
    held = _held(live)
    if not live.provisioned:
        return held, []
    live.stop("injector", HEALING_LIMIT_S)
    remaining = _held(live)
    left = _undo(live, remaining)
    return [each for each in dict.fromkeys([*held, *remaining]) if each not in left], left


def _held(live: LiveRun) -> list[Held]:
    with journals(live.run_id) as seen:
        return seen.faults.held


def _undo(live: LiveRun, held: list[Held]) -> list[Held]:
    """Undo faults, all at once; returns those that are left."""

    def heal(fault: Held) -> bool:
        try:
            proof: Proof = live.driver.heal(live.handle, fault.host, fault.kind)
        except (AftershockError, OSError):  # a full disk has no room for a new worker
            return False
        return proof.holds

    with ThreadPoolExecutor(max(len(held), 1)) as pool:
        return [fault for fault, healed in zip(held, pool.map(heal, held), strict=True) if not healed]
