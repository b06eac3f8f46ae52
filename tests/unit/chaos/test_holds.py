"""Which fault does what to a host that others hold: kind by kind, second by second, and as the injector does it."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from concurrent.futures import Executor, Future

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chaos.composition import compose, down_shares, most_down
from chaos.events import FaultEvent
from chaos.fault_plan import FaultPlan
from chaos.holds import Hold, Holds, StrikeOutcome
from chaos.injection import preparation
from chaos.injector import Injector
from experiments.fault_kinds import GATEWAY, Effect, FaultKind
from infra.cluster import Handle
from infra.strikes.strike import Proof
from journal.reader import raw_entries
from journal.writer import Journal

DOWN, FROZEN, SLOW, CUT, FULL = Effect.DOWN, Effect.FROZEN, Effect.SLOW, Effect.CUT, Effect.FULL
ABSORBED_IN = {  # the rules in words of their own: in which states of its host a fault of an effect is absorbed
    DOWN: {DOWN},
    FROZEN: {DOWN, FROZEN},
    SLOW: {DOWN, FROZEN, SLOW},
    CUT: {DOWN, CUT},
    FULL: {DOWN, FULL},
    Effect.NO_BROKER: {Effect.NO_BROKER},
    Effect.NO_DRIVER: {Effect.NO_DRIVER},
    Effect.NO_MASTER: {Effect.NO_MASTER},
}
ENDS = defaultdict(set, {DOWN: {FROZEN, SLOW, FULL}, FROZEN: {SLOW}})
OUT_OF_SERVICE = {DOWN, FROZEN, CUT}
OF_HOSTS = [kind for kind in FaultKind if not kind.service]
HORIZON_S = 40


@pytest.mark.parametrize("struck", OF_HOSTS)
@pytest.mark.parametrize("held", OF_HOSTS)
def test_effect_against_effect(held, struck):
    holds = Holds()
    first, second = Hold("a", held, 0, 10), Hold("a", struck, 1, 20)
    assert holds.strike(first) == []
    if held.effect in ABSORBED_IN[struck.effect]:
        assert holds.outcome("a", struck) is StrikeOutcome.ABSORBED
        longer = holds.absorb("a", struck, 20)
        assert longer == (Hold("a", held, 0, 20) if held.effect is struck.effect else None)
        assert holds.is_current(first) == (longer is None)
        assert holds.absorb("a", struck, 15) is None
    else:
        assert holds.outcome("a", struck) is StrikeOutcome.INJECTED
        assert holds.strike(second) == ([first] if held.effect in ENDS[struck.effect] else [])
        assert holds.is_current(first) == (held.effect not in ENDS[struck.effect])
        assert holds.is_current(second)


def test_a_host_that_is_out_of_service_counts_once_against_max_down():
    holds = Holds(max_down=1)
    cut, paused = Hold("a", FaultKind.PARTITION, 0, 10), Hold("a", FaultKind.PAUSE, 1, 5)
    holds.strike(cut)
    assert holds.outcome("a", FaultKind.PAUSE) is StrikeOutcome.INJECTED
    holds.strike(paused)
    holds.release(paused)
    assert holds.outcome("b", FaultKind.KILL) is StrikeOutcome.WITHHELD  # a is still cut off
    assert holds.outcome("b", FaultKind.SLOW) is StrikeOutcome.INJECTED
    assert holds.outcome("b", FaultKind.DISK_FULL) is StrikeOutcome.INJECTED
    assert holds.outcome(GATEWAY, FaultKind.BROKER_KILL) is StrikeOutcome.INJECTED
    holds.release(cut)
    assert holds.outcome("b", FaultKind.KILL) is StrikeOutcome.INJECTED


class SecondBySecond:
    """The same rules told naively: the state of every host at every second, from the first to the last."""

    def __init__(self, events: list[FaultEvent], max_down: int | None) -> None:
        self.until: dict[tuple[str, Effect], int] = {}
        self.outcomes: dict[tuple[int, str], StrikeOutcome] = {}
        self.ended = 0
        self.out: Counter[str] = Counter()
        self.most = 0
        for second in range(HORIZON_S + 20):
            self.until = {held: until for held, until in self.until.items() if until >= second}
            for fault, event in enumerate(events):
                for host in event.targets if event.at == second else ():
                    self.outcomes[fault, host] = self._strike(event, host, max_down)
            out = {host for (host, effect), until in self.until.items() if effect in OUT_OF_SERVICE and until > second}
            self.out.update(out)
            self.most = max(self.most, len(out))

    def _strike(self, event: FaultEvent, host: str, max_down: int | None) -> StrikeOutcome:
        effect, until = event.kind.effect, int(event.at + event.heal_after)
        held = {other for at_host, other in self.until if at_host == host}
        if held & ABSORBED_IN[effect]:
            if effect in held:
                self.until[host, effect] = max(until, self.until[host, effect])
            return StrikeOutcome.ABSORBED
        taken = {at_host for at_host, other in self.until if other in OUT_OF_SERVICE}
        if max_down is not None and effect in OUT_OF_SERVICE and host not in taken and len(taken) >= max_down:
            return StrikeOutcome.WITHHELD
        for other in held & ENDS[effect]:
            del self.until[host, other]
            self.ended += 1
        self.until[host, effect] = until
        return StrikeOutcome.INJECTED


def _event(at: int, heal_after: int, kind: FaultKind, targets: set[str]) -> FaultEvent:
    return FaultEvent(at, "test", (GATEWAY,) if kind.service else tuple(sorted(targets)), kind, heal_after)


plans = st.lists(
    st.builds(
        _event,
        st.integers(0, HORIZON_S),
        st.integers(0, 12),
        st.sampled_from(FaultKind),
        st.sets(st.sampled_from("abc"), min_size=1),
    ),
    max_size=25,
).map(sorted)
limits = st.none() | st.integers(1, 4)


@pytest.mark.extended
@settings(max_examples=200, deadline=None)
@given(plans, limits)
def test_a_composed_plan_is_that_of_the_second_by_second_model(events, max_down):
    naive, made = SecondBySecond(events, max_down), compose(events, max_down)
    found = {
        **dict.fromkeys(made.struck, StrikeOutcome.INJECTED),
        **dict.fromkeys(made.absorbed, StrikeOutcome.ABSORBED),
        **dict.fromkeys(made.withheld, StrikeOutcome.WITHHELD),
    }
    assert found == naive.outcomes
    length_s = HORIZON_S + 20
    assert down_shares(made, length_s) == pytest.approx(
        {host: naive.out[host] / length_s for host in down_shares(made, length_s)}
    )
    assert sum(down_shares(made, length_s).values()) == pytest.approx(naive.out.total() / length_s)
    assert most_down(made) == naive.most <= (max_down or 3)


class Unresisting:
    """A driver on whose hosts every strike and heal succeeds at once: what is left is the injector's own doing."""

    ports: frozenset[int] = frozenset()

    def clocks(self, handle):
        return {}

    def prepare(self, handle, host, kind, options):
        return self

    def heal(self, handle, host, kind):
        return Proof(0, 0, {}, {})

    def refresh(self):
        return True

    def shoot(self, due_ns):
        pass

    def fire(self):
        return Proof(0, 0, {}, {})

    def close(self):
        pass


