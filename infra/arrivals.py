"""Detects, on any cluster, that a lost host or service is back."""

from __future__ import annotations

from collections.abc import Callable

from experiments.fault_kinds import FaultKind
from infra.cluster import Handle
from infra.external.borrowed import Borrowing
from infra.services import startup


def arrival(handle: Handle, host: str, kind: FaultKind) -> Callable[[], bool] | None:
    """To be asked before a heal, as `infra.services.startup.arrival`.

    A host of a borrowed cluster has its place once its user's own proof has said so: then its note is gone.
    """
    if handle.is_borrowed and kind.loses_the_host:
        note = Borrowing(handle).note(host, kind)
        return lambda: not note.exists
    return startup.arrival(handle, host, kind)
