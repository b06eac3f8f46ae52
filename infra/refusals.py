"""Which faults a driver cannot inject: kinds that do not name it, and those for which it reports an obstacle."""

from __future__ import annotations

from typing import ClassVar

from experiments.fault_kinds import FaultKind, FaultOptions, kinds_of
from experiments.hosts import ClusterDriver
from experiments.spec import ClusterSpec


class DeclaredFaults:
    """The part of `infra.cluster.Driver` that refuses faults.

    name     the driver, as the kinds of faults declare it
    lacking  why it cannot inject the others, to end a sentence with; empty where that needs no words
    """

    name: ClassVar[ClusterDriver]
    lacking: ClassVar[str] = ""

    def refusal(self, spec: ClusterSpec, kind: FaultKind, options: FaultOptions) -> str | None:
        """Why this driver cannot inject such a fault into such a cluster; None if it can."""
        if self.name not in kind.drivers:
            return f"{', '.join(kinds_of(self.name))} with driver {self.name}{self.lacking}"
        return self.obstacle(spec, kind, options)

    def obstacle(self, spec: ClusterSpec, kind: FaultKind, options: FaultOptions) -> str | None:
        """Why a fault that declares this driver cannot be injected with these options, or on these machines."""
        return None
