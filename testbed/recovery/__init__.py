"""The recovery strategies of dataflows: one class each, behind the interface of `testbed.core.recovery`.

A protocol makes it possible for a partition to roll back. A strategy decides which partitions roll back, and when. The
coordinator knows no strategy by name; `by_name` finds the strategy of an experiment.
"""

from experiments.errors import BadInput
from testbed.core.recovery import Global, RecoveryStrategy, World
from testbed.recovery.partially_active import PartiallyActive
from testbed.recovery.query_centric import QueryCentric
from testbed.recovery.strategies import Blocking, Passive, SourceReplay

STRATEGIES: dict[str, type[RecoveryStrategy]] = {
    each.name: each for each in (Global, Blocking, Passive, PartiallyActive, QueryCentric, SourceReplay)
}


def by_name(name: str) -> type[RecoveryStrategy]:
    """The strategy of this name; raises `BadInput` if there is none."""
    if name not in STRATEGIES:
        raise BadInput("recovery", name, ", ".join(STRATEGIES))
    return STRATEGIES[name]


__all__ = [
    "STRATEGIES",
    "Blocking",
    "Global",
    "PartiallyActive",
    "Passive",
    "QueryCentric",
    "RecoveryStrategy",
    "SourceReplay",
    "World",
    "by_name",
]
