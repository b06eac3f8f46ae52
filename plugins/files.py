"""Serves files: only those found by name in folders of a run or of the pages, never by path.

A user who can write to a run directory could replace a file by a link between the look-up and the answer. So a file is
opened first, without following links, and the content of this open file is sent.
"""

import hashlib
import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

from fastapi import HTTPException
from fastapi.responses import FileResponse, Response
from starlette.types import Receive, Scope, Send

from experiments.documents.plain_files import RefusedFile, open_below
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


@dataclass(frozen=True)
class OwnFile:
    """A file by its name below a folder, of which no part may be a link; the folder itself is free of links."""

    folder: Path
    name: str

    @property
    def path(self) -> Path:
        """Where it is; only `open` is safe from a link that comes later."""
        return self.folder / self.name

    def is_there(self) -> bool:
        """Whether there is such a file, at the moment."""
        return self.path.is_file() and self.path.resolve() == self.path

    def open(self) -> BinaryIO:
        """The file, open to read; raises `RefusedFile` or `OSError` if a link, or anything but a file, is there now."""
        return open(open_below(self.folder, self.name, uid=None, more_names=True), "rb")


def served_files(run: Run, folder: Folder) -> dict[str, OwnFile]:
    """The files below a run's folder by their relative name, sorted; empty if the run lacks the folder.

    Links are left out at every level below the run directory, so no name leads out of it.
    """
    root = run.root.resolve()
    base = root / folder
    paths = (path for path in sorted(base.rglob("*")) if path.suffix in MEDIA_TYPES)
    found = {path.relative_to(base).as_posix(): OwnFile(root, path.relative_to(root).as_posix()) for path in paths}
    return {name: file for name, file in found.items() if file.is_there()}


def report_file(run: Run) -> OwnFile | None:
    """The run's report, if it has one."""
    file = OwnFile(run.root.resolve(), run.report.name)
    return file if file.is_there() else None


def data_docs_index(run: Run) -> str | None:
    """The name, within the checks folder, of the Data Docs' front page: the index nearest to the top."""
    pages = [name for name in served_files(run, Folder.CHECKS) if name.split("/")[-1] == "index.html"]
    return min(pages, key=lambda name: name.count("/"), default=None)


def table_file(run: Run, name: str) -> OwnFile | None:
    """The one file of a table that a run has."""
    root = run.root.resolve()
    table = root / Folder.TABLES / run.table_path(name).name
    found = [OwnFile(root, part.relative_to(root).as_posix()) for part in parts(table)] if run.has(name) else []
    files = [file for file in found if file.is_there()]
    return files[0] if len(files) == 1 else None


class OpenedFile(FileResponse):
    """Sends the content of an open descriptor and closes it, even if the file's name now belongs to another file."""

    def __init__(self, file: BinaryIO, media_type: str) -> None:
        descriptor = file.fileno()
        super().__init__(
            f"/proc/self/fd/{descriptor}",
            media_type=media_type,
            headers={"Content-Security-Policy": DOCUMENT_POLICY},
            stat_result=os.fstat(descriptor),
        )
        self._file = file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._file:
            await super().__call__(scope, receive, send)


def opened(file: OwnFile) -> BinaryIO:
    """A file of a run, open to read; 404 if something else has taken its place since it was looked up."""
    try:
        return file.open()
    except (RefusedFile, OSError):
        raise HTTPException(404, "This run has no such file.") from None


def send(file: OwnFile | None) -> OpenedFile:
    """Serve a document of a run; 404 if there is none, or something else has taken its place."""
    if file is None:
        raise HTTPException(404, "This run has no such file.")
    return OpenedFile(opened(file), MEDIA_TYPES[file.path.suffix])


def send_static(name: str, version: str) -> Response:
    """Serve a file of the pages' own, by a name of `STATIC`; browsers keep it if its address has the right version."""
    headers = {"Cache-Control": KEPT} if version == STATIC_VERSION else {}
    return Response(STATIC[name], media_type=STATIC_TYPES[Path(name).suffix], headers=headers)
