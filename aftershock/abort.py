"""Ends a run by hand: what faults hold is undone at once, and the run ends as failed, by its own teardown."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from aftershock import lease
from aftershock.bench import ABORTED, Bench
from aftershock.lease import Lease
from chaos.events import ABORT_FILE
from chaos.holds import Outcome
from experiments.errors import AftershockError, BadInput
from experiments.fault_kinds import Effect, FaultKind
from infra.strikes.strike import Proof
from results import store

HEALING_LIMIT_S = 5.0


class Held(NamedTuple):
    """A host, or the gateway for one of its services, and the kind of the fault that holds it."""

    host: str
    kind: FaultKind

    @property
    def effect(self) -> tuple[str, Effect]:
        return self.host, self.kind.effect


@dataclass(frozen=True)
class Abortion:
    """What was undone, what could not be, and how long that took [s]."""

    run_id: str
    undone: list[Held]
    left: list[Held]
    seconds: float

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
        live = ", ".join(sorted(path.name for path in (store.home() / "live").glob("[a-z0-9]*")))
        raise BadInput("run_id", run_id, f"a live run: {live or 'there is none'}")
    began = time.monotonic()
    store.write_json(bench.run.raw / ABORT_FILE, {"at_ns": time.time_ns(), "error": ABORTED})
    held = held_by(bench.journal("injector"))
    left: list[Held] = []
    if bench.provisioned:
        bench.stop("injector", HEALING_LIMIT_S)
        journal = bench.journal("injector")
        still_held = held_by(journal)
        struck = struck_unproved(bench.plan, journal, time.time_ns())
        struck = [each for each in struck if each.effect not in {other.effect for other in still_held}]
        held += struck
        left = _undo(bench, [*still_held, *struck])
    seconds = time.monotonic() - began
    if lease.state_of(store.live_directory(run_id)) is Lease.FREE:
        from aftershock import steps  # here, since they take a second to import

        steps.teardown(run_id, ABORTED)
    return Abortion(run_id, [each for each in held if each not in left], left, seconds)


def held_by(journal: Iterable[dict[str, Any]]) -> list[Held]:
    """What faults hold, by the injector's journal."""
    held: dict[Held, None] = {}
    for entry in journal:
        if entry["event"] == "injected":
            held[Held(entry["host"], FaultKind(entry["kind"]))] = None
        elif entry["event"] in ("healed", "ended"):
            held.pop(Held(entry["host"], FaultKind(entry["kind"])), None)
    return list(held)


def struck_unproved(plan: dict[str, Any], journal: Sequence[dict[str, Any]], now_ns: int) -> list[Held]:
    """What a plan that was cut short may have struck without a trace in the journal, which has a strike once proved."""
    if not plan or any(entry["event"] == "disarmed" for entry in journal):
        return []
    told = {(entry["fault"], entry["host"]) for entry in journal if entry["event"] in set(Outcome)}
    due = [
        (fault, host, FaultKind(event["kind"]))
        for fault, event in enumerate(plan["events"])
        if plan["window_start_ns"] + round(event["at"] * 1e9) <= now_ns
        for host in event["targets"]
    ]
    unproved = (Held(host, kind) for fault, host, kind in due if (fault, host) not in told)
    return list({held.effect: held for held in unproved}.values())


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