class AtOnce(Executor):
    """Does what it is given before it returns: all is ready when it is due, though that has passed."""

    def submit(self, act, /, *arguments):
        done = Future()
        done.set_result(act(*arguments))
        return done


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(plans, limits, st.sampled_from([1.0, 0.1, 0.7]))
def test_the_injector_does_what_the_composition_says(tmp_path, monkeypatch, events, max_down, second):
    """A window that has passed is carried out without waiting, in the order in which all was due."""
    events = sorted(e._replace(at=round(e.at * second, 6), heal_after=round(e.heal_after * second, 6)) for e in events)
    path = tmp_path / "injector.jsonl"
    path.unlink(missing_ok=True)
    start_ns = time.time_ns() - 1000 * 10**9
    plan = FaultPlan(start_ns, start_ns + 1000 * 10**9, tuple(events), max_down)
    handle = Handle("run-1", "local", "token", str(tmp_path))
    monkeypatch.setattr(preparation, "started_thread", AtOnce)
    injector = Injector(Unresisting(), handle, Journal(path), plan, arrival=lambda *_: None)
    injector.run()
    entries, made = list(raw_entries(path)), compose(events, max_down)
    found = {outcome: [] for outcome in StrikeOutcome}
    for entry in entries:
        if entry["event"] in found:
            found[entry["event"]].append((entry["fault"], entry["host"]))
    assert set(found[StrikeOutcome.INJECTED]) == made.struck
    assert sorted(found[StrikeOutcome.ABSORBED]) == sorted(made.absorbed)
    assert sorted(found[StrikeOutcome.WITHHELD]) == sorted(made.withheld)
    count = Counter(entry["event"] for entry in entries)
    assert count["healed"] + count["ended"] == len(made.outages)
