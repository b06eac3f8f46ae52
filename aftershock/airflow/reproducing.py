"""The tasks of the DAG `reproduce`."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from aftershock.airflow import links, nightly, tasks, trigger_form, waiting_tasks
from results.runs.step_times import whole_s
from results.summary.judged_checks import JudgedCheck
from results.verdict import Verdict

log = logging.getLogger(__name__)


def missing(
    id: str, size: int | None, *asked_before: Iterable[nightly.Cell] | nightly.Cell | None
) -> list[nightly.Cell]:
    """The runs that a table or figure lacks, as far as that can be told by now.

    A run that was requested before and is still missing has failed. It is not retried.
    """
    from reproductions.reproduce import missing_runs

    with tasks.failures_on_one_line():
        experiments = missing_runs(id, size)
    # Airflow hands over what several mapped tasks returned, but the cell itself if only one of them did.
    listed = ([cells] if isinstance(cells, dict) else cells or [] for cells in asked_before)
    known = [cell["conf"] for cells in listed for cell in cells if cell]
    asked = [each for each in experiments if nightly.cell(each)["conf"] not in known]
    log.info("%d runs are missing, about %.0f min", len(asked), whole_s(*asked) / 60)
    return list(map(nightly.cell, asked))


def follow_up(id: str, size: int | None, conf: dict[str, Any], asked_before: list[nightly.Cell]) -> nightly.Cell:
    """The run that follows the one of `conf` at once, because that one has told its experiment.

    Skips if none does, or if it was requested before.
    """
    from experiments import spec
    from reproductions.reproduce import next_run

    with tasks.failures_on_one_line():
        experiment = next_run(id, size, spec.validate(trigger_form.fold(conf)))
    if experiment is None:
        raise AirflowSkipException("this run told no other")
    asked = nightly.cell(experiment)
    if asked["conf"] in [cell["conf"] for cell in asked_before]:
        raise AirflowSkipException("the run after this one was requested with it")
    return asked


def reproduce(id: str, size: int | None) -> dict[str, Any]:
    """Rebuild a table or figure of a paper; returns its document. Fails unless all checks passed."""
    from reproductions import reproduce as reproductions

    with tasks.failures_on_one_line():
        waiting_tasks.end_runs_without_a_task()  # some measure, here
        reproductions.measure_missing(id, size)
        found = reproductions.reproduce(id, size=size)
    checks = [JudgedCheck.of(each) for each in found.verdicts]
    for each in checks:
        log.info("%-7s %s", each.verdict, each.sentence)
    failed = [each.sentence for each in checks if each.verdict is Verdict.FAIL]
    unknown = [each.sentence for each in checks if each.verdict is Verdict.UNKNOWN]
    if failed or unknown:
        counts = f"{len(failed)} failed and {len(unknown)} unknown of {len(checks)} checks"
        told = f"{counts}: {'; '.join([*failed, *unknown])}"
        raise AirflowFailException(f"{id}: {told}; {links.page('reproductions')}")
    return found.document()
