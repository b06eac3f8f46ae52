"""The requests to agents: the name, the fields and the answer type of each.

An agent runs without any library but Python's. Pydantic has to check the answers (`infra.remote.answers`), so only the
type checker reads their shapes there.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from experiments.fault_kinds import Direction, FaultKind, FaultOptions

if TYPE_CHECKING:
    from infra.remote.answers import (  # noqa: F401 (their names stand in quotes below)
        ClaimDocument,
        Fired,
        ProofDocument,
        SurveyDocument,
        UsageDocument,
    )

AnswerT = TypeVar("AnswerT")
REQUESTS: dict[str, type[AgentRequest[Any]]] = {}  # by name


@dataclass(frozen=True)
class AgentRequest(Generic[AnswerT]):
    """One request: `class ReadClock(AgentRequest[int], do="clock")`. On the wire it is a JSON object: `do`, its fields.

    do         its name, which is that of the agent's method that carries it out with the fields as arguments
    answered   whether the agent answers; without, the driver need not wait before it strikes other hosts
    """

    do: ClassVar[str]
    answered: ClassVar[bool]

    def __init_subclass__(cls, *, do: str, answered: bool = True) -> None:
        super().__init_subclass__()
        cls.do, cls.answered = do, answered
        REQUESTS[do] = cls

    def to_json(self) -> dict[str, Any]:
        """What a session carries to the agent."""
        return {"do": self.do, **vars(self)}

    @classmethod
    def of(cls, fields: dict[str, Any]) -> AgentRequest[AnswerT]:
        """The request with these fields of a JSON object; raises `TypeError` for a missing or unknown one."""
        return cls(**fields)


def decode(line: str) -> AgentRequest[Any]:
    """The request of a line; raises `LookupError` for a name that no request has."""
    fields = json.loads(line)
    return REQUESTS[fields.pop("do")].of(fields)


@dataclass(frozen=True)
class MeasureUsage(AgentRequest["UsageDocument"], do="usage"):
    """What the host's processes have used and hold now."""


@dataclass(frozen=True)
class ReadClock(AgentRequest[int], do="clock"):
    """The host's time [UTC ns]."""


@dataclass(frozen=True)
class ListServices(AgentRequest[list[str]], do="running"):
    """The names of the host's services that have a live process."""


@dataclass(frozen=True)
class SpawnService(AgentRequest[int], do="spawn"):
    """Start a command with these environment variables, its output in `log`; the answer is its process id."""

    command: Sequence[str]
    folder: str
    log: str
    variables: dict[str, str]


@dataclass(frozen=True)
class StopService(AgentRequest[None], do="stop"):
    """Ask a service to end, and kill it after `limit_s`."""

    service: str
    limit_s: float


@dataclass(frozen=True)
class EmptyDisk(AgentRequest[None], do="empty_disk"):
    """Delete everything on the host's own disk, if it has one."""


@dataclass(frozen=True)
class PrepareStrike(AgentRequest[None], do="prepare"):
    """Prepare a strike, to which later requests refer by `number`; the peers in the options are addresses."""

    number: int
    kind: FaultKind
    options: FaultOptions

    def to_json(self) -> dict[str, Any]:
        return super().to_json() | {"options": self.options._asdict()}

    @classmethod
    def of(cls, fields: dict[str, Any]) -> PrepareStrike:
        options = FaultOptions(**fields["options"])
        options = options._replace(peers=tuple(options.peers), direction=Direction(options.direction))
        return cls(fields["number"], FaultKind(fields["kind"]), options)


@dataclass(frozen=True)
class RefreshStrike(AgentRequest[bool], do="refresh"):
    """Look again at what the prepared strike will act on; the answer is whether there is anything."""

    number: int


@dataclass(frozen=True)
class Shoot(AgentRequest[None], do="shoot", answered=False):
    """Carry out the prepared strike when `due_ns` has come, by the host's clock [UTC ns]."""

    number: int
    due_ns: int


@dataclass(frozen=True)
class Fire(AgentRequest["Fired | None"], do="fire"):
    """Complete a strike and prove it; the answer is None while the proof goes on."""

    number: int


@dataclass(frozen=True)
class CloseStrike(AgentRequest[None], do="close", answered=False):
    """Give up a strike."""

    number: int


@dataclass(frozen=True)
class UndoFault(AgentRequest["ProofDocument"], do="undo"):
    """Undo a fault of this kind."""

    kind: FaultKind

    @classmethod
    def of(cls, fields: dict[str, Any]) -> UndoFault:
        return cls(FaultKind(fields["kind"]))


@dataclass(frozen=True)
class Listen(AgentRequest[int], do="listen"):
    """Listen for datagrams; the answer is the port."""


@dataclass(frozen=True)
class SendWord(AgentRequest[int], do="call"):
    """Send a word in `times` datagrams to each address and port; the answer is how many left."""

    word: str
    to: Sequence[tuple[str, int]]
    times: int


@dataclass(frozen=True)
class TakeHeard(AgentRequest[tuple[dict[str, int], bool, bool] | None], do="heard"):
    """Close the port; the answer is how often each word arrived there, and whether the host has itself dropped packets,
    and delayed them, when it began to listen or now. It is None if the agent has been replaced since, and the port with
    it.
    """

    port: int


@dataclass(frozen=True)
class SurveyMachine(AgentRequest["SurveyDocument"], do="survey"):
    """What a run would find on a machine: of the paths that it needs, and of the ports."""

    needed: Sequence[str]
    ports: Sequence[int]


@dataclass(frozen=True)
class ClaimMachine(AgentRequest["ClaimDocument | None"], do="claim"):
    """Take a machine for a run; the answer is whose it is if it is another's."""

    run_id: str
    root: str


@dataclass(frozen=True)
class ShareFile(AgentRequest[str], do="share"):
    """Read the nonce at a path and write it beside; the answer is what is wrong, or nothing."""

    path: str
    nonce: str


@dataclass(frozen=True)
class VacateMachine(AgentRequest[dict[str, int]], do="vacate"):
    """End every process of the run on a machine, and give the machine up; the answer is what is left."""


@dataclass(frozen=True)
class Leave(AgentRequest[None], do="leave", answered=False):
    """End the agent."""
