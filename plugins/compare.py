"""Two or more runs side by side."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Query, Request
from fastapi.responses import HTMLResponse

from plugins import present
from plugins.rendering import render
from results.predictions.pooled import Pooled, are_of_one_experiment, pooled
from results.regression.not_measured import lacks, missing_values
from results.regression.wording import value_text
from results.runs import store
from results.runs.state import RunState
from results.summary import index
from results.summary.experiment_fields import fields_apart
from results.summary.judged_checks import failed_checks
from results.summary.metrics import METRICS
from results.views import charts, side_by_side

MOST_COMPARED = 12

router = APIRouter()


def the_runs(run: Annotated[list[str] | None, Query()] = None) -> list[store.Run]:
    """The finished or published runs that the address names, each once, in its order; raises `BadInput` for others."""
    names = list(dict.fromkeys(run or []))
    if not 1 < len(names) <= MOST_COMPARED:
        raise HTTPException(400, f"Mark 2 to {MOST_COMPARED} runs in the list of runs to compare them.")
    return [store.ReadOnce.of(store.readable(name)) for name in names]


ComparedRuns = Annotated[list[store.Run], Depends(the_runs)]


@router.get("/compare")
def compare(request: Request, runs: ComparedRuns) -> HTMLResponse:
    """The page of runs side by side: what differs in their experiments, and their metrics."""
    rows = [index.row_of(run) for run in runs]
    same = are_of_one_experiment(row.experiment_digest for row in rows)
    settings = present.settings(same_experiment=same)
    readable, table = _readable(runs, rows), side_by_side.metric_table(rows)
    failed = {run.run_id: failed_checks(run) for run in readable}
    return render(
        request,
        "compare.html",
        rows=rows,
        same=same,
        outdated=[row.run_id for row in rows if row.is_outdated],
        differences={
            present.detail_label(name): present.details_apart(name, values)
            for name, values in side_by_side.differences(rows, settings).items()
        },
        table=table,
        metrics=METRICS,
        of_recoveries=any(METRICS[name].of_recoveries for name in table),
        failed=failed if any(failed.values()) else {},
        lacks=_lacks(readable, rows),
        fields={path: [value_text(value) for value in values] for path, values in fields_apart(runs).items()},
        behind=side_by_side.never_behind([run for run in readable if charts.tells_queries(run)]),
        pooled=_pooled(runs, rows) if same else None,
    )


def _readable(runs: list[store.Run], rows: list[index.IndexRow]) -> list[store.Run]:
    return [run for run, row in zip(runs, rows, strict=True) if row.state != RunState.UNREADABLE]


def _lacks(readable: list[store.Run], rows: list[index.IndexRow]) -> list[tuple[str, str, str]]:
    """Why values are missing: metrics, runs, and the reason. What cannot be read has a reason of its own."""
    measured = {row.run_id: row.metrics for row in rows}
    found = lacks(missing_values(readable, [measured[run.run_id] for run in readable]))
    return [
        (
            ", ".join(METRICS[name].label for name in each.metrics),
            ", ".join(readable[place].run_id for place in each.places),
            each.why,
        )
        for each in found
    ]


def _pooled(runs: list[store.Run], rows: list[index.IndexRow]) -> Pooled | None:
    """Runs of one experiment together against eq. 10, if all are this installation's own, and can be read."""
    usable = all(row.state == RunState.DONE and not row.is_published for row in rows)
    return pooled(runs) if usable else None


@router.get("/compare.json")
def compare_charts(runs: ComparedRuns) -> dict[str, Any]:
    """What the page's charts draw; runs that cannot be read are left out."""
    rows = [index.row_of(run) for run in runs]
    known = [row for row in rows if row.state != RunState.UNREADABLE]
    return side_by_side.charts(_readable(runs, rows), known)
