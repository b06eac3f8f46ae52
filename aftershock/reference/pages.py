"""Every generated page by its file name."""

from collections.abc import Callable
from pathlib import Path

from aftershock.reference.checks import checks
from aftershock.reference.command_line import command_line
from aftershock.reference.examples import examples
from aftershock.reference.experiment import experiment
from aftershock.reference.tables import tables

FOLDER = Path(__file__).parents[2] / "docs" / "reference"
PAGES: dict[str, Callable[[], str]] = {
    "checks.md": checks,
    "command-line.md": command_line,
    "examples.md": examples,
    "experiment.md": experiment,
    "tables.md": tables,
}
