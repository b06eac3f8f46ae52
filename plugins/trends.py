"""The pages of histories with their change points, and of recorded comparisons."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Query, Request
from fastapi.responses import HTMLResponse

from plugins.known_runs import known_runs, unread_in
from plugins.rendering import render
from results.regression import records, wording
from results.regression.change_points import FEWEST_RUNS
from results.regression.history import Series, series_of
from results.regression.regress import changes, levels, longest_stretch
from results.runs import store
from results.runs.state import RunState
from results.summary.metrics import METRICS, Metric
from results.views.causes import causes_of_worse
from results.views.cells import time_text

router = APIRouter()


@dataclass(frozen=True)
class Histories:
    """All histories; the one that the address names, None where there is none; how many runs are in none of them.

    These are not read yet, or their tables are of another version.
    """

    every: list[Series]
    shown: Series | None
    unread: int
    outdated: int


def histories(experiment: str = "", machine: str = "", digest: str = "") -> Histories:
    """The histories of the runs that are known; the one of the latest run is shown where the address names none."""
    wanted = {"experiment": experiment, "machine": machine, "digest": digest}
    listed = known_runs()
    every = series_of(listed)
    found = [each for each in every if all(not text or getattr(each, name) == text for name, text in wanted.items())]
    outdated = sum(row.state == RunState.DONE and row.is_outdated for row in listed)
    return Histories(every, found[0] if found else None, unread_in(listed), outdated)


def the_metric(metric: Annotated[str, Query()] = "utilization") -> Metric:
    """The metric that the address names; 404 for one that is not in `METRICS`."""
    if metric not in METRICS:
        raise HTTPException(404, f"There is no such metric; there are {', '.join(METRICS)}.")
    return METRICS[metric]


KnownHistories = Annotated[Histories, Depends(histories)]
ShownMetric = Annotated[Metric, Depends(the_metric)]


@router.get("/history")
def history(request: Request, known: KnownHistories, metric: ShownMetric) -> HTMLResponse:
    """The page of one metric over the runs of an experiment."""
    series = known.shown
    return render(
        request,
        "history.html",
        section="history",
        every=known.every,
        unread=known.unread,
        outdated=known.outdated,
        series=series,
        metric=metric,
        metrics=METRICS.values(),
        runs=[] if series is None else [run for run in reversed(series.runs) if metric.name in run.metrics],
        changes=[] if series is None else changes(series, metric),
        can_change=series is not None and longest_stretch(series, metric) >= FEWEST_RUNS,
        fewest_runs=FEWEST_RUNS,
    )


@router.get("/history.json")
def history_chart(known: KnownHistories, metric: ShownMetric) -> dict[str, Any]:
    """What the page's chart draws, oldest run first; null without a run that has the metric."""
    series = known.shown
    runs = [] if series is None else [run for run in series.runs if metric.name in run.metrics]
    if series is None or not runs:
        return {"history": None}
    values = [run.metrics[metric.name] for run in runs]
    return {
        "history": {
            "metric": metric.label,
            "unit": metric.unit,
            "names": [run.run_id for run in runs],
            "started": [time_text(run.started_ns)[:16] for run in runs],
            "values": values,
            "changes": changes(series, metric),
            "levels": [asdict(level) for level in levels(series, metric)],
        }
    }


@router.get("/regressions")
def list_regressions(request: Request) -> HTMLResponse:
    """The page that lists the recorded comparisons, damaged ones with their reason."""
    documents, damaged = records.read_all()
    return render(request, "regressions.html", section="regressions", documents=documents, damaged=damaged)


@router.get("/regressions/{regression_id}")
def show_regression(request: Request, regression_id: str) -> HTMLResponse:
    """The page of one recorded comparison: a row is a metric, with its change in words."""
    found = records.recorded(regression_id)
    document = found.document()
    rows = [row | {"effect": wording.effect(row)} for row in found.rows("regression")]
    causes = {
        (each.experiment_digest, each.machine): causes_of_worse(each.candidates, each.baseline, filter(each.has, rows))
        for each in document.experiments
    }
    changed = found.rows("change_points")
    named = [run_id for each in document.experiments for run_id in (*each.candidates, *each.baseline)]
    return render(
        request,
        "regression.html",
        document=document,
        rows=rows,
        changes=changed,
        causes=causes,
        metrics=METRICS,
        kept=set(filter(_kept, [*named, *(row["run_id"] for row in changed)])),
    )


def _kept(run_id: str) -> bool:
    """Whether there is still such a run; what a table names may be no run id."""
    return bool(store.RUN_ID.fullmatch(run_id)) and store.is_finished(run_id)
