"""The list of runs, and one run with its verdicts, charts, tables and documents."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict
from datetime import date
from functools import partial
from tempfile import SpooledTemporaryFile
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Query, Request
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.background import BackgroundTask

from plugins import present
from plugins.files import Folder, OwnFile, data_docs_index, opened, report_file, send, served_files, table_file
from plugins.known_runs import known_runs, unread_in
from plugins.rendering import render
from results.runs import store
from results.runs.state import RunState
from results.summary import index
from results.summary.findings import about_the_machine, headline
from results.tables.reading import read_pieces
from results.tables.schema import TABLES
from results.verdict import WORST_FIRST
from results.views import charts
from results.views.copies import copies_of
from results.views.selection import NEWEST_FIRST, SORTS, Selection, choices, select

RUNS_PER_PAGE = 50
IN_MEMORY_BYTES, SENT_BYTES = 2**22, 2**16  # of a table as CSV: kept in memory, sent at once
DRAWN = (
    "utilization",
    "useful_time",
    "timeline",
    "availability",
    "ledger",
    "recoveries",
    "latency",
)  # by the charts, which need no image
MOST_SECONDS = 1e7
SORT_PATTERN = f"^-?({'|'.join(SORTS)})$"

router = APIRouter()


def the_run(run_id: str) -> store.Run:
    """The finished or published run that the address names; raises `BadInput` if there is none."""
    return store.ReadOnce.of(store.readable(run_id))


FinishedRun = Annotated[store.Run, Depends(the_run)]


def narrowed(
    experiment: str = "",
    engine: str = "",
    protocol: str = "",
    recovery: str = "",
    verdict: str = "",
    since: str = "",
    until: str = "",
) -> Selection:
    """What the form above the list asks for: an empty field is no limit."""
    try:
        days = [date.fromisoformat(day) if day else None for day in (since, until)]
    except ValueError:
        raise HTTPException(400, "A day is written as in 2026-11-20.") from None
    return Selection(experiment or None, engine or None, protocol or None, recovery or None, verdict or None, *days)


@router.get("/")
def list_runs(
    request: Request,
    wanted: Annotated[Selection, Depends(narrowed)],
    sort: Annotated[str, Query(pattern=SORT_PATTERN)] = NEWEST_FIRST,
    page: int = 1,
) -> HTMLResponse:
    """The page that lists the finished runs, `RUNS_PER_PAGE` at a time."""
    every = known_runs(with_published=True)
    own = sum(not row.is_published for row in every)
    found = select(every, wanted, sort)
    last = max(1, -(-len(found) // RUNS_PER_PAGE))
    page = min(max(page, 1), last)
    return render(
        request,
        "runs.html",
        section="",
        rows=found[(page - 1) * RUNS_PER_PAGE : page * RUNS_PER_PAGE],
        count=len(found),
        total=len(every),
        unread=unread_in(every),
        own=own,
        live=[] if own else store.all_live(),
        page=page,
        last=last,
        sort=sort,
        wanted={name: str(value) for name, value in asdict(wanted).items() if value},
        choices=choices(every) | {"verdict": [word.value for word in WORST_FIRST]},
    )


@router.get("/runs/{run_id}")
def show_run(
    request: Request,
    run_id: str,
    table: str = "",
    second: Annotated[float, Query(ge=-MOST_SECONDS, le=MOST_SECONDS, allow_inf_nan=False)] = 0.0,
) -> Response:
    """The page of one run; a run that cannot be read is shown with the reason, without charts.

    With a table and a second of the window, the rows around it come first. A live run leads to its own page.
    """
    if run_id in store.all_live() and not store.is_finished(run_id):
        return RedirectResponse(f"{request.scope['root_path']}/live/{run_id}", 303)
    run = the_run(run_id)
    row = index.row_of(run)
    readable = row.state != RunState.UNREADABLE
    refused = run.is_published and not readable  # of a version that this one does not read
    plots = [name for name in present.shown_plots(served_files(run, Folder.PLOTS)) if not _is_drawn(name)]
    judged = present.verdicts(run) if readable else []
    return render(
        request,
        "run.html",
        run=row,
        publication=run.publication() if readable else None,
        around=present.rows_around(run, table, second) if table in TABLES and run.has(table) else None,
        second=second,
        causes=present.causes(run, judged),
        details=present.details(row),
        measurements=present.measurements(row),
        headline=headline(run) if readable else None,
        about_the_machine=about_the_machine(run),
        judged=judged,
        ledger=charts.ledger(run) if readable else None,
        recommended=present.recommended(run) if readable else None,
        copies=copies_of(run) if readable else [],
        drawn=readable and bool(row.facts),
        recovered_by_query=readable and charts.tells_queries(run),
        plots={} if refused else {name: present.plot_title(name) for name in plots},
        tables=[] if refused else present.tables(run),
        report=report_file(run),
        data_docs=data_docs_index(run),
    )


def _is_drawn(name: str) -> bool:
    return name.rpartition(".")[0] in DRAWN


@router.get("/runs/{run_id}/charts.json")
def run_charts(run: FinishedRun) -> dict[str, Any]:
    """What the charts of a run's page draw."""
    return charts.charts(run)


@router.get("/runs/{run_id}/report.html")
def report(run: FinishedRun) -> FileResponse:
    """The report of a run; 404 if it has none."""
    return send(report_file(run))


@router.get("/runs/{run_id}/plots/{name:path}")
def plot(run: FinishedRun, name: str) -> FileResponse:
    """One plot of a run, by its name; 404 if there is none."""
    return send(served_files(run, Folder.PLOTS).get(name))


@router.get("/runs/{run_id}/checks/{name:path}")
def check(run: FinishedRun, name: str) -> FileResponse:
    """One page of a run's Data Docs, by its name; 404 if there is none."""
    return send(served_files(run, Folder.CHECKS).get(name))


@router.get("/runs/{run_id}/tables/{name}.csv")
def table_as_csv(run: FinishedRun, name: str) -> Response:
    """Whole on disk before the answer begins, since a table that cannot be read is refused."""
    file = _table(run, name)
    with opened(file) as stored, ExitStack() as on_error:
        written = on_error.enter_context(SpooledTemporaryFile(IN_MEMORY_BYTES))
        for at, piece in enumerate(read_pieces(file.path, stored.fileno())):
            written.write(piece.to_csv(index=False, header=not at).encode())
        written.seek(0)
        on_error.pop_all()
    pieces = iter(partial(written.read, SENT_BYTES), b"")
    headers = _attachment(f"{run.run_id}-{name}.csv")
    return StreamingResponse(pieces, media_type="text/csv", headers=headers, background=BackgroundTask(written.close))


@router.get("/runs/{run_id}/tables/{name}.parquet")
def table_as_parquet(run: FinishedRun, name: str) -> FileResponse:
    """One table of a run, as it is stored; 404 if it has none."""
    response = send(_table(run, name))
    response.headers.update(_attachment(f"{run.run_id}-{name}.parquet"))
    return response


def _table(run: store.Run, name: str) -> OwnFile:
    file = table_file(run, name) if name in TABLES else None
    if file is None:
        raise HTTPException(404, "This run has no such table.")
    return file


def _attachment(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"'}
