"""The page of protections side by side: what failures and protection cost, and which wins at which failure rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.responses import HTMLResponse, Response

from plugins.access import DOCUMENT_POLICY
from plugins.known_runs import known_runs, unread_in
from plugins.rendering import render
from results.protection.contest import compared_rates, curve
from results.protection.matrix import Group, Matrix, groups
from results.views.protection import COLUMNS, COMPARED, HOUR_S, as_csv, cell, sentences, title

router = APIRouter()


@dataclass(frozen=True)
class Matrices:
    """The runs of every matrix, the matrix that is shown, and the number of runs that are not yet read.

    The address names the matrix that is shown; by default it is the first.
    """

    every: list[Group]
    shown: Matrix | None
    unread: int


def the_matrices(setting: str = "", failures: str = "") -> Matrices:
    """Those of the runs that are known; `setting` is the key of one."""
    listed = known_runs()
    every = groups(listed)
    wanted = [each for each in every if each.setting.key == setting and (each.failures or "") == failures]
    shown = next(iter(wanted if setting else every), None)
    return Matrices(every, None if shown is None else shown.matrix(), unread_in(listed))


KnownMatrices = Annotated[Matrices, Depends(the_matrices)]


@router.get("/matrix")
def matrix(request: Request, known: KnownMatrices) -> HTMLResponse:
    """The page of one setting."""
    shown = known.shown
    protections = [] if shown is None else shown.protections
    columns = [column for column in COLUMNS if any(each.estimates[column.name] for each in protections)]
    cells = [[cell(column, each.estimates[column.name]) for column in columns] for each in protections]
    return render(
        request,
        "matrix.html",
        section="matrix",
        every=[(each.setting, each.failures or "", title(each), each.protections) for each in known.every],
        shown=shown,
        title=None if shown is None else title(shown),
        columns=columns,
        compared=None if shown is None else COMPARED[shown.compared],
        rows=list(zip(protections, cells, strict=True)),
        sentences=[] if shown is None else sentences(shown),
        per_hour=HOUR_S,
        unread=known.unread,
    )


@router.get("/matrix.json")
def matrix_chart(known: KnownMatrices) -> dict[str, Any]:
    """The page's chart: what is compared over the failure rate, or what a failure costs; null for the other."""
    shown = known.shown
    return {"rates": None if shown is None else _rates(shown), "costs": None if shown is None else _costs(shown)}


@router.get("/matrix.csv")
def matrix_as_csv(known: KnownMatrices) -> Response:
    """The table of the page with all its limits, for a spreadsheet; of no setting it is empty."""
    name = "matrix.csv" if known.shown is None else f"matrix-{known.shown.setting.key}.csv"
    text = as_csv([] if known.shown is None else [known.shown])
    return Response(text, media_type="text/csv", headers={"Content-Disposition": f'attachment; filename="{name}"'})


@router.get("/matrix.svg")
def matrix_as_plot(known: KnownMatrices) -> Response:
    """The plot that `aftershock results compare --matrix --out` writes of the setting; 404 if there is none."""
    from results.views.protection_plot import as_svg  # a page that draws nothing does not wait for matplotlib

    drawn = None if known.shown is None else as_svg(known.shown)
    if known.shown is None or drawn is None:
        raise HTTPException(404, "There is nothing to draw of this setting.")
    name = f"matrix-{known.shown.setting.key}.svg"
    headers = {"Content-Disposition": f'inline; filename="{name}"', "Content-Security-Policy": DOCUMENT_POLICY}
    return Response(drawn, media_type="image/svg+xml", headers=headers)


def _rates(of: Matrix) -> dict[str, Any] | None:
    if not of.wins:
        return None
    rates = compared_rates(of.contestants)
    return {
        **COMPARED[of.compared]._asdict(),
        "per_hour": (HOUR_S * rates).tolist(),
        "names": [each.name for each in of.contestants],
        "curves": [curve(each, rates) for each in of.contestants],
        "changes_per_hour": [HOUR_S * win.until for win in of.wins[:-1]],
    }


def _costs(of: Matrix) -> dict[str, Any] | None:
    known = [(each.label, cost_s.to_json()) for each in of.protections if (cost_s := each.estimates["cost_s"])]
    if of.wins or not known:
        return None
    values = {name: [cost_s[name] for _, cost_s in known] for name in ("value", "low", "high")}
    return {"names": [label for label, _ in known], **values}
