"""Which files may be served: those found in folders of a run or of the pages, looked up by name, never by path."""

import hashlib
from enum import StrEnum
from pathlib import Path

from fastapi import HTTPException
from fastapi.responses import FileResponse, Response

from plugins.access import DOCUMENT_POLICY
from results.runs.store import Run
from results.tables.reading import parts

MEDIA_TYPES = {
    ".css": "text/css",
    ".csv": "text/csv",
    ".html": "text/html",
    ".json": "application/json",
    ".parquet": "application/vnd.apache.parquet",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
STATIC_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
STATIC_FOLDER = Path(__file__).parent / "static"
STATIC = {
    path.relative_to(STATIC_FOLDER).as_posix(): path.read_bytes()
    for path in sorted(STATIC_FOLDER.rglob("*"))
    if path.suffix in STATIC_TYPES
}  # read once, so that what is served is of this version
STATIC_VERSION = hashlib.sha256(b"".join(STATIC.values())).hexdigest()[:12]
ECHARTS = next(Path(name).name for name in STATIC if Path(name).name.startswith("echarts-"))
KEPT = "private, max-age=31536000, immutable"


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


def table_file(run: Run, name: str) -> Path | None:
    """The one file of a table that a run has."""
    path = run.root.resolve() / "tables" / run.table_path(name).name
    files = [part for part in parts(path) if _is_own_file(part)] if run.has(name) else []
    return files[0] if len(files) == 1 else None


def send(path: Path | None) -> FileResponse:
    """Serve a document of a run; 404 if there is none."""
    if path is None:
        raise HTTPException(404, "This run has no such file.")
    return FileResponse(path, media_type=MEDIA_TYPES[path.suffix], headers={"Content-Security-Policy": DOCUMENT_POLICY})


def send_static(name: str, version: str) -> Response:
    """Serve a file of the pages' own, by a name of `STATIC`; browsers keep it if its address has the right version."""
    headers = {"Cache-Control": KEPT} if version == STATIC_VERSION else {}
    return Response(STATIC[name], media_type=STATIC_TYPES[Path(name).suffix], headers=headers)


def _is_own_file(path: Path) -> bool:
    return path.is_file() and path.resolve() == path
