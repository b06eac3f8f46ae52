"""The page *Reproductions*: the papers' tables and figures, computed again or measured."""

from __future__ import annotations

from itertools import groupby

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, HTMLResponse

from plugins.files import OwnFile, send
from plugins.rendering import render
from results.views import gallery

router = APIRouter()


@router.get("/reproductions")
def reproductions(request: Request) -> HTMLResponse:
    """The page of everything that was reproduced, grouped by paper."""
    found = gallery.all_reproduced()
    papers = {paper: list(each) for paper, each in groupby(found, key=lambda one: one.paper)}
    return render(request, "reproductions.html", section="reproductions", papers=papers)


@router.get("/reproductions/{paper}/{figure}.{kind}")
def reproduction_file(paper: str, figure: str, kind: str) -> FileResponse:
    """One file of a reproduction; 404 if it was not written."""
    path = gallery.reproduced(paper, figure).file(kind)
    return send(None if path is None else OwnFile(path.parent, path.name))
