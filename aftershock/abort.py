"""Ends a run by hand: what faults hold is undone at once, and the run ends as failed, by its own teardown."""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from aftershock import lease
from aftershock.bench import ABORTED, Bench
from aftershock.lease import Lease
from chaos.events import ABORT_FILE, STRIKING
from experiments.errors import AftershockError, BadInput
from experiments.fault_kinds import FaultKind
from infra.strikes.strike import Proof
from results import store

HEALING_LIMIT_S = 5.0
DEAF_STEPS = frozenset({"provision", "collect", "tabulate", "predict", "validate", "report"})  # wait, and look, nowhere


class Held(NamedTuple):
    """A host, or the gateway for one of its services, and the kind of the fault that holds it."""

    host: str
    kind: FaultKind


@dataclass(frozen=True)
class Abortion:
    """What was undone, what could not be, how long that took [s], and the step that still goes on, if one does."""

    run_id: str
    undone: list[Held]
    left: list[Held]
    seconds: float
    step: str | None

    @property
    def done(self) -> str:
        """What was undone, in words."""
        count = len(self.undone)
        return f"{count} fault{'' if count == 1 else 's'} undone in {self.seconds:.1f} s"

    @property
    def rest(self) -> str:
        """What is still to come, in words that end a sentence; empty if nothing is."""
        if self.step is None:
            return ""
        how = "cannot be interrupted: it ends first" if self.step in DEAF_STEPS else "ends within seconds"
        return f"; {self.step} {how}, then the run is torn down"

    def to_json(self) -> dict[str, Any]:
        faults = {name: [held._asdict() for held in getattr(self, name)] for name in ("undone", "left")}
        return asdict(self) | faults


def abort(run_id: str) -> Abortion:
    """Abort a live run; raises `BadInput` for any other.

    The injector undoes what it holds, and journals it; what it leaves, since it has died, is undone from here. The
    step that is going on ends when it looks, within seconds, or else with its work. A run that nobody works on any
    more is torn down here.
    """
    bench = Bench(run_id)
    if not (bench.run.root / "status.json").exists():
        raise BadInput("run_id", run_id, f"a live run: {', '.join(store.all_live()) or 'there is none'}")
    began = time.monotonic()
    store.write_json(bench.run.raw / ABORT_FILE, {"at_ns": time.time_ns(), "error": ABORTED})
    held = held_by(bench.journal("injector"))
    left: list[Held] = []
    if bench.provisioned:
        bench.stop("injector", HEALING_LIMIT_S)
        remaining = held_by(bench.journal("injector"))
        held = list(dict.fromkeys([*held, *remaining]))
        left = _undo(bench, remaining)
    seconds = time.monotonic() - began
    if lease.state_of(store.live_directory(run_id)) is Lease.FREE:
        from aftershock import steps  # here, since they take a second to import

        steps.teardown(run_id, ABORTED)
    return Abortion(run_id, [each for each in held if each not in left], left, seconds, bench.step)


class Holding:
    """What faults hold, or may just be about to, by the injector's journal (an `infra.journal.Digest`)."""

    def __init__(self) -> None:
        self._held: dict[tuple[int, str], Held] = {}

    @property
    def held(self) -> list[Held]:
        return list(self._held.values())

    def take(self, entry: dict[str, Any]) -> None:
        if entry["event"] == STRIKING:
            self._held[entry["fault"], entry["host"]] = Held(entry["host"], FaultKind(entry["kind"]))
        elif entry["event"] == "ended" or (entry["event"] == "healed" and not any(entry["left"].values())):
            self._held.pop((entry["fault"], entry["host"]), None)


def held_by(journal: Iterable[dict[str, Any]]) -> list[Held]:
    holding = Holding()
    for entry in journal:
        holding.take(entry)
    return holding.held


def _undo(bench: Bench, held: list[Held]) -> list[Held]:
    """Undo faults, all at once; returns those that are left."""

    def heal(fault: Held) -> bool:
        try:
            proof: Proof = bench.driver.heal(bench.handle, fault.host, fault.kind)
        except AftershockError:
            return False
        return proof.holds

    with ThreadPoolExecutor(max(len(held), 1)) as pool:
        return [fault for fault, healed in zip(held, pool.map(heal, held), strict=True) if not healed]
