"""The app behind the pages: every route asks Airflow's auth manager before it does anything."""

from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from airflow.api_fastapi.app import get_auth_manager
from fastapi import APIRouter, Depends, FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, HTMLResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.exceptions import HTTPException as StarletteHTTPException

from experiments.errors import AftershockError, BadInput
from plugins import present
from plugins.access import BENCHMARK_DAG, add_security_headers, may_read_results
from plugins.files import Folder, data_docs_index, report_file, send, served_files
from results import store
from results.findings import headline
from results.schema import TABLES

HERE = Path(__file__).parent
STATIC = {
    "aftershock.css": "text/css",
    "frame.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
RUNS_PER_PAGE = 50

pages = Environment(
    loader=FileSystemLoader(HERE / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
pages.globals.update(number=present.number_text, missing=present.MISSING, plot_title=present.plot_title)
router = APIRouter(dependencies=[Depends(may_read_results)], include_in_schema=False)


def create_app() -> FastAPI:
    """The app that Airflow mounts; it publishes no schema and no interactive docs."""
    app = FastAPI(title="Aftershock", openapi_url=None, docs_url=None, redoc_url=None)
    app.include_router(router)
    app.middleware("http")(add_security_headers)
    app.add_exception_handler(StarletteHTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(AftershockError, _failed)
    return app


def the_run(run_id: str) -> store.Run:
    """The finished run that the address names; 404 if there is none."""
    try:
        return store.finished(run_id)
    except BadInput as error:
        raise HTTPException(404, str(error)) from None


FinishedRun = Annotated[store.Run, Depends(the_run)]


@router.get("/")
def list_runs(request: Request, page: int = 1) -> HTMLResponse:
    runs = store.all_finished()
    last = max(1, -(-len(runs) // RUNS_PER_PAGE))
    page = min(max(page, 1), last)
    shown = runs[(page - 1) * RUNS_PER_PAGE : page * RUNS_PER_PAGE]
    rows = [present.summary(run) for run in shown]
    return _render(request, "runs.html", rows=rows, count=len(runs), page=page, last=last)


@router.get("/runs/{run_id}")
def show_run(request: Request, run: FinishedRun) -> HTMLResponse:
    return _render(
        request,
        "run.html",
        run=present.summary(run),
        headline=headline(run),
        judged=present.verdicts(run),
        plots=present.shown_plots(served_files(run, Folder.PLOTS)),
        tables=present.tables(run),
        report=report_file(run),
        data_docs=data_docs_index(run),
    )


@router.get("/runs/{run_id}/report.html")
def report(run: FinishedRun) -> FileResponse:
    return send(report_file(run))


@router.get("/runs/{run_id}/plots/{name:path}")
def plot(run: FinishedRun, name: str) -> FileResponse:
    return send(served_files(run, Folder.PLOTS).get(name))


@router.get("/runs/{run_id}/checks/{name:path}")
def check(run: FinishedRun, name: str) -> FileResponse:
    return send(served_files(run, Folder.CHECKS).get(name))


@router.get("/runs/{run_id}/tables/{name}.csv")
def table_as_csv(run: FinishedRun, name: str) -> Response:
    if name not in TABLES or not run.has(name):
        raise HTTPException(404, "This run has no such table.")
    attachment = {"Content-Disposition": f'attachment; filename="{run.run_id}-{name}.csv"'}
    return Response(run.table(name).to_csv(index=False), media_type="text/csv", headers=attachment)


@router.get("/runs/{run_id}/tables/{name}.parquet")
def table_as_parquet(run: FinishedRun, name: str) -> FileResponse:
    response = send(served_files(run, Folder.TABLES).get(f"{name}.parquet"))
    response.headers["Content-Disposition"] = f'attachment; filename="{run.run_id}-{name}.parquet"'
    return response


@router.get("/static/{name}")
def static(name: str) -> FileResponse:
    if name not in STATIC:
        raise HTTPException(404, "There is no such file.")
    return FileResponse(HERE / "static" / name, media_type=STATIC[name])


@router.get("/{rest:path}")
def nothing_here(rest: str) -> None:
    """Last: so that an address that does not exist asks for a login too."""
    raise HTTPException(404, "There is no such page.")


def _render(request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    benchmark = f"{request.scope['app_root_path']}/dags/{BENCHMARK_DAG}"
    page = pages.get_template(template).render(base=request.scope["root_path"], benchmark=benchmark, **values)
    return HTMLResponse(page, status)


def _error_page(request: Request, status: int, reason: str, login: str | None = None) -> HTMLResponse:
    return _render(request, "error.html", status, status_code=status, reason=reason, login=login)


def _refused(request: Request, error: StarletteHTTPException) -> HTMLResponse:
    here = quote(request.url.path)
    login = get_auth_manager().get_url_login(next_url=here) if error.status_code == 401 else None
    return _error_page(request, error.status_code, error.detail, login)


def _malformed(request: Request, error: RequestValidationError) -> HTMLResponse:
    return _error_page(request, 400, "The address is not well formed.")


def _failed(request: Request, error: AftershockError) -> HTMLResponse:
    return _error_page(request, 500, str(error))
