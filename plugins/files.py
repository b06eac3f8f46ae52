"""Which files of a run may be served: those found in its own folders, looked up by name, never by path."""

from enum import StrEnum
from pathlib import Path

from fastapi import HTTPException
from fastapi.responses import FileResponse

from plugins.access import DOCUMENT_POLICY
from results.store import Run

MEDIA_TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".json": "application/json",
    ".parquet": "application/vnd.apache.parquet",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}


class Folder(StrEnum):
    """The folders of a run directory that hold files to look at."""

    CHECKS = "checks"
    PLOTS = "plots"
    TABLES = "tables"


def served_files(run: Run, folder: Folder) -> dict[str, Path]:
    """The files below a run's folder by their relative name, sorted; empty if the run lacks the folder.

    Links are left out at every level below the run directory, so no name leads out of it.
    """
    base = run.root.resolve() / folder
    found = (path for path in sorted(base.rglob("*")) if path.suffix in MEDIA_TYPES)
    return {path.relative_to(base).as_posix(): path for path in found if _is_own_file(path)}


def report_file(run: Run) -> Path | None:
    """The run's report, if it has one."""
    path = run.root.resolve() / run.report.name
    return path if _is_own_file(path) else None


def data_docs_index(run: Run) -> str | None:
    """The name, within the checks folder, of the Data Docs' front page: the index nearest to the top."""
    pages = [name for name in served_files(run, Folder.CHECKS) if name.split("/")[-1] == "index.html"]
    return min(pages, key=lambda name: name.count("/"), default=None)


def send(path: Path | None) -> FileResponse:
    """Serve a document of a run; 404 if there is none."""
    if path is None:
        raise HTTPException(404, "This run has no such file.")
    return FileResponse(path, media_type=MEDIA_TYPES[path.suffix], headers={"Content-Security-Policy": DOCUMENT_POLICY})


def _is_own_file(path: Path) -> bool:
    return path.is_file() and path.resolve() == path
