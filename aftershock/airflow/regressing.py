"""The tasks of the DAG `regression`: compare the latest runs with earlier ones, and report on each experiment."""

from __future__ import annotations

import logging
from typing import TypedDict

from airflow.sdk.exceptions import AirflowFailException

from aftershock.airflow import links, tasks
from results.regression.change import Change

log = logging.getLogger(__name__)


class Finding(TypedDict):
    """The verdict on one experiment, what changed, and which runs were left out.

    Airflow hands it from task to task as JSON.
    """

    regression_id: str
    experiment: str
    verdict: str
    sentences: list[str]


def compare(experiment: str | None) -> list[Finding]:
    """Judge and record the latest runs of every experiment, or of the one that is named; a finding for each."""
    from results.regression.regress import regress

    with tasks.failures_on_one_line():
        found = regress(experiment).document()
    log.info("recorded as %s: %s", found.regression_id, found.verdict)
    return [
        Finding(
            regression_id=found.regression_id,
            experiment=each.experiment,
            verdict=each.verdict,
            sentences=[*each.sentences, *each.notes],
        )
        for each in found.experiments
    ]


def judge(finding: Finding) -> None:
    """Log its sentences; fails when the experiment became worse, with what did and by how much."""
    for sentence in finding["sentences"]:
        log.info("%s", sentence)
    log.info("%s: %s", finding["experiment"], finding["verdict"])
    if finding["verdict"] == Change.WORSE:
        told = "; ".join(sentence for sentence in finding["sentences"] if sentence.startswith("worse"))
        raise AirflowFailException(
            f"{finding['experiment']}: {told}; {links.regression_page(finding['regression_id'])}"
        )
