"""Live runs: the cluster, the faults and the progress of each, and the switch that ends one."""

from __future__ import annotations

from typing import Any

from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from aftershock.watch import live
from experiments.errors import AftershockError, BadInput
from plugins.access import can_abort, form_token, from_our_form, may_abort
from plugins.rendering import render
from results.runs import store
from results.summary import index

router = APIRouter()
NO_RUN = (
    "No run of this DAG run is known. It may not have begun yet: load this page again in a moment. If the task begin "
    "failed, its log says why. The DAGs nightly, regression and reproduce have no run of their own."
)
LIVE = {"live": "Live runs"}


@router.get("/live")
def list_live(request: Request) -> HTMLResponse:
    """The page that lists the live runs."""
    return render(request, "live.html", section="live", runs=live.all_states())


@router.get("/live/{run_id}")
def show_live(request: Request, user: GetUserDep, run_id: str) -> Response:
    """The page of one live run; a run that has finished meanwhile leads to its result page."""
    state = _state(run_id)
    if state is None:
        return _result_page(request, run_id)
    return render(request, "live_run.html", state=state, may_abort=can_abort(user))


@router.get("/live/{run_id}/state.json")
def live_state(run_id: str) -> dict[str, Any]:
    """What the page of a live run polls; `finished` tells it to go to the result page."""
    state = _state(run_id)
    return {"finished": True} if state is None else state | {"finished": False}


def _state(run_id: str) -> dict[str, Any] | None:
    """A live run as `live.state_of` describes it, and raises; None for a run that has finished, be it just now."""
    try:
        return None if store.is_finished(run_id) else live.state_of(run_id)
    except AftershockError:
        if store.is_finished(run_id):
            return None
        raise


def _result_page(request: Request, run_id: str) -> Response:
    return RedirectResponse(f"{request.scope['root_path']}/runs/{run_id}", 303)


@router.get("/live/{run_id}/abort", dependencies=[Depends(may_abort)])
def confirm_abort(request: Request, user: GetUserDep, run_id: str) -> Response:
    """The page that asks before a run is aborted; its form has the token that `abort` asks for.

    It looks at nothing of the run, so that one that is damaged can be aborted.
    """
    if run_id not in store.all_live():
        if store.is_finished(run_id):
            return _result_page(request, run_id)
        raise BadInput("run_id", run_id, "a live run")
    return render(request, "abort.html", run_id=run_id, token=form_token(user, run_id), outcome=None)


@router.post("/live/{run_id}/abort", dependencies=[Depends(may_abort), Depends(from_our_form)])
def abort(request: Request, run_id: str) -> Response:
    """Abort a live run, and show what was undone; a run that has finished meanwhile leads to its result page."""
    try:
        outcome = live.end(run_id)
    except BadInput:
        if store.is_finished(run_id):
            return _result_page(request, run_id)
        raise
    return render(request, "abort.html", run_id=run_id, token="", outcome=outcome)


@router.get("/dag-runs/{dag_run}")
def run_of_dag_run(request: Request, dag_run: str) -> Response:
    """The page of the run that a DAG run made: the live one, since one that was cleared has finished runs, too."""
    base = request.scope["root_path"]
    running = [run_id for run_id in store.all_live() if store.live(run_id).known_status().dag_run == dag_run]
    if running:
        return RedirectResponse(f"{base}/live/{running[0]}", 303)
    finished = [row.run_id for row in index.rows(limit_s=0.0) if row.dag_run == dag_run]
    if finished:
        return RedirectResponse(f"{base}/runs/{finished[0]}", 303)
    return render(request, "error.html", 404, status_code=404, reason=NO_RUN, login=None, links=LIVE)
