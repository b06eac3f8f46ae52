"""How a dataflow is brought back after a failure: one class for each strategy, behind `testbed.core.recovery`.

A protocol says what a partition does so that it can go back; a strategy says who goes back, and when. The coordinator
knows no strategy by name; `by_name` is for whoever reads an experiment.
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
