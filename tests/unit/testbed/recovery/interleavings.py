"""All that can happen to a coordinator and its abstract workers, in every order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from testbed.core.control import Go, Rejoin
from testbed.core.dataflow.layout import Layout
from testbed.core.effects import Delete, Order, Sweep
from testbed.core.recovery import RecoveryStrategy
from tests.unit.testbed.recovery.abstract import Life, Wrong, followed, restored
from tests.unit.testbed.recovery.asked import AskedCoordinator, Back, key_of


class AbstractWorker(NamedTuple):
    """A process, with what is under way to it and from it.

    heard   whether the coordinator listens to it and speaks to it; otherwise it goes on as if nothing were
    """

    name: str
    heard: bool
    orders: tuple
    messages: tuple
    lives: tuple[Life | None, ...]


class State(NamedTuple):
    """Everything at one moment.

    coordinator   the number of its state
    lost          the workers that crashed, and whose crash was not noticed yet
    joined, away  how many have ever joined, and how many have yet to come
    faults        how many may still happen
    spoilable     how many objects may still be spoilt; `spoilt` those that are
    sent          for each partition the last checkpoint that any life of it took
    store         the objects that are there
    hurt          the partitions that may be restored: they were lost, or something could not be read
    told          who was told to take part in which recovery
    """

    coordinator: int
    workers: tuple[AbstractWorker, ...]
    lost: tuple[str, ...]
    joined: int
    away: int
    faults: int
    spoilable: int
    spoilt: frozenset[str]
    sent: tuple[int, ...]
    store: frozenset[str]
    hurt: frozenset[int]
    told: frozenset[tuple[int, int]]


class Interleavings:
    """What can follow a state. A step raises `Wrong` if the coordinator asks for what must not be."""

    def __init__(self, asked: AskedCoordinator, strategy: type[RecoveryStrategy], most_checkpoints: int) -> None:
        """`most_checkpoints`: of each partition."""
        self.asked, self._strategy, self._most = asked, strategy, most_checkpoints
        self.layout: Layout = asked.layout
        self._senders = [{c.sender for c in p.inputs} for p in self.layout.partitions]

    def first(self, workers: int, faults: int, spoilable: int) -> State:
        """No worker has joined."""
        count = len(self.layout.partitions)
        everyone = frozenset(range(count))
        nothing = frozenset()
        return State(
            0, (), (), 0, workers, faults, spoilable, nothing, (0,) * count, frozenset(), everyone, frozenset()
        )

    def after(self, state: State) -> Iterator[tuple[str, State]]:
        """Each event that can happen without a further fault, and where it leads."""
        if state.away:
            came = state._replace(away=state.away - 1, joined=state.joined + 1)
            yield f"w{state.joined} joins", self._joined(came, f"w{state.joined}")
        for name in state.lost:
            noticed = state._replace(lost=tuple(each for each in state.lost if each != name))
            yield f"{name} is missed", self._decided(noticed, "on_lost", name)
        for at, worker in enumerate(state.workers):
            yield from self._of_worker(state, at, worker)

    def faults(self, state: State) -> Iterator[tuple[str, State]]:
        """Each fault that can happen, and where it leads."""
        for at, worker in enumerate(state.workers):
            if state.faults and worker.heard:
                yield from self._faults_of(state, at, worker)

    def settled(self, state: State, before: State) -> State:
        """The state once all has happened that changes nothing, now or later, and without workers that are void.

        `before`: the settled state that this one follows: a worker that is the same there has nothing that is void.
        """
        is_old, unchanged = state.coordinator == before.coordinator, set(map(id, before.workers))
        for at, worker in enumerate(state.workers):
            if is_old and id(worker) in unchanged:
                continue
            orders, messages = worker.orders, worker.messages
            while orders and id(worker) not in unchanged and self._is_void(worker, *orders[0]):
                orders = orders[1:]
            while messages and self.asked.ask(state.coordinator, "on_message", messages[0]) == (state.coordinator, ()):
                messages = messages[1:]
            if len(orders) < len(worker.orders) or len(messages) < len(worker.messages):
                state = _with(state, at, AbstractWorker(worker.name, worker.heard, orders, messages, worker.lives))
        if any(worker.orders for worker in state.workers):
            return state
        lives = self.asked.known[state.coordinator].lives
        kept = tuple(each for each in state.workers if each.heard or each.messages or not _superseded(each, lives))
        return state._replace(workers=kept) if len(kept) < len(state.workers) else state

    def _is_void(self, worker, number, order):
        """Whether an order changes nothing and needs no answer."""
        life = worker.lives[number]
        if isinstance(order, Back | Rejoin):
            return False
        return life is None or followed(self.layout.partitions[number], life, order) == life

    def _of_worker(self, state, at, worker):
        if worker.messages:
            first, rest = worker.messages[0], worker.messages[1:]
            heard = _with(state, at, AbstractWorker(worker.name, worker.heard, worker.orders, rest, worker.lives))
            yield f"{worker.name} says {first}", self._decided(heard, "on_message", first)
        if worker.orders:
            number, order = worker.orders[0]
            told = AbstractWorker(worker.name, worker.heard, worker.orders[1:], worker.messages, worker.lives)
            yield from self._order(state, at, told, number, order)
        for number, life in enumerate(worker.lives):
            due = life is not None and life.runs and life.at < self._most
            if due and all(state.sent[each] > life.at for each in self._senders[number]):
                yield f"{worker.name} takes a checkpoint of {number}", self._checkpoint(state, at, worker, number)

    def _faults_of(self, state, at, worker):
        hit = state._replace(faults=state.faults - 1, away=state.away + 1)
        rest = state.workers[:at] + state.workers[at + 1 :]
        yield f"{worker.name} crashes", hit._replace(workers=rest, lost=(*state.lost, worker.name))
        suspected = _with(hit, at, worker._replace(heard=False))
        yield f"{worker.name} is given up", self._decided(suspected, "on_lost", worker.name)

    def _joined(self, state, name):
        worker = AbstractWorker(name, True, (), (), (None,) * len(self.layout.partitions))
        return self._decided(state._replace(workers=(*state.workers, worker)), "on_joined", name)

    def _order(self, state, at, worker, number, order):
        life = worker.lives[number]
        if isinstance(order, Back):
            yield from self._back(state, at, worker, number, order)
            return
        says = worker.messages
        if life is not None:
            life = followed(self.layout.partitions[number], life, order)
            says += (("ready", number, order.epoch),) * isinstance(order, Rejoin)
        lives = _set(worker.lives, number, life)
        yield (
            f"{worker.name} is told {order} for {number}",
            _with(state, at, AbstractWorker(worker.name, worker.heard, worker.orders, says, lives)),
        )

    def _back(self, state, at, worker, number, order):
        """A partition goes back; of what is not stable, the object may be found spoilt."""
        label = f"{worker.name} is told {order} for {number}"
        known = self.asked.known[state.coordinator]
        failed = worker._replace(messages=(*worker.messages, ("unreadable", number, order.epoch, order.key)))
        if order.key is not None and order.key not in state.store - state.spoilt:
            if order.key not in state.spoilt and worker.heard and order.epoch == known.lives[number]:
                raise Wrong(f"{order.key} is deleted and {worker.name} is told to restore it")
            yield f"{label} and can't read it", _with(state, at, failed)
            return
        if order.number > known.stable and state.spoilable:
            spoilt = state._replace(spoilable=state.spoilable - 1, spoilt=state.spoilt | {order.key})
            yield f"{label} and can't read it", _with(spoilt, at, failed)
        lives = _set(worker.lives, number, restored(self.layout.partitions[number], order))
        says = (*worker.messages, ("ready", number, order.epoch))
        yield label, _with(state, at, AbstractWorker(worker.name, worker.heard, worker.orders, says, lives))

    def _checkpoint(self, state, at, worker, number):
        life = worker.lives[number]._replace(at=worker.lives[number].at + 1)
        says = (*worker.messages, ("stored", number, life.epoch, life.at))
        worker = worker._replace(lives=_set(worker.lives, number, life), messages=says)
        store = state.store | {key_of(self.layout, number, life.at, life.epoch)}
        sent = _set(state.sent, number, max(state.sent[number], life.at))
        return _with(state._replace(store=store, sent=sent), at, worker)

    # What the coordinator decides.

    def _decided(self, state, event, argument):
        before = self.asked.known[state.coordinator]
        number, effects = self.asked.ask(state.coordinator, event, argument)
        hurt = state.hurt | self._hurt(before, event, argument)
        lives = zip(before.lives, self.asked.known[number].lives, strict=True)
        restored = {number for number, (old, new) in enumerate(lives) if old != new}
        needed = self.layout.with_upstream(hurt) if self._strategy.from_sources else hurt
        if restored - needed and (self._strategy.partial or not hurt):
            raise Wrong(f"{sorted(restored)} are restored and only {sorted(needed)} need it")
        if self._strategy.from_sources and restored != self.layout.with_upstream(restored):
            raise Wrong(f"{sorted(restored)} are restored without all that they get their input from")
        told = frozenset(each for each in state.told if each[0] not in hurt | restored)
        state = state._replace(coordinator=number, hurt=hurt - restored, told=told)
        for effect in effects:
            state = self._carried_out(state, effect)
        return state

    def _hurt(self, known, event, argument):
        """Whom this gives a reason to be restored."""
        if event == "on_lost":
            return {number for number, host in enumerate(known.hosts) if host == argument}
        if argument[0] == "unreadable" and argument[2] == known.lives[argument[1]]:
            return set(range(len(known.lives)))
        return set()

    def _carried_out(self, state, effect):
        match effect:
            case Delete(keys):
                return state._replace(store=state.store - set(keys))
            case Sweep(_, keep, names):
                gone = {key for key in state.store - keep if key.partition("/")[0] in names}
                return state._replace(store=state.store - gone)
            case Order(name, number, order):
                told = self._told(state, number, order)
                return self._ordered(state._replace(told=told), name, number, order)

    def _told(self, state, number, order):
        """Which partition takes part in which recovery now. Raises `Wrong` for an order that must not be given."""
        match order:
            case Back(epoch, to):
                if to < self.asked.known[state.coordinator].stable:
                    raise Wrong(f"{number} goes back to {to}, behind what is stable")
                return state.told | {(number, epoch)}
            case Rejoin(epoch):
                return state.told | {(number, epoch)}
            case Go(epoch):
                if (number, epoch) not in state.told:
                    raise Wrong(f"{number} is told {order} and has no part in that recovery")
                return state.told - {(number, epoch)}
        return state.told

    def _ordered(self, state, name, number, order):
        for at, worker in enumerate(state.workers):
            if worker.name == name:
                orders = (*worker.orders, (number, order))
                return _with(state, at, AbstractWorker(name, worker.heard, orders, worker.messages, worker.lives))
        return state


def _superseded(worker, lives):
    return all(life is None or life.epoch < lives[number] for number, life in enumerate(worker.lives))


def _with(state, at, worker):
    return State(state.coordinator, _set(state.workers, at, worker), *state[2:])


def _set(values, at, value):
    return (*values[:at], value, *values[at + 1 :])
