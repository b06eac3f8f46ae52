"""The page of a run's checks."""

from aftershock.reference.markdown import code, page, table
from results.checks.catalogue import CHECKS

TEXT = """A check looks at one table of a run and yields a verdict: pass, fail or unknown. A check that cannot be
evaluated is unknown, never pass. It says why in `verdicts.detail`. Great Expectations evaluates the checks and writes
Data Docs. [measurement.md](measurement.md) explains the quantities, [tables.md](tables.md) the tables. A check
that has no meaning for an experiment is left out; the last column says for which experiments it is evaluated."""


def checks() -> str:
    """The page as Markdown; a row is a check."""
    rows = [(code(each.name), code(each.table), each.asks, each.asked_of) for each in CHECKS]
    head = ("check", "table", "passes if", "experiments with")
    return page("Checks of a run", "results/checks/catalogue.py", TEXT, table(head, rows))
