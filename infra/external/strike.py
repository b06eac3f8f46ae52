"""A fault on a host of an existing cluster: struck, proved, healed and proved healed by its user's commands."""

from __future__ import annotations

import time
from contextlib import suppress
from functools import partial

from experiments.errors import EnvironmentFailure
from experiments.fault_kinds import FaultKind
from experiments.waiting import Deadline
from infra.attempts import each_tried
from infra.external.borrowed import Borrowing
from infra.external.commands import Ended, RunningCommand, TookTooLong, moment, succeeded
from infra.external.notes import NOT_STRUCK
from infra.strikes.strike import NOT_YET, Proof, Strike, wait_until

PROOF_POLL_S = 0.1


class CommandStrike(Strike):
    """Starts the user's command when it is due.

    Whether the host is up is first asked when the strike is prepared, and answered when it is checked again. A command
    that takes longer than there is time between the two makes the strike late.
    """

    def __init__(self, borrowing: Borrowing, host: str, kind: FaultKind) -> None:
        self._borrowing, self._host, self._kind = borrowing, host, kind
        self._due_ns = NOT_YET
        self._look: RunningCommand | None = self._begin_look()
        self._command: RunningCommand | None = None

    def _begin_look(self) -> RunningCommand:
        return _start(self._borrowing, "prove_healed", self._host, self._kind)

    def refresh(self) -> bool:
        """Whether the host is up. One that was down when the strike was prepared is looked at again."""
        look, self._look = self._look, None
        return (look is not None and self._is_up(look)) or self._is_up(self._begin_look())

    def _is_up(self, look: RunningCommand) -> bool:
        ended = _wait(self._borrowing, look)
        if ended.code:
            return False
        moment(look.called, ended, since_ns=0)  # what tells no moment now would prove no heal later
        return True

    def shoot(self, due_ns: int = 0) -> None:
        """Start the command when it is due. That the host will have to be healed is noted before, with its process."""
        self._shot(due_ns)

    def _shot(self, due_ns: int) -> RunningCommand:
        note = self._borrowing.note(self._host, self._kind)
        note.announce()
        self._command = command = _start(self._borrowing, "strike", self._host, self._kind, held=True)
        note.strikes(command.pid)
        now_ns = wait_until(due_ns)
        self._due_ns = due_ns or now_ns
        command.release()
        return command

    def fire(self) -> Proof:
        """Wait for the end of the command, then for its proof; the fault took effect when the proof says so."""
        command = self._command or self._shot(due_ns=0)
        ended = succeeded(command.called, _wait(self._borrowing, command, self._due_ns))
        self.close()
        at_ns = _proved(self._borrowing, "prove", self._host, self._kind, since_ns=ended.began_ns)
        self._borrowing.note(self._host, self._kind).took_effect(at_ns or NOT_STRUCK)
        done, left = {"hosts struck": int(at_ns is not None)}, {"hosts without proof": int(at_ns is None)}
        return Proof(at_ns or ended.began_ns, time.time_ns(), done, left)

    def close(self) -> None:
        for command in filter(None, (self._look, self._command)):
            command.close()


def heal(borrowing: Borrowing, host: str, kind: FaultKind) -> Proof:
    """Bring a host back, and await the proof; one that is well already, and that no strike is noted of, is left alone.

    Weaker faults of the host, whose place this one has taken, are undone with it. Raises `EnvironmentFailure` if the
    command fails. A host that does not come back stays noted.
    """
    began_ns = time.time_ns()
    if not borrowing.note(host, kind).exists and _look(borrowing, "prove_healed", host, kind)[1].code == 0:
        return Proof(began_ns, time.time_ns(), {"hosts healed": 0}, {"hosts not back": 0})
    outdone = borrowing.outdone(host, kind)
    for each in (kind, *outdone):
        _await_effect(borrowing, host, each)
    for weaker in outdone:
        each_tried([partial(_act_to_heal, borrowing, host, weaker)])  # its proof tells what came of it
    _act_to_heal(borrowing, host, kind)
    well_ns = [_well_since(borrowing, host, each) for each in (kind, *outdone)]
    is_back = None not in well_ns
    done, left = {"hosts healed": int(is_back)}, {"hosts not back": int(not is_back)}
    return Proof(well_ns[0] or began_ns, time.time_ns(), done, left)


def _await_effect(borrowing: Borrowing, host: str, kind: FaultKind) -> None:
    """Wait for a strike of which it is not known whether it took effect: if it came after the heal, it would stay.

    Its injector was killed, or the command failed or took too long, although its cluster may have accepted it.
    """
    note, limit_s = borrowing.note(host, kind), borrowing.known.cluster.limit_s
    if not note.exists:
        return
    note.end_command(limit_s)
    if note.since_ns is None:
        at_ns = None
        with suppress(EnvironmentFailure):
            at_ns = _proved(borrowing, "prove", host, kind, since_ns=0)
        note.took_effect(at_ns or NOT_STRUCK)


def _act_to_heal(borrowing: Borrowing, host: str, kind: FaultKind) -> None:
    command = _start(borrowing, "heal", host, kind, held=True)
    try:
        borrowing.note(host, kind).heals(command.pid)
        command.release()
        succeeded(command.called, _wait(borrowing, command))
    finally:
        command.close()


def _well_since(borrowing: Borrowing, host: str, kind: FaultKind) -> int | None:
    """Since when a host is proved to be well [ns], which may be before its heal; None if it is not.

    It may have come back by itself before the strike was proved, but not before it began.
    """
    note = borrowing.note(host, kind)
    at_ns = _proved(borrowing, "prove_healed", host, kind, note.began_ns)
    if at_ns is None:
        return None
    at_ns = max(at_ns, note.since_ns or NOT_STRUCK)
    note.remove()
    return at_ns


def _proved(borrowing: Borrowing, proof: str, host: str, kind: FaultKind, since_ns: int) -> int | None:
    """The moment [ns] that a proof tells once it holds; None if it does not within the time limit.

    The proof is requested repeatedly. The log has the last request that ended. Only the first may use the whole time.
    """
    limit_s = borrowing.known.cluster.limit_s
    deadline = Deadline(limit_s)
    command, ended = _look(borrowing, proof, host, kind)
    while ended.code and not deadline.passed:
        time.sleep(PROOF_POLL_S)
        try:
            command, ended = _look(borrowing, proof, host, kind, deadline.left_s)
        except TookTooLong:
            break
    borrowing.log(command.called, ended)
    return None if ended.code else moment(command.called, ended, since_ns)


def _look(
    borrowing: Borrowing, proof: str, host: str, kind: FaultKind, limit_s: float | None = None
) -> tuple[RunningCommand, Ended]:
    command = _start(borrowing, proof, host, kind)
    return command, command.wait(borrowing.known.cluster.limit_s if limit_s is None else limit_s)


def _start(borrowing: Borrowing, name: str, host: str, kind: FaultKind, *, held: bool = False) -> RunningCommand:
    called = f"{name} ({kind.value}) of {borrowing.called(host)}"
    return RunningCommand(called, getattr(borrowing.commands(kind), name), borrowing.known.names[host], held=held)


def _wait(borrowing: Borrowing, command: RunningCommand, due_ns: int | None = None) -> Ended:
    """What came of a command within the time limit, noted in the log."""
    return borrowing.log(command.called, command.wait(borrowing.known.cluster.limit_s), due_ns)
