"""What the task of the DAG `reproduce` does."""

from __future__ import annotations

import logging
from typing import Any

from airflow.sdk.exceptions import AirflowFailException

from aftershock import links, tasks
from reproductions.ids import IDS

__all__ = ["IDS", "reproduce"]
log = logging.getLogger(__name__)


def reproduce(id: str, size: int | None) -> dict[str, Any]:
    """Rebuild a table or figure of a paper; returns its document. Fails with each check that failed."""
    from reproductions import reproduce as reproductions

    with tasks.told_in_one_line():
        found = reproductions.reproduce(id, size=size)
    for verdict in found.verdicts:
        log.info("%-7s %s", verdict["verdict"], tasks.sentence(verdict))
    failed = [tasks.sentence(verdict) for verdict in found.verdicts if verdict["verdict"] == "fail"]
    if failed:
        told = f"{len(failed)} of {len(found.verdicts)} checks failed: {'; '.join(failed)}"
        raise AirflowFailException(f"{id}: {told}; {links.page('reproductions')}")
    return found.document()
