"""With any content of its files, a run is shown or said to be damaged; all other runs are shown as usual."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from plugins import present
from results.damage import Damaged
from results.regression import history
from results.regression.not_measured import reasons
from results.runs import store
from results.runs.retention import removable
from results.runs.state import RunState
from results.summary import index
from results.summary.experiment_fields import fields_apart
from results.summary.findings import about_the_machine, headline
from results.summary.judged_checks import failed_checks
from results.summary.metrics import METRICS
from results.views import charts, side_by_side
from results.views.document import document
from results.views.listing import entry, listing
from results.views.selection import SORTS, Selection, choices, select
from results.views.terminal import summary
from tests.fuzz.damaging import Stored, feed_damaged, files_of_the_run, in_one_line, written
from tests.fuzz.session import Fuzzer

STATES = {"done", "failed", "running", RunState.UNREADABLE}


def is_shown(stored: Stored, _: Path) -> str:
    """Everything that lists, commands and pages take from a run, of which some may be refused as damaged."""
    run, whole = stored.victim, index.row_of(stored.whole)
    row, look = index.row_of(run), store.ReadOnce.of(run)
    if row.state not in STATES or whole.state != "done":
        raise AssertionError(f"the runs are {row.state} and {whole.state}")
    rows = [row, whole]
    lines = listing(rows, 100).splitlines()
    if len(lines) != 3 or not _is_printable(lines):
        raise AssertionError(f"not a list of two runs: {lines!r}")
    written([entry(each) for each in rows])
    for sort in SORTS:
        if len(select(rows, Selection(), sort)) != 2:
            raise AssertionError(f"runs are missing when sorted by {sort}")
    choices(rows)
    history.series_of(rows)
    removable([run.known_status()], 0, None, (), 1)
    side_by_side.metric_table(rows)
    side_by_side.differences(rows, present.SETTINGS)
    written(fields_apart([run, stored.whole]))
    written([present.details(row), present.measurements(row), about_the_machine(run)])
    written([asdict(each) for each in present.tables(run)])
    if row.state != RunState.UNREADABLE:
        written([headline(look), charts.charts(look), side_by_side.charts([look], [row])])
        present.verdicts(look)
        written([failed_checks(look), reasons(look, METRICS)])
        present.recommended(look)
    answer = "shown"
    for show in (document, summary, history.row):
        try:
            seen = show(look)
        except Damaged as damage:
            answer = in_one_line(damage)
        else:
            if show is summary and not _is_printable(seen.split("\n")):
                raise AssertionError(f"a summary that acts on the terminal: {seen!r}")
    return answer


def _is_printable(lines: list[str]) -> bool:
    return all(map(str.isprintable, lines))


FUZZERS = [Fuzzer("damaged run", feed_damaged(files_of_the_run, is_shown), weight=0.05)]
