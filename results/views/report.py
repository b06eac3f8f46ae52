"""The report of a run: a self-contained HTML page with the answer on top, the plots, and every table."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import yaml
from jinja2 import Environment, FileSystemLoader, select_autoescape
from markupsafe import Markup

from experiments.spec import Experiment
from experiments.wording import percent, signed, significant
from results.runs.store import Run
from results.summary.findings import (
    FAILURE_CLASSES,
    about_the_machine,
    advice,
    engine_and_mode,
    failure_share,
    headline,
    ledger_seconds,
    quality_totals,
    sustainable,
    table_or_empty,
    the_run,
    took_effect,
    utilizations,
)
from results.tables.schema import RUN_TABLES
from results.verdict import WORST_FIRST, Verdict
from results.views.cells import ShownCell, ShownHead, cell, column_of, head
from results.views.palette import FAULT, IDLE, MEASURED, PHASE_COLOURS, PHASE_NAMES
from results.views.plots import PLOTS, write_plots
from results.views.style import INK, PAPER, RULE

TEMPLATES = Path(__file__).parent.parent / "templates"
MOST_ROWS = 200
PAGE_COLOURS = {
    INK: "var(--ink)",
    RULE: "var(--rule)",
    PAPER: "var(--card)",
    MEASURED: "var(--measured)",
    FAULT: "var(--fault)",
    IDLE: "var(--idle)",
    **{colour: f"var(--{PHASE_NAMES[phase]})" for phase, colour in PHASE_COLOURS.items()},
}  # which the page has in light and in dark


@dataclass(frozen=True)
class Shown:
    """A table as it is shown, cut to its first rows when it is long."""

    name: str
    heads: list[ShownHead]
    rows: list[list[ShownCell]]
    length: int


def write_report(run: Run, experiment: Experiment) -> Path:
    """Write the plots and report.html; returns the path of the page. Shows what the run has, and says what it lacks."""
    plots, facts = write_plots(run), the_run(run)
    verdicts = table_or_empty(run, "verdicts")
    verdicts = verdicts.sort_values("verdict", key=lambda column: column.map(WORST_FIRST.index), kind="stable")
    page = (
        _environment()
        .get_template("report.html")
        .render(
            run=run,
            facts=facts,
            engine_and_mode=None if facts is None else engine_and_mode(facts),
            headline=headline(run),
            about_the_machine=about_the_machine(run),
            figures=_figures(run),
            counts={verdict.value: int((verdicts["verdict"] == verdict.value).sum()) for verdict in Verdict},
            verdict_heads=[head("verdicts", name) for name in ("verdict", "check", "observed", "expected")],
            verdicts=verdicts.astype(object).where(verdicts.notna(), "").to_dict("records"),
            plots=[(name, PLOTS[name][0], _inline(svg)) for name, svg in plots.items()],
            tables=[_shown(run, name) for name in RUN_TABLES if name != "verdicts" and run.has(name)],
            missing=[name for name in RUN_TABLES if not run.has(name)],
            experiment=yaml.safe_dump(experiment.model_dump(mode="json"), sort_keys=False),
            significant=significant,
            has_data_docs=(run.checks / "data_docs" / "index.html").exists(),
        )
    )
    run.report.write_text(page, encoding="utf-8")
    return run.report


def _environment() -> Environment:
    loader = FileSystemLoader(TEMPLATES)
    return Environment(loader=loader, autoescape=select_autoescape(), trim_blocks=True, lstrip_blocks=True)


def _figures(run: Run) -> list[tuple[str, str, str]]:
    """The key figures on top: (what, value, context)."""
    found, ledger, best, quality = utilizations(run), ledger_seconds(run), advice(run), quality_totals(run)
    faults = table_or_empty(run, "faults")
    figures = []
    if (searched := sustainable(run)) is not None:
        failed = "none" if searched.too_high is None else f"{significant(searched.too_high)} records/s"
        context = f"lowest that was not: {failed}"
        figures.append(("Sustainable rate", f"{significant(searched.rate)} records/s", context))
    if ledger is not None:
        figures.append(("Failures cost", percent(failure_share(ledger)), f"of the time: {', '.join(FAILURE_CLASSES)}"))
    if found.measured is not None:
        predicted = "no prediction" if found.predicted is None else f"predicted {significant(found.predicted)}"
        figures.append(("Utilization", significant(found.measured), predicted))
    if best is not None:
        context = f"now {significant(best.interval_s)} s; U would change by {signed(best.gain)}"
        figures.append(("Optimal interval", f"{significant(best.optimal_interval_s)} s", context))
    figures.append(("Faults", str(len(took_effect(faults))), f"took effect, of {len(faults)} planned"))
    if quality is not None:
        context = f"{quality['wrong']:,} wrong, {quality['duplicated']:,} duplicated, of {quality['exact']:,}"
        figures.append(("Results lost", f"{quality['lost']:,}", context))
    return figures


def _inline(svg: Path) -> Markup:
    """An SVG as part of the page: no prologue, metadata, comments or fixed size, and in the page's own colours."""
    text = svg.read_text(encoding="utf-8")
    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", text[text.index("<svg") :], flags=re.DOTALL)
    opening, rest = text.split(">", 1)
    text = re.sub(r' (width|height)="[^"]*"', "", opening) + ">" + rest
    for colour, variable in PAGE_COLOURS.items():
        text = text.replace(colour, variable)
    return Markup(text)  # matplotlib draws all text as paths, so nothing of the run's text reaches the page unescaped


def _shown(run: Run, name: str) -> Shown:
    frame = run.table(name)
    columns = [column_of(name, column) for column in frame.columns]
    rows = [
        [cell(column, value) for column, value in zip(columns, row, strict=True)]
        for row in frame.head(MOST_ROWS).itertuples(index=False)
    ]
    return Shown(name, [head(name, column) for column in frame.columns], rows, len(frame))
