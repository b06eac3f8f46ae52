"""How an engine comes back after a failure: the values of `engine.recovery`, and which engine has which."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class RecoveryMode(StrEnum):
    """What becomes of the query, or of its dataflow, when a host is lost.

    The first two are of Structured Streaming. The others are strategies of the testbed, each by the name that it has
    there (`testbed.recovery`).
    """

    QUERY = "query"  # a lost executor fails the query, which restarts from its last checkpoint
    TASK = "task"  # Spark retries the lost tasks
    GLOBAL = "global"  # every partition rolls back
    BLOCKING = "blocking"  # the lost partitions roll back, once all of them can
    PASSIVE = "passive"  # each lost partition rolls back as soon as it can
    PARTIALLY_ACTIVE = "partially-active"  # what has an active copy goes on with that; the others as under `passive`
    QUERY_CENTRIC = "query-centric"  # lost partitions roll back query by query, as slots with room for them join
    SOURCE_REPLAY = "source-replay"  # without checkpoints: the lost partitions and all upstream of them start again


OF_STRUCTURED_STREAMING = (RecoveryMode.QUERY, RecoveryMode.TASK)
OF_THE_TESTBED = tuple(each for each in RecoveryMode if each not in OF_STRUCTURED_STREAMING)
# Partitions that were not lost go on.
PARTIAL = tuple(each for each in OF_THE_TESTBED if each is not RecoveryMode.GLOBAL)
# Lost queries are told one by one: when each was planned and was back. These place partitions where room is, too.
TELL_QUERIES = (RecoveryMode.BLOCKING, RecoveryMode.QUERY_CENTRIC)


class RecoveryPlanner(StrEnum):
    """The planners of `query-centric`, by their names in `models.recovery`."""

    EXACT = "exact"
    DP = "dp"
    BEST_DENSITY = "best-density"
    DENSITY_BEAM = "density-beam"
    OPERATOR_CENTRIC = "operator-centric"


class ReplicationPlanner(StrEnum):
    """Who decides what gets a copy under `partially-active`, each by the name that it has in `models.replication`."""

    EXACT = "exact"
    DP = "dp"
    STRUCTURE_AWARE = "structure-aware"
    GREEDY = "greedy"


def names(modes: Iterable[RecoveryMode]) -> str:
    """These modes, as a refusal lists them."""
    return ", ".join(mode.value for mode in modes)
