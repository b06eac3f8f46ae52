"""The answers of agents, each checked against its shape before it is used.

What runs on a host may speak in place of the agent, and say anything.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from experiments.errors import EnvironmentFailure

Whole = Annotated[int, Field(ge=0)]
Counts = dict[str, Whole]


class UsageDocument(TypedDict):
    """What the processes of a host have used, and what they hold."""

    cpu_s: float
    rss_bytes: Whole


class ProofDocument(TypedDict):
    """A proof of a strike or of a heal, by the host's clock [UTC ns]."""

    fired_ns: int
    proved_ns: int
    done: Counts
    left: Counts


class Fired(TypedDict):
    """The proof of a strike, and the ports that it should have closed."""

    proof: ProofDocument
    ports: list[Whole]


class SurveyDocument(TypedDict):
    """What a run would find on a machine: what is missing or taken, which faults cannot be, and whose it is."""

    missing: list[str]
    taken: list[Whole]
    refusals: dict[str, str | None]
    owner: str | None
    file: str


class ClaimDocument(TypedDict):
    """Whose a machine is, and the file that says so."""

    run_id: str
    file: str


SHAPES: dict[str, Any] = {  # by what was asked
    "prepare": None,
    "call": Whole,
    "claim": ClaimDocument | None,
    "clock": int,
    "empty_disk": None,
    "fire": Fired | None,
    "heard": tuple[Counts, bool, bool] | None,
    "listen": Whole,
    "refresh": bool,
    "running": list[str],
    "share": str,
    "spawn": Whole,
    "stop": None,
    "survey": SurveyDocument,
    "undo": ProofDocument,
    "usage": UsageDocument,
    "vacate": Counts,
}
CHECKS: dict[str, TypeAdapter[Any]] = {what: TypeAdapter(shape) for what, shape in SHAPES.items()}
FAILED = TypeAdapter(str)


class Refused(EnvironmentFailure):
    """The system of a host would not do what was asked."""


class Misspoken(EnvironmentFailure):
    """What came from a host is JSON, and no answer to what was asked."""

    def __init__(self, host: str, what: str) -> None:
        super().__init__(
            f"{host}: what came back for {what!r} is no answer of its agent", "look what runs on that host"
        )


def done(host: str, what: str, answer: Any) -> Any:
    """What was done for the request `what`; raises `Refused` when the system would not, `Misspoken` for anything else.

    Fields that are unknown are left out.
    """
    try:
        if isinstance(answer, dict) and "failed" in answer:
            raise Refused(f"{host}: {FAILED.validate_python(answer['failed'])}", "mend that on the host and run again")
        # as JSON, of which also strict checks take a list for a tuple
        return CHECKS[what].validate_json(json.dumps(answer["done"]), strict=True)
    except (ValidationError, LookupError, TypeError, ValueError):
        raise Misspoken(host, what) from None
